// Runs that a store lists as open: opened with their message, closed at their
// end, and free when their process is gone.

#include "troupe/actors/backend.hpp"
#include "troupe/actors/running/lease.hpp"
#include "troupe/agents/turns/recovery.hpp"
#include "troupe/stores/sqlite/open.hpp"

#include "locations.hpp"
#include "pause_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(open_runs, *boost::unit_test::timeout(120))

namespace {

/// A runtime on a location, and one more that looks at it.
struct watched {
  explicit watched(const std::string& kind)
    : at(kind),
      runner(std::make_unique<pause_fixture>(at.options())),
      watcher(at.options()) {}

  std::vector<unfinished_run> seen(const unfinished_options& options = {}) {
    return watcher.runtime.unfinished("press", options).get().value();
  }

  run start_held() {
    auto started = runner->runtime.run(asks("waits", model), runner->key, "go");
    model->asked.await(1);
    return started;
  }

  location_of at;
  std::shared_ptr<held_model> model = std::make_shared<held_model>();
  std::unique_ptr<pause_fixture> runner;
  runtime_fixture watcher;
};

} // namespace

BOOST_DATA_TEST_CASE(a_run_is_listed_while_it_is_active,
                     data::make(shared_kinds)) {
  watched on(sample);
  auto started = on.start_held();
  const auto found = on.seen();
  BOOST_TEST_REQUIRE(found.size() == 1U);
  const auto& listed = found.front();
  const auto message = on.runner->events(on.runner->key).front();
  BOOST_TEST(to_string(listed.session) == "press/ann/s");
  BOOST_TEST(listed.invocation_id == message->invocation_id);
  BOOST_TEST(listed.agent == "waits");
  BOOST_TEST(!listed.holder.empty());
  BOOST_TEST(listed.silent.has_value());
  BOOST_TEST(!listed.is_free);
  BOOST_TEST(on.watcher.runtime.unfinished("").get().value().size() == 1U);
  BOOST_TEST(on.watcher.runtime.unfinished("other").get().value().empty());
  on.model->answer("done");
  BOOST_TEST(code_of(started.wait().get()) == "ok");
}

BOOST_DATA_TEST_CASE(a_runtime_lists_its_own_runs_when_asked,
                     data::make(shared_kinds)) {
  watched on(sample);
  auto started = on.start_held();
  auto& own = on.runner->runtime;
  BOOST_TEST(own.unfinished("press").get().value().empty());
  const auto found = own.unfinished("press", {.with_own = true}).get().value();
  BOOST_TEST_REQUIRE(found.size() == 1U);
  BOOST_TEST(!found.front().is_free);
  on.model->answer("done");
  started.wait().get().value();
}

// Shutting down writes all that is queued.
BOOST_DATA_TEST_CASE(a_run_that_has_ended_is_closed, data::make(shared_kinds)) {
  watched on(sample);
  BOOST_TEST(on.runner->perform(says("a", "1")) == "a=1 | ok");
  BOOST_TEST(on.runner->perform(fails("a")) == "| callback_failed");
  BOOST_TEST(on.runner->go(one_call("asks", order())).ends_with("| ok"));
  BOOST_TEST(on.runner->waits.size() == 1U);
  auto cancelled = on.start_held();
  cancelled.cancel();
  BOOST_TEST(code_of(cancelled.wait().get()) == "cancelled");
  on.runner->runtime.shut_down().value();
  BOOST_TEST(on.seen().empty());
}

BOOST_DATA_TEST_CASE(a_run_that_never_began_is_not_listed,
                     data::make(shared_kinds)) {
  watched on(sample);
  auto started = on.start_held();
  auto queued = on.runner->runtime.run(says("b", "2"), on.runner->key, "go");
  run_options rejected;
  rejected.policy = run_policy::reject;
  BOOST_TEST(on.runner->perform(says("c", "3"), rejected) == "| busy");
  BOOST_TEST(on.seen().size() == 1U);
  queued.cancel();
  BOOST_TEST(code_of(queued.wait().get()) == "cancelled");
  on.model->answer("done");
  started.wait().get().value();
  on.runner->runtime.shut_down().value();
  BOOST_TEST(on.seen().empty());
}

BOOST_DATA_TEST_CASE(runs_that_a_shutdown_leaves_are_free,
                     data::make(shared_kinds)) {
  watched on(sample);
  auto started = on.start_held();
  on.runner.reset();
  BOOST_TEST(code_of(started.wait().get()) != "ok");
  const auto found = on.seen();
  BOOST_TEST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found.front().is_free);
  BOOST_TEST(!found.front().silent.has_value());
}

