#include "troupe/actors/owners/retirement.hpp"

#include "troupe/actors/messages.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/owner.hpp"
#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/setup.hpp"

#include <algorithm>

namespace troupe::actors {

void retirement::start() {
  if (shared_.options.session_idle_max > std::chrono::nanoseconds::zero())
    schedule_idle_check();
}

void retirement::schedule_idle_check() {
  shared_.environment->call_after(shared_.options.session_idle_max
                                    / idle_checks_per_age,
                                  [weak = std::weak_ptr(shared_.share())] {
                                    const auto kept = weak.lock();
                                    if (!kept || kept->closing)
                                      return;
                                    kept->retirement->evict_idle();
                                    kept->apps->suggest_leaving(false);
                                    kept->retirement->schedule_idle_check();
                                  });
}

void retirement::evict_idle() {
  std::uint64_t oldest = 0;
  {
    const std::lock_guard guard(mutex_);
    idle_checks_.push_back(shared_.directory->tick());
    if (idle_checks_.size() <= idle_checks_per_age)
      return;
    oldest = idle_checks_.front();
    idle_checks_.pop_front();
  }
  shared_.directory->suggest_leaving(oldest);
}

// Allows one eighth above the limit, so that each scan of all owners evicts
// many.
bool retirement::is_too_many(std::size_t count) const {
  const auto most = shared_.options.live_sessions_max;
  return count > most + most / 8;
}

// Sessions that cannot leave may exceed the limit for long, so there is one
// scan for as many entries as it may evict.
void retirement::note_entry() {
  const auto entries = entries_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (entries >= shared_.options.live_sessions_max / 8
      && is_too_many(shared_.directory->size()) && !counting_.exchange(true))
    call_later(shared_, [this] { evict_surplus(); });
}

void retirement::note_apps(std::size_t count) {
  if (is_too_many(count) && !counting_apps_.exchange(true))
    call_later(shared_, [this] {
      counting_apps_ = false;
      shared_.apps->suggest_leaving(true);
    });
}

void retirement::evict_surplus() {
  // Before the scan: a session that enters after it asks for another one.
  entries_ = 0;
  counting_ = false;
  auto used = shared_.directory->last_uses();
  const auto most = shared_.options.live_sessions_max;
  if (used.size() <= most)
    return;
  const auto last
    = used.begin() + static_cast<std::ptrdiff_t>(used.size() - most - 1);
  std::ranges::nth_element(used, last);
  shared_.directory->suggest_leaving(*last);
}

} // namespace troupe::actors
