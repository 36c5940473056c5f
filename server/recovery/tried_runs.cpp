#include "troupe/server/recovery/tried_runs.hpp"

#include <algorithm>

namespace troupe::serving {

namespace {

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

bool tried_runs::begin(const unfinished_run& listed) {
  using phase = tried_run::phase;
  const std::lock_guard guard(mutex_);
  const auto known = tried_.find(listed.invocation_id);
  std::size_t failures = 0;
  if (known != tried_.end()) {
    auto& before = known->second;
    // After a failure the holder may be a name under which this process has
    // left the run.
    const bool had_another = before.is != phase::failed
                             && before.holder != listed.holder
                             && !listed.was_refused;
    const bool is_held = !listed.is_free && before.is != phase::under_way;
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
  if (!listed.is_free)
    return false;
  tried_.insert_or_assign(listed.invocation_id,
                          tried_run{.app = listed.session.app,
                                    .holder = listed.holder,
                                    .failures = failures});
  return true;
}

void tried_runs::end(const std::string& run, const result<void>& ended) {
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
      = std::min(std::size_t{1} << tried.failures, looks_max) - 1;
    tried.failures = std::min(tried.failures + 1, std::size_t{5});
  } else {
    tried.is = phase::settled;
  }
}

void tried_runs::forget_closed(const std::string& app,
                               const std::vector<unfinished_run>& listed) {
  const std::lock_guard guard(mutex_);
  std::erase_if(tried_, [&](const auto& each) {
    const auto& [id, tried] = each;
    return tried.app == app && tried.is == tried_run::phase::failed
           && std::ranges::find(listed, id, &unfinished_run::invocation_id)
                == listed.end();
  });
}

} // namespace troupe::serving
