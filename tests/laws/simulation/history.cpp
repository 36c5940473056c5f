#include "history.hpp"

#include <algorithm>

namespace troupe::testing {

std::string_view to_string(call_kind kind) noexcept {
  switch (kind) {
  case call_kind::create:
    return "create";
  case call_kind::append:
    return "append";
  case call_kind::get:
    return "get";
  case call_kind::list:
    return "list";
  case call_kind::remove:
    return "remove";
  case call_kind::remove_user:
    return "remove_user";
  case call_kind::user_state:
    return "get_user_state";
  case call_kind::app_state:
    return "get_app_state";
  case call_kind::rewind:
    return "rewind";
  case call_kind::fork:
    return "fork";
  case call_kind::write:
    return "write_state";
  }
  return "?";
}

void history::note_commit(std::span<const store_change> changes,
                          const writing& how) {
  commits_.push_back({written.size(), kept_.size()});
  for (const auto& each : changes) {
    written.push_back(each);
    writings.push_back(how);
    kept_.push_back(each);
  }
}

std::optional<std::size_t> history::lose_commits(std::size_t count) {
  if (commits_.empty())
    return std::nullopt;
  const auto first
    = commits_.end()
      - static_cast<std::ptrdiff_t>(std::min(count, commits_.size()));
  const auto [moment, kept] = *first;
  commits_.erase(first, commits_.end());
  kept_.resize(kept);
  losses[written.size()] = moment;
  written.emplace_back().kind = change_kind::write;
  writings.emplace_back();
  return moment;
}

} // namespace troupe::testing
