#include "troupe/actors/running/lease.hpp"

#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/pending_call.hpp"

#include <fmt/format.h>

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

bool is_free(const open_run& listed, std::chrono::nanoseconds lease) noexcept {
  return !listed.silent || *listed.silent > lease;
}

result<std::optional<open_run>> find_open(store& kept,
                                          const session_key& key,
                                          const std::string& invocation_id) {
  run_query query;
  query.session = key;
  while (true) {
    auto page = kept.list_runs(query);
    if (!page)
      return page.error();
    for (auto& listed : *page)
      if (listed.invocation_id == invocation_id)
        return std::optional(std::move(listed));
    if (page->size() < query.limit)
      return std::optional<open_run>();
    query.behind = position_of(page->back());
  }
}

result<std::string> find_free(store& kept,
                              const session_key& key,
                              const std::string& invocation_id,
                              const std::string& own,
                              std::chrono::nanoseconds lease) {
  const auto listed = find_open(kept, key, invocation_id);
  if (!listed)
    return listed.error();
  if (!*listed)
    return std::string();
  const auto& holder = (*listed)->holder;
  if (holder == own || holder == left_holder(own) || is_free(**listed, lease))
    return (*listed)->holder;
  return held_elsewhere(**listed, lease);
}

error no_open_run(const session_key& key, const std::string& invocation_id) {
  return {
    errc::not_found,
    fmt::format("session {} has no open run '{}': it has ended or paused, "
                "or there was none",
                to_string(key),
                invocation_id)};
}

pending<std::string> find_free(const std::shared_ptr<setup>& shared,
                               session_key key,
                               std::string invocation_id) {
  return make_pending<std::string>(
    *shared,
    [shared, key = std::move(key), id = std::move(invocation_id)](
      completion<std::string> done) {
      auto wanted = std::make_unique<answered<std::string>>();
      wanted->done = std::move(done);
      if (!admit_call(*wanted, *shared))
        return;
      read_then_complete<std::string>(
        *shared,
        std::move(wanted),
        [shared, key, id](store& kept) -> result<std::string> {
          // Before the read: a run that ends here may be closed meanwhile.
          if (shared->store->is_closing(key, id))
            return std::string();
          return find_free(
            kept, key, id, shared->holder_id, shared->options.run_lease);
        });
    });
}

} // namespace troupe::actors
