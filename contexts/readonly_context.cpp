#include "troupe/contexts/readonly_context.hpp"

#include "troupe/contexts/lanes/host.hpp"

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

} // namespace troupe
