#include "troupe/core/state_change.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe {

std::vector<key_difference>
changed_keys(const state_map* before, const state_map& after, scope where) {
  std::vector<key_difference> found;
  after.for_each([&](std::string_view name, const value& data) {
    const auto* former = before ? before->find(name) : nullptr;
    if (former != nullptr && *former == data)
      return;
    key_difference changed{join_key(where, name), {}, data.data()};
    if (former != nullptr)
      changed.before = former->data();
    found.push_back(std::move(changed));
  });
  if (before != nullptr)
    before->for_each([&](std::string_view name, const value& data) {
      if (after.find(name) == nullptr)
        found.push_back({join_key(where, name), data.data(), {}});
    });
  std::ranges::sort(found, {}, &key_difference::key);
  return found;
}

json to_json(const state_change& change) {
  return {{"revision", change.revision},
          {"state", change.state.all()},
          {"keys", to_json(change.keys)},
          {"listsAll", change.lists_all}};
}

} // namespace troupe
