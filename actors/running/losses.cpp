#include "troupe/actors/running/losses.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

// Without the id, both changes are by tools of one turn.
lost_update describe(const basis_check::loss& noted, const event& said) {
  const bool is_in_event = !noted.by_owner && noted.where != scope::temp;
  return {join_key(noted.where, noted.name),
          said.author,
          said.id,
          is_in_event ? said.id : noted.event_id};
}

std::string warn(const lost_update& lost, const session_key& session) {
  auto text = fmt::format("lost update in session {}: agent '{}' has set '{}' "
                          "without seeing its newest value",
                          to_string(session),
                          lost.agent,
                          lost.key);
  if (!lost.event_id.empty())
    text += fmt::format(" (event {}", lost.event_id);
  if (!lost.event_id.empty() && !lost.overwritten_id.empty())
    text += fmt::format(", which overwrites event {}", lost.overwritten_id);
  if (!lost.event_id.empty())
    text += ")";
  return text + "; use update(key, fn) or an operation such as add";
}

} // namespace

void tell_losses(const run_shared& run,
                 const basis_check& noted,
                 const event& said) {
  for (const auto& each : noted.losses()) {
    const auto lost = describe(each, said);
    if (run.control->add_loss(lost) && run.shared->on_warning)
      run.shared->on_warning(warn(lost, run.facts.session));
  }
}

} // namespace troupe::actors
