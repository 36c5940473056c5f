#include "troupe/actors/owners/retirement.hpp"

#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/owner.hpp"
#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/setup.hpp"

#include <algorithm>
#include <vector>

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
  suggest(oldest);
}

// Allows one eighth above the limit, so that each scan of all owners evicts
// many.
bool retirement::is_too_many(std::size_t count) const {
  const auto most = shared_.options.live_sessions_max;
  return count > most + most / 8;
}

void retirement::note_entry() {
  if (is_too_many(shared_.directory->size()) && !counting_.exchange(true))
    shared_.store->read([this](store&) { evict_surplus(); });
}

void retirement::note_apps(std::size_t count) {
  if (is_too_many(count) && !counting_apps_.exchange(true))
    shared_.store->read([this](store&) {
      counting_apps_ = false;
      shared_.apps->suggest_leaving(true);
    });
}

void retirement::evict_surplus() {
  std::vector<std::uint64_t> used;
  for (const auto& each : shared_.directory->all())
    used.push_back(each->last_used());
  counting_ = false;
  const auto most = shared_.options.live_sessions_max;
  if (used.size() <= most)
    return;
  const auto last
    = used.begin() + static_cast<std::ptrdiff_t>(used.size() - most - 1);
  std::ranges::nth_element(used, last);
  suggest(*last);
}

void retirement::suggest(std::uint64_t tick) {
  for (const auto& each : shared_.directory->all())
    if (each->last_used() <= tick)
      each->tell(
        std::make_unique<retire>(retire::step::suggested, std::string()));
}

} // namespace troupe::actors
