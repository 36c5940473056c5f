#include "troupe/server/adk/rights.hpp"

#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/served.hpp"

#include <algorithm>

namespace troupe::serving {

namespace {

bool is_shared(std::string_view key) {
  return key.starts_with(key_prefix_app);
}

} // namespace

response forbidden(std::string_view why) {
  return detail(403, why).with("troupe-error", "forbidden");
}

std::optional<response> check_user(const caller& who, const std::string& user) {
  if (who.sees(spelled(user)))
    return std::nullopt;
  return forbidden("this token is for the data of another user");
}

std::optional<response>
check_rights(const request& head, const path_values& path, const caller& who) {
  if (!head.only_reads() && !who.writes())
    return forbidden("this token reads only");
  if (const auto* user = path.find("user"))
    return check_user(who, *user);
  return std::nullopt;
}

std::optional<response>
check_keys(const caller& who, const json& keys, const json& operations) {
  if (who.is_trusted())
    return std::nullopt;
  for (const auto& [key, data] : keys.items())
    if (is_shared(key))
      return forbidden("this token writes no app: keys, which other users "
                       "share");
  for (const auto& each : operations)
    if (each.is_object() && each.contains("key") && each["key"].is_string()
        && is_shared(each["key"].get_ref<const std::string&>()))
      return forbidden("this token writes no app: keys, which other users "
                       "share");
  return std::nullopt;
}

namespace {

// Returns true if the event has fields by which runs record their work.
bool has_records(const event& said) {
  const auto& fields = said.extra.data();
  if (!fields.is_object())
    return false;
  const auto metadata = fields.find("customMetadata");
  return fields.contains("nodeInfo") || fields.contains("output")
         || (metadata != fields.end() && metadata->is_object()
             && metadata->contains("troupe"));
}

} // namespace

std::optional<response> check_event_of(const caller& who, const event& said) {
  if (who.is_trusted())
    return std::nullopt;
  if (!said.actions.state_delta.share(scope::app).empty())
    return forbidden("this token writes no app: keys, which other users "
                     "share");
  const auto& does = said.actions;
  const bool acts
    = !does.transfer_to_agent.empty() || does.escalate || !does.extra.is_null()
      || does.skip_summarization || !does.artifact_delta.empty()
      || !said.branch.empty() || said.content.role == "model"
      || !said.long_running_tool_ids.empty() || said.author != "user"
      || has_records(said)
      || std::ranges::any_of(said.content.parts, [](const part& each) {
           return each.call() != nullptr || each.response() != nullptr;
         });
  if (!acts)
    return std::nullopt;
  return forbidden("this token appends only events by author user, with text, "
                   "data and state");
}

} // namespace troupe::serving
