#include "troupe/server/recovery/recoveries.hpp"

#include "troupe/server/recovery/recovery.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace troupe::serving {

namespace {

// A process counts as ended after its lease, which is longer.
constexpr std::chrono::milliseconds period{2'000};
// A minute between two tries.
constexpr std::size_t looks_max = 30;

// Returns true if a later recovery may succeed.
bool may_succeed_later(const error& why) {
  switch (why.code()) {
  case errc::busy:         // The process of the run lives, but may end.
  case errc::cancelled:    // Another process has taken the run, and may end.
  case errc::not_found:    // Its end here is not stored yet.
  case errc::store_failed: // The store may be back.
    return true;
  default:
    return false;
  }
}

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
    if (left.agent == root.name() && note_try(left))
      recover(root, left);
  forget_closed(app, found);
}

bool recoveries::note_try(const unfinished_run& left) {
  using phase = tried_run::phase;
  const std::lock_guard guard(mutex_);
  const auto known = tried_.find(left.invocation_id);
  std::size_t failures = 0;
  if (known != tried_.end()) {
    auto& before = known->second;
    const bool had_another = before.holder != left.holder && !left.was_refused;
    const bool is_held = !left.is_free && before.is != phase::under_way;
    if (!had_another && !is_held && before.is != phase::failed)
      return false;
    if (is_held || had_another) {
      tried_.erase(known);
    } else if (before.looks_left > 0) {
      --before.looks_left;
      return false;
    } else {
      failures = before.failures;
    }
  }
  if (!left.is_free)
    return false;
  tried_.insert_or_assign(left.invocation_id,
                          tried_run{.app = left.session.app,
                                    .holder = left.holder,
                                    .failures = failures});
  return true;
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
          here->note_end(left.invocation_id, ended);
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
    note_end(left.invocation_id, started);
}

void recoveries::note_end(const std::string& run, const result<void>& ended) {
  using phase = tried_run::phase;
  const std::lock_guard guard(mutex_);
  const auto known = tried_.find(run);
  if (known == tried_.end())
    return;
  auto& tried = known->second;
  if (ended) {
    tried_.erase(known);
  } else if (may_succeed_later(ended.error())) {
    tried.is = phase::failed;
    tried.looks_left
      = std::min((std::size_t{1} << tried.failures) - 1, looks_max);
    tried.failures = std::min(tried.failures + 1, std::size_t{8});
  } else {
    tried.is = phase::settled;
  }
}

// Runs that failed and are not listed need no other try now: they have ended,
// or this process has them.
void recoveries::forget_closed(const std::string& app,
                               const std::vector<unfinished_run>& found) {
  const std::lock_guard guard(mutex_);
  std::erase_if(tried_, [&](const auto& each) {
    const auto& [id, tried] = each;
    return tried.app == app && tried.is == tried_run::phase::failed
           && std::ranges::find(found, id, &unfinished_run::invocation_id)
                == found.end();
  });
}

} // namespace troupe::serving
