#include "troupe/contexts/readonly_context.hpp"

#include "troupe/contexts/lanes/host.hpp"
#include "troupe/contexts/lanes/memory_access.hpp"

namespace troupe {

const std::string& readonly_context::invocation_id() const noexcept {
  return facts_->invocation_id;
}

const session_key& readonly_context::session() const noexcept {
  return facts_->session;
}

const content& readonly_context::user_content() const noexcept {
  return facts_->user_content;
}

pending<std::vector<memory_entry>>
readonly_context::search_memory(std::string query, std::size_t limit) const {
  using found = std::vector<memory_entry>;
  return call_store<found>(
    facts_->memory,
    [key = facts_->session, query = std::move(query), limit](
      memory_service& kept) {
      return kept.search(key.app, key.user, query, limit);
    },
    [has_memory = facts_->memory != nullptr] {
      return has_memory ? result<void>() : without_memory();
    },
    [](const found&) {});
}

} // namespace troupe
