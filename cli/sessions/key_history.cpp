#include "troupe/cli/sessions/key_history.hpp"

#include <fmt/format.h>

namespace troupe::cli {

namespace {

json line_of(std::uint64_t revision, const event& said, const json& data) {
  return {{"revision", revision},
          {"value", data},
          {"event", said.id},
          {"author", said.author},
          {"time", to_seconds(said.timestamp)}};
}

} // namespace

result<void>
read_key_history(session_service& sessions,
                 const session_key& key,
                 const std::string& name,
                 const std::function<result<void>(const json&)>& on_value) {
  const auto parts = split_key(name);
  if (parts.where == scope::temp)
    return error(errc::invalid_argument,
                 fmt::format("{} is never stored, so it has no history", name));
  const auto whole = sessions.get(key).get();
  if (!whole)
    return whole.error();
  if (parts.where == scope::session) {
    const auto made
      = sessions
          .get(key, {.num_recent_events = 0, .at = whole->first_revision()})
          .get();
    if (!made)
      return made.error();
    if (const auto first = made->state().find(name))
      if (auto told = on_value(
            {{"revision", whole->first_revision()}, {"value", first->data()}});
          !told)
        return told;
  }
  const auto& events = whole->events();
  for (std::size_t index = 0; index < events.size(); ++index) {
    const auto& said = *events[index];
    const auto* const done
      = said.actions.state_delta.find_last(parts.where, parts.name);
    if (done == nullptr)
      continue;
    if (auto told
        = on_value(line_of(whole->revision() - events.size() + index + 1,
                           said,
                           done->operand.data()));
        !told)
      return told;
  }
  return {};
}

} // namespace troupe::cli
