#include "troupe/actors/running/lease.hpp"

#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/running/holder_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::actors {

namespace {

error held_elsewhere(const open_run& listed, std::chrono::nanoseconds lease) {
  using std::chrono::ceil;
  using std::chrono::milliseconds;
  const auto silent = *listed.silent;
  return {errc::busy,
          fmt::format("process {} of run {} on session {} was heard of {} ms "
                      "ago; try again after {} ms",
                      listed.holder,
                      listed.invocation_id,
                      to_string(listed.key),
                      std::chrono::floor<milliseconds>(silent).count(),
                      ceil<milliseconds>(lease - silent).count())};
}

} // namespace

bool is_silent(const open_run& listed,
               std::chrono::nanoseconds lease) noexcept {
  return !listed.silent || *listed.silent > lease;
}

bool is_free(const open_run& listed,
             const std::string& own,
             std::chrono::nanoseconds lease) {
  return is_silent(listed, lease) || is_left(listed.holder)
         || has_died(listed.holder, own);
}

result<std::vector<open_run>> list_session(store& kept,
                                           const session_key& key) {
  run_query query;
  query.session = key;
  return list_all_runs(kept, std::move(query));
}

result<std::vector<open_run>> list_all_runs(store& kept, run_query query) {
  std::vector<open_run> found;
  while (true) {
    auto page = kept.list_runs(query);
    if (!page)
      return page.error();
    const bool is_last = page->size() < query.limit;
    if (!is_last)
      query.behind = position_of(page->back());
    std::ranges::move(*page, std::back_inserter(found));
    if (is_last)
      return found;
  }
}

result<std::optional<open_run>> find_open(store& kept,
                                          const session_key& key,
                                          const std::string& invocation_id) {
  auto all = list_session(kept, key);
  if (!all)
    return all.error();
  const auto found
    = std::ranges::find(*all, invocation_id, &open_run::invocation_id);
  return found == all->end() ? std::optional<open_run>()
                             : std::optional(std::move(*found));
}

result<std::optional<open_run>> find_free(store& kept,
                                          const session_key& key,
                                          const std::string& invocation_id,
                                          const std::string& own,
                                          std::chrono::nanoseconds lease) {
  auto listed = find_open(kept, key, invocation_id);
  if (!listed || !*listed)
    return listed;
  const auto& holder = (*listed)->holder;
  if (holder == own || is_free(**listed, own, lease))
    return listed;
  return held_elsewhere(**listed, lease);
}

former_holder holder_of(const open_run& free, const setup& shared) {
  using std::chrono::microseconds;
  const auto lease = shared.options.run_lease;
  const bool counts = free.holder != shared.holder_id && !is_left(free.holder)
                      && is_silent(free, lease);
  return {free.holder,
          counts ? std::optional(std::chrono::ceil<microseconds>(lease))
                 : std::nullopt};
}

error no_open_run(const session_key& key, const std::string& invocation_id) {
  return {
    errc::not_found,
    fmt::format("session {} has no open run '{}': it has ended or paused, "
                "or there was none",
                to_string(key),
                invocation_id)};
}

pending<std::optional<open_run>> find_free(const std::shared_ptr<setup>& shared,
                                           session_key key,
                                           std::string invocation_id) {
  using found_run = std::optional<open_run>;
  return make_pending<found_run>(
    *shared,
    [shared, key = std::move(key), id = std::move(invocation_id)](
      completion<found_run> done) {
      auto wanted = std::make_unique<answered<found_run>>();
      wanted->done = std::move(done);
      if (!admit_call(*wanted, *shared))
        return;
      read_then_complete<found_run>(
        *shared,
        std::move(wanted),
        [shared, key, id](store& kept) -> result<found_run> {
          // Before the read: a run that ends here may be closed meanwhile.
          if (shared->store->is_closing(key, id))
            return found_run();
          return find_free(
            kept, key, id, shared->holder_id, shared->options.run_lease);
        });
    });
}

} // namespace troupe::actors
