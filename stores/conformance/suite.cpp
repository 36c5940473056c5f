#include "troupe/stores/conformance/suite.hpp"

#include "troupe/stores/conformance/run.hpp"

#include <algorithm>

namespace troupe {

bool store_factory::promises(store_promise asked) const {
  return std::ranges::find(without, asked) == without.end();
}

std::vector<conformance_check>
conformance_checks(const store_factory& factory) {
  std::vector<conformance_check> checks;
  for (auto&& group : {conformance::commit_checks(),
                       conformance::removal_checks(),
                       conformance::load_checks(),
                       conformance::list_checks(),
                       conformance::event_checks(),
                       conformance::fork_checks(),
                       conformance::trim_checks(),
                       conformance::open_run_checks(),
                       conformance::place_checks()})
    for (const auto& check : group)
      if (std::ranges::all_of(check.needs, [&factory](store_promise needed) {
            return factory.promises(needed);
          }))
        checks.push_back(check);
  return checks;
}

} // namespace troupe
