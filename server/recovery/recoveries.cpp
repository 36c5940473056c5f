#include "troupe/server/recovery/recoveries.hpp"

#include "troupe/server/recovery/recovery.hpp"

#include <chrono>
#include <utility>
#include <vector>

namespace troupe::serving {

namespace {

// A process counts as ended after its lease, which is longer.
constexpr std::chrono::milliseconds period{2'000};

} // namespace

void recoveries::start() {
  const auto on = on_.lock();
  if (!on)
    return;
  for (const auto& [app, root] : on->apps)
    on->on.unfinished(app).then(
      [self = weak_from_this(),
       app = app](const result<std::vector<unfinished_run>>& found) {
        // The store may be back at the next look.
        if (const auto here = self.lock(); here && found)
          here->take(app, *found);
      });
  on->threads->call_after(period, [self = weak_from_this()] {
    if (const auto here = self.lock())
      here->start();
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
    if (left.is_free && left.agent == root.name() && note_try(left))
      recover(root, left);
}

bool recoveries::note_try(const unfinished_run& left) {
  const std::lock_guard guard(mutex_);
  const auto [known, is_new] = tried_.emplace(left.invocation_id, left.holder);
  if (is_new)
    return true;
  if (left.was_refused || known->second == left.holder)
    return false;
  known->second = left.holder;
  return true;
}

void recoveries::recover(const agent& root, const unfinished_run& left) {
  const auto on = on_.lock();
  if (!on)
    return;
  recovery_calls calls;
  calls.ended = [on = on_, left](const result<void>& ended) {
    const auto here = on.lock();
    if (here && here->options.on_recovery)
      here->options.on_recovery(left, ended);
  };
  const auto started = start_recovery(on,
                                      root,
                                      left.session,
                                      left.invocation_id,
                                      on->options.runs,
                                      std::move(calls));
  if (started)
    return;
  // A request recovers or closes it. If that fails, the next look tries again.
  const std::lock_guard guard(mutex_);
  tried_.erase(left.invocation_id);
}

} // namespace troupe::serving
