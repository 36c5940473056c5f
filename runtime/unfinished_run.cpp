// The list of open runs.

#include "troupe/runtime/unfinished_run.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/running/lease.hpp"
#include "troupe/runtime/runtime.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using run_list = std::vector<open_run>;

// Number of runs that are read at a time.
constexpr std::size_t page_size = 1'000;

// Reads the open runs but those of `skipped`, the oldest first.
result<run_list> read_runs(store& kept,
                           const std::string& app,
                           const std::string& skipped,
                           std::size_t limit) {
  run_query query;
  query.app = app;
  query.limit = page_size;
  run_list found;
  while (true) {
    auto page = kept.list_runs(query);
    if (!page)
      return page.error();
    const bool is_last = page->size() < page_size;
    if (!is_last)
      query.behind = position_of(page->back());
    for (auto& listed : *page)
      if (found.size() < limit && listed.holder != skipped)
        found.push_back(std::move(listed));
    if (is_last || found.size() == limit)
      return found;
  }
}

std::vector<unfinished_run> show(run_list found, const actors::setup& shared) {
  std::vector<unfinished_run> shown;
  shown.reserve(found.size());
  for (auto& listed : found) {
    const bool is_free = listed.holder != shared.holder_id
                         && actors::is_free(listed, shared.options.run_lease);
    shown.push_back({std::move(listed.key),
                     std::move(listed.invocation_id),
                     std::move(listed.agent),
                     listed.opened,
                     std::move(listed.holder),
                     listed.silent,
                     is_free});
  }
  return shown;
}

void start_list(const std::shared_ptr<actors::setup>& shared,
                const std::string& app,
                const unfinished_options& options,
                completion<std::vector<unfinished_run>> done) {
  if (!app.empty())
    if (const auto checked = check_id(app, "app"); !checked)
      return done(checked.error());
  if (options.limit == 0)
    return done(error(errc::invalid_argument, "the limit of a list is 0"));
  if (!shared->store)
    return done(std::vector<unfinished_run>());
  auto wanted = std::make_unique<actors::answered<run_list>>();
  wanted->done = [shared, done = std::move(done)](result<run_list> found) {
    done(found ? result<std::vector<unfinished_run>>(
           show(std::move(*found), *shared))
               : found.error());
  };
  if (!admit_call(*wanted, *shared))
    return;
  actors::read_then_complete<run_list>(
    *shared,
    std::move(wanted),
    [app,
     limit = options.limit,
     skipped = options.with_own ? std::string() : shared->holder_id](
      store& kept) { return read_runs(kept, app, skipped, limit); });
}

} // namespace

pending<std::vector<unfinished_run>>
runtime::unfinished(std::string app, unfinished_options options) {
  return actors::make_pending<std::vector<unfinished_run>>(
    backend_->shared(),
    [shared = backend_->share(), app = std::move(app), options](
      completion<std::vector<unfinished_run>> done) {
      start_list(shared, app, options, std::move(done));
    });
}

} // namespace troupe
