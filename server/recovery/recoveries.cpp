#include "troupe/server/recovery/recoveries.hpp"

#include "troupe/server/recovery/recovery.hpp"

#include <chrono>
#include <utility>
#include <vector>

namespace troupe::serving {

namespace {

// A process counts as ended after its lease, which is longer.
constexpr std::chrono::milliseconds period{2'000};

// Returns true if the run itself was not the reason of the failure: its process
// was only silent, or the store failed.
bool may_succeed_later(const result<void>& ended) {
  return !ended
         && (ended.error().code() == errc::busy
             || ended.error().code() == errc::store_failed);
}

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
  calls.ended
    = [self = weak_from_this(), on = on_, left](const result<void>& ended) {
        // Before the call, which may wait for the next try.
        if (const auto here = self.lock(); here && may_succeed_later(ended))
          here->forget_try(left.invocation_id);
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
  // A request recovers or closes it. If that fails, the next look tries again.
  if (!started)
    forget_try(left.invocation_id);
}

void recoveries::forget_try(const std::string& run) {
  const std::lock_guard guard(mutex_);
  tried_.erase(run);
}

} // namespace troupe::serving