// The store hears of it after the end of the run.
BOOST_DATA_TEST_CASE(a_run_that_was_left_is_recovered_by_another_process,
                     data::make(shared_kinds)) {
  watched on(sample);
  auto started = on.start_held();
  started.leave();
  BOOST_TEST(code_of(started.wait().get()) == "cancelled");
  auto found = on.seen();
  while (found.size() == 1U && !found.front().is_free) {
    std::this_thread::yield();
    found = on.seen();
  }
  BOOST_TEST_REQUIRE(found.size() == 1U);
  auto& other = on.watcher.runtime;
  auto again = other.recover(
    says("waits", "done"), on.runner->key, found.front().invocation_id);
  BOOST_TEST(code_of(again.wait().get()) == "ok");
  BOOST_TEST(
    other.sessions().get(on.runner->key).value().events().back()->text()
    == "done");
}

// A process recovers the runs that it has left itself.
BOOST_DATA_TEST_CASE(a_run_is_left_and_recovered_again_in_one_process,
                     data::make(shared_kinds)) {
  watched on(sample);
  auto& own = on.runner->runtime;
  auto started = on.start_held();
  const auto id = started.invocation_id();
  started.leave();
  BOOST_TEST(code_of(started.wait().get()) == "cancelled");
  auto second = own.recover(asks("waits", on.model), on.runner->key, id);
  on.model->asked.await(2);
  second.leave();
  BOOST_TEST(code_of(second.wait().get()) == "cancelled");
  auto third = own.recover(says("waits", "done"), on.runner->key, id);
  BOOST_TEST(code_of(third.wait().get()) == "ok");
  own.shut_down().value();
  // The end of the last one has closed it.
  BOOST_TEST(on.seen().empty());
}

namespace {

/// A file that is put back to an earlier state while runtimes use it.
class restored_file {
public:
  runtime_options options() const {
    runtime_options chosen;
    chosen.append_wait_max = {};
    chosen.store = "sqlite:" + file().string();
    return chosen;
  }

  // No runtime writes meanwhile.
  void copy() const {
    for (const auto* end : {"", "-wal"})
      std::filesystem::copy_file(file().string() + end,
                                 copied().string() + end);
    open_sqlite_store(copied()).value()->close().value();
  }

  void remove() const {
    for (const auto* end : {"", "-wal", "-shm"})
      std::filesystem::remove(file().string() + end);
  }

  void put_back() const { std::filesystem::rename(copied(), file()); }

private:
  std::filesystem::path file() const { return folder_.path() / "s.db"; }

  std::filesystem::path copied() const { return folder_.path() / "copy.db"; }

  const temporary_folder folder_;
};

} // namespace

// The copy has the run open, which then ends. The process that has executed it
// lives on, and may notice that the file is removed before the copy is there.
BOOST_DATA_TEST_CASE(a_run_that_a_restore_has_opened_again_is_left,
                     data::make({0, 1}) * data::make({false, true}),
                     recoveries,
                     notices_removal) {
  const restored_file at;
  pause_fixture runner(at.options());
  runtime_fixture other(at.options());
  const auto seen
    = [&other] { return other.runtime.unfinished("press").get().value(); };
  const auto model = std::make_shared<held_model>();
  auto started = runner.runtime.run(asks("waits", model), runner.key, "go");
  model->asked.await(1);
  const auto id = started.invocation_id();
  for (int left = 0; left < recoveries; ++left) {
    started.leave();
    static_cast<void>(started.wait().get());
    started = runner.runtime.recover(asks("waits", model), runner.key, id);
    model->asked.await(static_cast<std::size_t>(left) + 2);
  }
  at.copy();
  model->answer("done");
  BOOST_TEST(code_of(started.wait().get()) == "ok");
  while (!seen().empty())
    std::this_thread::yield();
  at.remove();
  if (notices_removal)
    BOOST_TEST(code_of(runner.sessions().get(runner.key).get()) == "not_found");
  at.put_back();
  const auto elsewhere = runner.open("elsewhere");
  runner.sessions().append_event(elsewhere, change({{"news", 1}})).value();
  // By the lease it would be free in the end, too, under its old name.
  while (!seen().at(0).is_free)
    std::this_thread::yield();
  BOOST_TEST(is_left(seen().at(0).holder));
  auto again = other.runtime.recover(says("waits", "done"), runner.key, id);
  BOOST_TEST(code_of(again.wait().get()) == "ok");
  BOOST_TEST(seen().empty());
}

