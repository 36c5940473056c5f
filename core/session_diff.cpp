#include "troupe/core/session_diff.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {

namespace {

std::size_t common_beginning(const event_slice& left,
                             const event_slice& right) {
  const auto shorter = std::min(left.size(), right.size());
  std::size_t count = 0;
  while (count < shorter && left[count]->id == right[count]->id)
    ++count;
  return count;
}

} // namespace

session_diff diff(const session& before, const session& after) {
  std::map<std::string, key_difference> found;
  for (const auto& [key, data] : before.state())
    found[key] = {key, data, {}};
  for (const auto& [key, data] : after.state()) {
    const auto known = found.find(key);
    if (known == found.end())
      found[key] = {key, {}, data};
    else if (known->second.before == data)
      found.erase(known);
    else
      known->second.after = data;
  }
  session_diff made;
  for (auto& [key, difference] : found)
    made.keys.push_back(std::move(difference));
  const auto common = common_beginning(before.events(), after.events());
  made.before = before.events().part(common, before.events().size());
  made.after = after.events().part(common, after.events().size());
  return made;
}

json to_json(const std::vector<key_difference>& keys) {
  auto all = json::array();
  for (const auto& each : keys) {
    json shown = {{"key", each.key}};
    if (each.before)
      shown["before"] = *each.before;
    if (each.after)
      shown["after"] = *each.after;
    all.push_back(std::move(shown));
  }
  return all;
}

json to_json(const session_diff& found) {
  return {{"keys", to_json(found.keys)},
          {"eventsBefore", to_json(found.before)},
          {"eventsAfter", to_json(found.after)}};
}

} // namespace troupe
