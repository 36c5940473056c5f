#include "troupe/actors/retirement.hpp"

#include "troupe/actors/owner_actor.hpp"
#include "troupe/actors/session_actor.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/actors/store_queue.hpp"
#include "troupe/core/mechanism.hpp"

#include <algorithm>
#include <vector>

namespace troupe::actors {

void retirement::start() {
  if (shared_.options.session_idle_max > std::chrono::nanoseconds::zero())
    look_again_later();
}

void retirement::look_again_later() {
  shared_.environment->call_after(shared_.options.session_idle_max
                                    / looks_per_age,
                                  [weak = shared_.weak_from_this()] {
                                    const auto kept = weak.lock();
                                    if (!kept || kept->closing)
                                      return;
                                    kept->retirement.look_after_age();
                                    kept->apps.suggest_leaving(false);
                                    kept->retirement.look_again_later();
                                  });
}

void retirement::look_after_age() {
  std::uint64_t oldest = 0;
  {
    const std::lock_guard guard(mutex_);
    looks_.push_back(shared_.directory.tick());
    if (looks_.size() <= looks_per_age)
      return;
    oldest = looks_.front();
    looks_.pop_front();
  }
  suggest(oldest);
}

// Some more than the limit, so that a look over all is worth it.
bool retirement::is_too_many(std::size_t count) const {
  const auto most = shared_.options.live_sessions_max;
  return count > most + most / 8;
}

void retirement::note_entry() {
  if (is_too_many(shared_.directory.size()) && !counting_.exchange(true))
    shared_.store->read([this](store&) { look_after_number(); });
}

void retirement::note_apps(std::size_t count) {
  if (is_too_many(count) && !counting_apps_.exchange(true))
    shared_.store->read([this](store&) {
      counting_apps_ = false;
      shared_.apps.suggest_leaving(true);
    });
}

void retirement::look_after_number() {
  std::vector<std::uint64_t> used;
  for (const auto& each : shared_.directory.all())
    used.push_back(as_session(each).last_used());
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
  if (is_broken(mechanism::leaving_memory))
    return;
  for (const auto& each : shared_.directory.all())
    if (as_session(each).last_used() <= tick)
      as_inbox(each).tell(
        std::make_unique<retire>(retire::step::suggested, std::string()));
}

} // namespace troupe::actors
