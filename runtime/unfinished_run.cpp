// The list of open runs, and runs that are given up.

#include "troupe/runtime/unfinished_run.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/running/lease.hpp"
#include "troupe/agents/turns/recovery.hpp"
#include "troupe/runtime/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using run_list = std::vector<open_run>;

// Number of runs that are read at a time.
constexpr std::size_t run_page_size = 1'000;

// Reads the open runs but those of `skipped`, the oldest first.
result<run_list> read_runs(store& kept,
                           const std::string& app,
                           const std::string& skipped,
                           std::size_t limit) {
  run_query query;
  query.app = app;
  query.limit = run_page_size;
  run_list found;
  while (true) {
    auto page = kept.list_runs(query);
    if (!page)
      return page.error();
    const bool is_last = page->size() < run_page_size;
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
    const bool is_free
      = listed.holder != shared.holder_id
        && actors::is_free(listed, shared.holder_id, shared.options.run_lease);
    const bool was_refused = is_refused(listed.holder);
    shown.push_back({std::move(listed.key),
                     std::move(listed.invocation_id),
                     std::move(listed.agent),
                     listed.opened,
                     std::move(listed.holder),
                     listed.silent,
                     is_free,
                     was_refused});
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

// -- giving up a run ----

// A run to close. Its steps are three calls, each counted by the runtime.
struct run_to_close {
  std::shared_ptr<actors::setup> shared;
  std::weak_ptr<detail::session_backend> backend;
  session_key session;
  std::string id;
  completion<void> done;
};

error not_open(const run_to_close& wanted) {
  return actors::no_open_run(wanted.session, wanted.id);
}

// Finds the holder, as a recovery does.
result<std::string> find_holder(store& kept, const run_to_close& wanted) {
  const auto& shared = *wanted.shared;
  // Before the read: a run that ends here may be closed meanwhile.
  const bool is_closing = shared.store->is_closing(wanted.session, wanted.id);
  auto listed = actors::find_free(kept,
                                  wanted.session,
                                  wanted.id,
                                  shared.holder_id,
                                  shared.options.run_lease);
  if (!listed)
    return listed.error();
  const auto backend = wanted.backend.lock();
  if (backend && backend->has_run(wanted.id))
    return error(
      errc::busy,
      fmt::format("run '{}' of session {} is active in this process; "
                  "wait for its end, or cancel it",
                  wanted.id,
                  to_string(wanted.session)));
  if (is_closing || !*listed)
    return std::string();
  return std::move((*listed)->holder);
}

// A recovery that came first has made its process the holder, and the close had
// no effect. Returns false if the run has been left meanwhile.
result<bool> check_closed(store& kept, const run_to_close& wanted) {
  const auto listed = actors::find_open(kept, wanted.session, wanted.id);
  if (!listed)
    return listed.error();
  if (*listed && is_left((*listed)->holder))
    return false;
  if (*listed)
    return error(errc::busy,
                 fmt::format("process {} has recovered run '{}' of session {} "
                             "meanwhile",
                             (*listed)->holder,
                             wanted.id,
                             to_string(wanted.session)));
  return true;
}

void find_and_close(const std::shared_ptr<run_to_close>& wanted);

void look_again(const std::shared_ptr<run_to_close>& wanted) {
  auto look = std::make_unique<actors::answered<bool>>();
  look->done = [wanted](result<bool> closed) {
    if (closed && !*closed)
      return find_and_close(wanted);
    wanted->done(closed ? result<void>() : closed.error());
  };
  if (!admit_call(*look, *wanted->shared))
    return;
  actors::read_then_complete<bool>(
    *wanted->shared, std::move(look), [wanted](store& kept) {
      return check_closed(kept, *wanted);
    });
}

void close_in_store(const std::shared_ptr<run_to_close>& wanted,
                    std::string holder) {
  auto letter = std::make_unique<actors::give_up_run>();
  auto& change = letter->change;
  change.kind = change_kind::close_runs;
  change.owner
    = {wanted->session.app, wanted->session.user, wanted->session.id};
  // The second mark closes nothing: for a holder that is not this process, the
  // store waits for the disk.
  for (auto each : {holder, holder + "."})
    change.runs.push_back(
      {.invocation_id = wanted->id, .holder = std::move(each), .opens = false});
  letter->done = [wanted](result<bool> written) {
    if (!written)
      return wanted->done(written.error());
    if (!*written)
      return wanted->done(error(errc::store_failed,
                                "the store has lost its last commits; close "
                                "the run again"));
    look_again(wanted);
  };
  if (admit_call(*letter, *wanted->shared))
    wanted->shared->store->push(std::move(letter));
}

void find_and_close(const std::shared_ptr<run_to_close>& wanted) {
  auto find = std::make_unique<actors::answered<std::string>>();
  find->done = [wanted](result<std::string> holder) {
    if (!holder)
      return wanted->done(holder.error());
    if (holder->empty())
      return wanted->done(not_open(*wanted));
    close_in_store(wanted, *std::move(holder));
  };
  if (!admit_call(*find, *wanted->shared))
    return;
  actors::read_then_complete<std::string>(
    *wanted->shared, std::move(find), [wanted](store& kept) {
      return find_holder(kept, *wanted);
    });
}

void start_close(const std::shared_ptr<run_to_close>& wanted) {
  auto key = check_key(wanted->session);
  if (!key)
    return wanted->done(key.error());
  wanted->session = *std::move(key);
  if (!wanted->shared->store)
    return wanted->done(not_open(*wanted));
  find_and_close(wanted);
}

} // namespace

pending<void> runtime::close_run(const session_key& session,
                                 std::string invocation_id) {
  return actors::make_pending<void>(
    backend_->shared(),
    [shared = backend_->share(),
     backend = std::weak_ptr(backend_),
     session,
     id = std::move(invocation_id)](completion<void> done) {
      auto wanted = std::make_shared<run_to_close>(
        run_to_close{shared, backend, session, id, std::move(done)});
      start_close(wanted);
    });
}

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
