#include "troupe/server/adk/forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::serving {

namespace {

json renamed(json keys, std::string_view from, std::string_view to) {
  if (!keys.is_object())
    return keys;
  const auto found = keys.find(from);
  if (found == keys.end())
    return keys;
  auto data = std::move(*found);
  keys.erase(found);
  keys[std::string(to)] = std::move(data);
  return keys;
}

// The alphabets differ in two letters.
void make_url_safe(json& part) {
  const auto inlined = part.find("inlineData");
  if (inlined == part.end() || !inlined->is_object())
    return;
  const auto data = inlined->find("data");
  if (data == inlined->end() || !data->is_string())
    return;
  auto& text = data->get_ref<std::string&>();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
}

} // namespace

json keys_from_adk(json keys) {
  return renamed(std::move(keys), metadata_key_adk, metadata_key);
}

json keys_to_adk(json keys) {
  return renamed(std::move(keys), metadata_key, metadata_key_adk);
}

json event_form(const event& said) {
  auto shown = to_json(said);
  auto& actions = shown["actions"];
  actions.erase("appliedOps"); // Clients of ADK refuse fields they do not know.
  actions["stateDelta"] = keys_to_adk(std::move(actions["stateDelta"]));
  for (const char* name :
       {"requestedAuthConfigs", "requestedToolConfirmations"})
    if (!actions.contains(name))
      actions[name] = json::object();
  if (const auto content = shown.find("content"); content != shown.end())
    for (auto& part : (*content)["parts"])
      make_url_safe(part);
  return shown;
}

json session_form(const session& fetched) {
  auto events = json::array();
  for (const auto& said : fetched.events())
    events.push_back(event_form(*said));
  json shown = {{"id", fetched.key().id},
                {"appName", fetched.key().app},
                {"userId", fetched.key().user},
                {"state", keys_to_adk(fetched.state().all())},
                {"events", std::move(events)},
                {"lastUpdateTime", to_seconds(fetched.last_update_time())}};
  // ADK has no earlier revisions, and its clients do not ask for them.
  if (fetched.is_earlier())
    shown["sharedStateIsOfNow"] = fetched.shared_state_is_of_now();
  return shown;
}

std::string etag_of(std::uint64_t revision) {
  return fmt::format("\"{}\"", revision);
}

} // namespace troupe::serving
