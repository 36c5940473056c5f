#include "troupe/actors/sessions/overwritten.hpp"

#include <algorithm>
#include <string>

namespace troupe::actors {

namespace {

bool changes_key(const event& said, const std::string& name) {
  return said.actions.state_delta.find_last(scope::session, name) != nullptr;
}

std::string newest_change(const std::string& name,
                          const std::vector<append*>& accepted,
                          const event_window& decided) {
  for (auto next = accepted.rbegin() + 1; next != accepted.rend(); ++next)
    if (changes_key(*(*next)->event, name))
      return (*next)->event->id;
  for (auto number = decided.revision(); decided.has(number); --number)
    if (changes_key(*decided.at(number), name))
      return decided.at(number)->id;
  return {};
}

} // namespace

void name_overwritten(basis_check& by,
                      const std::vector<append*>& accepted,
                      const event_window& decided) {
  for (auto& each : by.losses())
    if (each.by_owner && each.where == scope::session)
      each.event_id = newest_change(each.name, accepted, decided);
}

} // namespace troupe::actors
