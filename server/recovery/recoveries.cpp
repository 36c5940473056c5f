#include "troupe/server/recovery/recoveries.hpp"

#include "troupe/server/recovery/recovery.hpp"

#include <chrono>
#include <utility>
#include <vector>

namespace troupe::serving {

namespace {

// Shorter than the default lease, so a free run is found soon.
constexpr std::chrono::milliseconds period{2'000};

} // namespace

void recoveries::start() {
  const auto on = on_.lock();
  if (!on)
    return;
  for (const auto& [app, root] : on->apps)
    look(app);
}

// Each app waits for its own database only.
void recoveries::look(const std::string& app) {
  const auto on = on_.lock();
  if (!on)
    return;
  on->on.unfinished(app).then(
    [self = weak_from_this(),
     app](const result<std::vector<unfinished_run>>& found) {
      const auto here = self.lock();
      const auto still_on = here ? here->on_.lock() : nullptr;
      if (!still_on)
        return;
      still_on->threads->call_after(period, [self, app] {
        if (const auto later = self.lock())
          later->look(app);
      });
      // The store may be back at the next look.
      if (found)
        here->take(app, *found);
    });
}

void recoveries::take(const std::string& app,
                      const std::vector<unfinished_run>& found) {
  const auto on = on_.lock();
  if (!on)
    return;
  const auto& root = on->apps.at(app);
  // Runs of other agents are those of other programs.
  for (const auto& left : found)
    if (left.agent == root.name() && tried_.begin(left))
      recover(root, left);
  tried_.forget_closed(app, found);
}

void recoveries::recover(const agent& root, const unfinished_run& left) {
  const auto on = on_.lock();
  if (!on)
    return;
  recovery_calls calls;
  calls.ended
    = [self = weak_from_this(), on = on_, left](const result<void>& ended) {
        // Before the call: `on_recovery` may wait until the next try begins.
        if (const auto here = self.lock())
          here->tried_.end(left.invocation_id, ended);
        const auto here = on.lock();
        if (here && here->options.on_recovery)
          here->options.on_recovery(left, ended);
      };
  // A request may be recovering or closing the run.
  if (const auto started = start_recovery(on,
                                          root,
                                          left.session,
                                          left.invocation_id,
                                          on->options.runs,
                                          std::move(calls));
      !started)
    tried_.end(left.invocation_id, started);
}

} // namespace troupe::serving