BOOST_DATA_TEST_CASE(a_run_that_was_cancelled_is_not_left,
                     data::make(shared_kinds)) {
  watched on(sample);
  auto started = on.start_held();
  started.cancel();
  started.leave();
  BOOST_TEST(code_of(started.wait().get()) == "cancelled");
  on.runner->runtime.shut_down().value();
  BOOST_TEST(on.seen().empty());
}

BOOST_DATA_TEST_CASE(a_run_cancelled_before_the_shutdown_is_closed,
                     data::make(shared_kinds)) {
  watched on(sample);
  auto started = on.start_held();
  started.cancel();
  on.runner.reset();
  BOOST_TEST(on.seen().empty());
}

BOOST_DATA_TEST_CASE(a_run_goes_with_its_session, data::make(shared_kinds)) {
  watched on(sample);
  auto started = on.start_held();
  auto fork = on.watcher.sessions().fork(on.runner->key).get();
  BOOST_TEST_REQUIRE(code_of(fork) == "ok");
  BOOST_TEST(on.seen().size() == 1U);
  on.runner->sessions().remove(on.runner->key).get().value();
  BOOST_TEST(code_of(started.wait().get()) == "cancelled");
  BOOST_TEST(on.seen().empty());
}

BOOST_AUTO_TEST_CASE(bad_questions_are_refused) {
  staged_place place;
  runtime_fixture on(place.options());
  auto& owners = on.runtime;
  BOOST_TEST(code_of(owners.unfinished("a\xff").get()) == "invalid_argument");
  BOOST_TEST(code_of(owners.unfinished("press", {.limit = 0}).get())
             == "invalid_argument");
  owners.shut_down().value();
  BOOST_TEST(code_of(owners.unfinished("press").get()) == "cancelled");
  runtime_options none;
  none.run_lease = 0s;
  BOOST_TEST(code_of(runtime::open(none)) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_runtime_without_a_store_lists_nothing) {
  agent_fixture on;
  const auto model = std::make_shared<held_model>();
  auto started = on.runtime.run(asks("waits", model), on.key, "go");
  model->asked.await(1);
  BOOST_TEST(
    on.runtime.unfinished("press", {.with_own = true}).get().value().empty());
  model->answer("done");
  started.wait().get().value();
}

namespace {

// Keeps no open runs, as a store from before.
class plain_store final : public forwarding_store {
public:
  using forwarding_store::forwarding_store;

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    for (const auto& change : changes)
      marks += change.runs.size();
    return forwarding_store::commit(changes);
  }

  bool can_list_runs() const noexcept override { return false; }

  result<std::vector<open_run>> list_runs(const run_query& query) override {
    return store::list_runs(query);
  }

  std::atomic<std::size_t> marks = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_store_that_keeps_no_runs_gets_no_marks) {
  const auto plain = std::make_shared<plain_store>(make_memory_store());
  runtime_options options;
  options.store = std::static_pointer_cast<store>(plain);
  agent_fixture on(std::move(options));
  BOOST_TEST(on.perform(says("a", "1")) == "a=1 | ok");
  const auto refused = on.runtime.unfinished("press").get();
  BOOST_TEST(code_of(refused) == "invalid_argument");
  BOOST_TEST(reason_of(refused).find("store::list_runs") != std::string::npos);
  on.runtime.shut_down().value();
  BOOST_TEST(plain->marks == 0U);
}

// -- the lease ----

namespace {

// A store whose process may die: it then writes nothing more.
class mortal_store final : public forwarding_store {
public:
  using forwarding_store::forwarding_store;

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    const bool closes
      = std::ranges::any_of(changes, [](const store_change& change) {
          return change.kind == change_kind::close_runs;
        });
    if (closes)
      closings.add();
    if (is_dead || (closes && closings_to_fail-- > 0))
      return error(errc::store_failed, "told to fail");
    return forwarding_store::commit(changes);
  }

  result<void> renew_holder(const std::string& id) override {
    if (is_dead)
      return error(errc::store_failed, "told to fail");
    auto renewed = forwarding_store::renew_holder(id);
    renewals.add();
    return renewed;
  }

  result<void> remove_holder(const std::string& id) override {
    if (is_dead)
      return error(errc::store_failed, "told to fail");
    return forwarding_store::remove_holder(id);
  }

  std::atomic<bool> is_dead = false;
  std::atomic<int> closings_to_fail = 0;
  tally renewals;
  tally closings; ///< Commits that close runs.
};

// Two runtimes on one store whose clock is simulated.
struct leased {
  leased()
    : runner(options(kept)),
      watcher(options(make_memory_store(place))) {}

  // Boost.Test shows the failure before the runtime ends.
  ~leased() { model->forget(); }

  runtime_options options(std::shared_ptr<store> on) const {
    runtime_options chosen;
    chosen.append_wait_max = {};
    chosen.environment = clock;
    chosen.run_lease = 9s;
    chosen.store = std::move(on);
    return chosen;
  }

  unfinished_run seen() {
    return watcher.runtime.unfinished("press").get().value().at(0);
  }

  // Blocks, as on a reading thread.
  result<void> check(const std::string& id) {
    const auto& shared = detail::backend_of(watcher.runtime)->share();
    const auto checked
      = actors::find_free(shared, {"press", "ann", "s"}, id).get();
    return checked ? result<void>() : checked.error();
  }

  run start_held() {
    auto started = runner.runtime.run(asks("waits", model), runner.key, "go");
    model->asked.await(1);
    return started;
  }

  const std::shared_ptr<simulated_environment> clock
    = std::make_shared<simulated_environment>(1);
  const std::shared_ptr<memory_data> place
    = make_memory_data([clock = clock] { return clock->now(); });
  const std::shared_ptr<mortal_store> kept
    = std::make_shared<mortal_store>(make_memory_store(place));
  const std::shared_ptr<held_model> model = std::make_shared<held_model>();
  agent_fixture runner;
  runtime_fixture watcher;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_living_process_renews_its_lease) {
  leased on;
  auto started = on.start_held();
  for (std::size_t count = 1; count <= 6; ++count) {
    on.clock->advance(3s);
    on.kept->renewals.await(count);
    BOOST_TEST(on.seen().silent.value() == 0us);
    BOOST_TEST(!on.seen().is_free);
  }
  on.clock->advance(1s);
  BOOST_TEST(on.seen().silent.value() == 1s);
  on.model->answer("done");
  started.wait().get().value();
}

BOOST_AUTO_TEST_CASE(renewals_end_with_the_last_run) {
  leased on;
  auto started = on.start_held();
  on.model->answer("done");
  started.wait().get().value();
  on.kept->closings.await(1);
  // An answer passes the queue behind the commit that has closed the run.
  on.runner.append(on.runner.key, {{"k", 1}});
  on.clock->advance(30s);
  on.runner.append(on.runner.key, {{"k", 2}});
  BOOST_TEST(on.kept->renewals.count() == 0U);
  // The next run starts them again.
  auto next
    = on.runner.runtime.run(asks("waits", on.model), on.runner.key, "go");
  on.model->asked.await(2);
  on.clock->advance(3s);
  on.kept->renewals.await(1);
  on.model->answer("done");
  next.wait().get().value();
}

BOOST_AUTO_TEST_CASE(a_process_that_is_silent_loses_its_runs_after_the_lease) {
  leased on;
  auto started = on.start_held();
  const auto id = on.seen().invocation_id;
  BOOST_TEST(code_of(on.check(id)) == "busy");
  on.kept->is_dead = true;
  on.clock->advance(4s);
  BOOST_TEST(!on.seen().is_free);
  const auto busy = on.check(id);
  BOOST_TEST(code_of(busy) == "busy");
  BOOST_TEST(reason_of(busy).find("was heard of 4000 ms ago; try again after "
                                  "5000 ms")
               != std::string::npos,
             reason_of(busy));
  on.clock->advance(5s);
  BOOST_TEST(!on.seen().is_free);
  on.clock->advance(1us);
  BOOST_TEST(on.seen().is_free);
  BOOST_TEST(on.seen().silent.value() == 9s + 1us);
  BOOST_TEST(code_of(on.check(id)) == "ok");
  BOOST_TEST(code_of(on.check("e-unknown")) == "ok");
}

BOOST_AUTO_TEST_CASE(a_runtime_may_claim_the_runs_that_it_has) {
  leased on;
  auto started = on.start_held();
  const auto id = on.seen().invocation_id;
  const auto& shared = detail::backend_of(on.runner.runtime)->share();
  BOOST_TEST(code_of(actors::find_free(shared, on.runner.key, id).get())
             == "ok");
  on.model->answer("done");
  started.wait().get().value();
}

// The renewal, which is due while a run is open, tries again.
BOOST_AUTO_TEST_CASE(a_close_that_fails_is_tried_again) {
  leased on;
  auto started = on.start_held();
  on.kept->closings_to_fail = 1;
  on.model->answer("done");
  started.wait().get().value();
  on.kept->closings.await(1);
  BOOST_TEST(on.seen().agent == "waits");
  on.clock->advance(3s);
  on.kept->closings.await(2);
  on.runner.append(on.runner.key, {{"k", 1}});
  BOOST_TEST(on.watcher.runtime.unfinished("press").get().value().empty());
}

BOOST_AUTO_TEST_CASE(a_close_that_fails_is_tried_again_at_the_end) {
  leased on;
  auto started = on.start_held();
  on.kept->closings_to_fail = 1;
  on.model->answer("done");
  started.wait().get().value();
  on.kept->closings.await(1);
  on.runner.runtime.shut_down().value();
  BOOST_TEST(on.watcher.runtime.unfinished("press").get().value().empty());
}

BOOST_AUTO_TEST_CASE(a_shutdown_warns_of_runs_that_it_could_not_leave) {
  leased on;
  const auto kept = std::make_shared<mortal_store>(make_memory_store(on.place));
  std::vector<std::string> warnings;
  auto options = on.options(kept);
  options.on_warning
    = [&](const std::string& told) { warnings.push_back(told); };
  runtime_fixture stops(std::move(options));
  const auto key = stops.open("other");
  auto started = stops.runtime.run(asks("waits", on.model), key, "go");
  on.model->asked.await(1);
  kept->closings_to_fail = 10;
  stops.runtime.shut_down().value();
  BOOST_TEST(!started.wait().get().has_value());
  BOOST_TEST_REQUIRE(warnings.size() == 1U);
  BOOST_TEST(warnings.front().find("closed or left in the store: 1;")
               != std::string::npos,
             warnings.front());
  BOOST_TEST(on.seen().is_free);
}

// The close that leaves the run has failed when the process recovers the run
// itself.
BOOST_AUTO_TEST_CASE(a_run_that_was_taken_up_again_is_not_left) {
  leased on;
  auto started = on.start_held();
  const auto id = on.seen().invocation_id;
  on.kept->closings_to_fail = 1;
  started.leave();
  BOOST_TEST(!started.wait().get().has_value());
  on.kept->closings.await(1);
  const auto again = std::make_shared<held_model>();
  // The process lives, so this does not count.
  auto recovered = on.runner.runtime.recover(
    asks("waits", again), on.runner.key, id, {.recoveries_max = 0});
  again->asked.await(1);
  on.runner.append(on.runner.key, {{"k", 1}});
  BOOST_TEST(!on.seen().is_free);
  BOOST_TEST(on.kept->closings.count() == 1U);
  again->answer("done");
  BOOST_TEST(code_of(recovered.wait().get()) == "ok");
  on.runner.append(on.runner.key, {{"k", 2}});
  BOOST_TEST(on.watcher.runtime.unfinished("press").get().value().empty());
}

// The process that had the run goes on late, and must not close the run of the
// process that has taken it over.
BOOST_AUTO_TEST_CASE(a_run_that_was_taken_over_stays_open) {
  leased on;
  auto started = on.start_held();
  const auto id = on.seen().invocation_id;
  store_change taken;
  taken.kind = change_kind::append;
  taken.owner = {"press", "ann", "s"};
  taken.event = std::make_shared<const event>(change({{"k", 1}}, "taken"));
  taken.session_revision = on.runner.fetch(on.runner.key).revision() + 1;
  taken.runs = {{id, "waits", "another"}};
  const auto other = make_memory_store(on.place);
  BOOST_TEST(other->commit({&taken, 1}).value().moved.empty());
  on.model->answer("done");
  static_cast<void>(started.wait().get()); // Its next event is late.
  on.runner.runtime.shut_down().value();
  BOOST_TEST(on.seen().holder == "another");
}

// -- cost ----

// The close of a run is no change that anybody has asked for.
BOOST_DATA_TEST_CASE(the_end_of_a_run_is_not_counted,
                     data::make(shared_kinds)) {
  const location_of at(sample);
  tally commits;
  auto options = at.options();
  options.on_commit = [&commits](std::size_t) { commits.add(); };
  agent_fixture on(std::move(options));
  const auto before = commits.count();
  BOOST_TEST(on.perform(says("a", "1")) == "a=1 | ok");
  on.runtime.shut_down().value();
  // The message and the event.
  BOOST_TEST(commits.count() - before == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
