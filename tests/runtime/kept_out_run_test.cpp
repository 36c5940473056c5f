// Runs that wait for runs of other processes on their session, or are refused,
// and open runs that are given up.

#include "troupe/actors/running/holder_name.hpp"
#include "troupe/stores/sqlite/open.hpp"

#include "../stores/temporary_folder.hpp"
#include "agent_fixture.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(kept_out_runs, *boost::unit_test::timeout(180))

namespace {

// Tells of the commits that open no run, since another one is open.
class telling_store final : public forwarding_store {
public:
  using forwarding_store::forwarding_store;

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    const bool gives_up
      = changes.front().kind == change_kind::close_runs && changes.size() == 1;
    if (gives_up && before_close)
      before_close();
    if (auto* const held = commit_gate.load())
      held->pass();
    if (is_dead)
      return error(errc::store_failed, "told to fail");
    auto outcome = forwarding_store::commit(changes);
    if (outcome && !outcome->kept_out.empty())
      kept_out.add();
    return outcome;
  }

  result<std::vector<open_run>> list_runs(const run_query& query) override {
    auto listed = forwarding_store::list_runs(query);
    if (query.session)
      looks.add();
    return listed;
  }

  result<void> renew_holder(const std::string& id) override {
    if (is_dead)
      return error(errc::store_failed, "told to fail");
    return forwarding_store::renew_holder(id);
  }

  result<void> remove_holder(const std::string& id) override {
    if (is_dead)
      return error(errc::store_failed, "told to fail");
    return forwarding_store::remove_holder(id);
  }

  /// Blocks the next commit; null: none.
  std::atomic<gate*> commit_gate = nullptr;
  /// Called before a commit that only closes one run.
  std::function<void()> before_close;
  std::atomic<bool> is_dead = false;
  tally kept_out; ///< Commits with runs that are kept out.
  tally looks;    ///< Lists of the open runs of a session.
};

// So long that no process renews it during a test.
constexpr auto lease = 24h;

// A clock of a store that stands still between the moves of a test.
struct still_clock {
  std::atomic<std::int64_t> microseconds = 1'800'000'000'000'000;

  void advance(std::chrono::microseconds step) { microseconds += step.count(); }

  timestamp now() const {
    return timestamp(std::chrono::microseconds(microseconds));
  }
};

// A location, in memory or in a file, and the processes on it.
struct shared_location {
  explicit shared_location(std::string kind_ = "store")
    : kind(std::move(kind_)) {}

  std::unique_ptr<store> open() const {
    return kind == "sqlite"
             ? open_sqlite_store((folder.path() / "s.db").string(), {}).value()
             : make_memory_store(place);
  }

  std::string kind;
  temporary_folder folder;
  std::shared_ptr<still_clock> clock = std::make_shared<still_clock>();
  std::shared_ptr<memory_data> place
    = make_memory_data([clock = clock] { return clock->now(); });
};

using warning_hook = std::function<void(const std::string&)>;

struct process {
  explicit process(const shared_location& at,
                   std::shared_ptr<troupe::environment> time = {},
                   warning_hook hears = {})
    : kept(std::make_shared<telling_store>(at.open())),
      on(options(kept, std::move(time), std::move(hears))) {}

  static runtime_options options(std::shared_ptr<store> kept,
                                 std::shared_ptr<troupe::environment> time,
                                 warning_hook hears) {
    runtime_options chosen;
    chosen.on_warning = std::move(hears);
    chosen.append_wait_max = {}; // A slow machine refuses nothing.
    chosen.store = std::move(kept);
    chosen.environment = std::move(time);
    chosen.run_lease = lease;
    chosen.threads = 2;
    return chosen;
  }

  run start(const agent& root, run_options how = {}) {
    return on.runtime.run(root, key, "go", how);
  }

  std::vector<unfinished_run> open_runs() {
    return on.runtime.unfinished("press", {.with_own = true}).get().value();
  }

  std::string close(const std::string& id) {
    const auto closed = on.runtime.close_run(key, id).get();
    reason = reason_of(closed);
    return code_of(closed);
  }

  const session_key key{"press", "ann", "s"};
  const std::shared_ptr<telling_store> kept;
  runtime_fixture on;
  std::string reason;
};

// A process with a run whose model has not answered, and another one.
struct two_processes {
  explicit two_processes(const std::string& kind = "store") : at(kind) {
    first.on.open();
  }

  // Boost.Test shows a failure before the runtimes end.
  ~two_processes() { model->forget(); }

  run start_held(run_options how = {}) {
    auto started = first.start(asks("waits", model), how);
    model->asked.await(1);
    return started;
  }

  std::string held_id() { return second.open_runs().at(0).invocation_id; }

  std::vector<std::string> texts() { return second.on.texts(second.key); }

  const shared_location at;
  const std::shared_ptr<held_model> model = std::make_shared<held_model>();
  process first{at};
  process second{at};
};

using words = std::vector<std::string>;

// Says the newest text before the run's own message.
agent repeats(const std::string& name) {
  return custom(name, [](invocation_context& context) -> agent_run {
    std::string before;
    for (const auto& said : context.events())
      if (said->author != "user")
        before = said->text();
    co_await context.emit(text("after {}", before));
  });
}

bool mentions(const std::string& reason, const std::string& part) {
  return reason.find(part) != std::string::npos;
}

// The runs of a session in the order of their events; a run whose events are
// not together is there twice.
words runs_in_order(const event_slice& events) {
  words found;
  for (const auto& said : events)
    if (found.empty() || found.back() != said->invocation_id)
      found.push_back(said->invocation_id);
  return found;
}

// Starts so many runs of each process at the same time, one after the other.
// Returns the number of those that ended well.
std::size_t run_at_once(two_processes& on, std::size_t runs_each) {
  const auto twice = custom("a", [](invocation_context& context) -> agent_run {
    co_await context.emit(text("1"));
    co_await context.emit(text("2"));
  });
  std::atomic<std::size_t> ended = 0;
  on_threads(2, [&](std::size_t index) {
    auto& own = index == 0 ? on.first : on.second;
    for (std::size_t count = 0; count < runs_each; ++count)
      if (agent_fixture::show(own.start(twice)) == "a=1 a=2 | ok")
        ++ended;
  });
  return ended;
}

const words kinds{"store", "sqlite"};

} // namespace

// -- the policies ----

BOOST_DATA_TEST_CASE(a_queued_run_waits_for_a_run_of_another_process,
                     data::make(kinds)) {
  two_processes on(sample);
  auto held = on.start_held();
  auto waiting = on.second.start(repeats("b"));
  on.second.kept->looks.await(2);
  BOOST_TEST(on.second.kept->kept_out.count() == 1U);
  BOOST_TEST(on.texts() == words{"go"}, boost::test_tools::per_element());
  BOOST_TEST(on.second.open_runs().size() == 1U);
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
  BOOST_TEST(agent_fixture::follow(waiting) == "b=after done | ok");
  BOOST_TEST(on.texts() == (words{"go", "done", "go", "after done"}),
             boost::test_tools::per_element());
  BOOST_TEST(on.first.on.append(on.first.key, {{"k", 1}}) == "ok");
}

BOOST_DATA_TEST_CASE(a_run_that_is_rejected_names_the_other_run,
                     data::make(kinds)) {
  two_processes on(sample);
  auto held = on.start_held();
  run_options how;
  how.policy = run_policy::reject;
  auto rejected = on.second.start(says("b", "1"), how);
  const auto ended = rejected.wait().get();
  BOOST_TEST(code_of(ended) == "busy");
  BOOST_TEST(mentions(reason_of(ended),
                      "session press/ann/s already has a run of another "
                      "process, '"
                        + on.held_id() + "'; try again when it has ended"),
             reason_of(ended));
  BOOST_TEST(on.second.kept->kept_out.count() == 1U);
  BOOST_TEST(on.texts() == words{"go"}, boost::test_tools::per_element());
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
  on.first.on.runtime.shut_down().value();
  BOOST_TEST(agent_fixture::show(on.second.start(says("b", "1"), how))
             == "b=1 | ok");
}

BOOST_AUTO_TEST_CASE(an_interleaved_run_waits_for_no_process) {
  two_processes on;
  auto held = on.start_held();
  run_options how;
  how.policy = run_policy::interleave;
  BOOST_TEST(agent_fixture::show(on.second.start(says("b", "1"), how))
             == "b=1 | ok");
  BOOST_TEST(on.second.kept->kept_out.count() == 0U);
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
}

BOOST_AUTO_TEST_CASE(a_queued_run_waits_for_an_interleaved_one) {
  two_processes on;
  run_options how;
  how.policy = run_policy::interleave;
  auto held = on.start_held(how);
  auto waiting = on.second.start(repeats("b"));
  on.second.kept->kept_out.await(1);
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
  BOOST_TEST(agent_fixture::follow(waiting) == "b=after done | ok");
}

BOOST_AUTO_TEST_CASE(a_silent_process_keeps_no_run_out) {
  two_processes on;
  auto held = on.start_held();
  on.at.clock->advance(lease);
  auto waiting = on.second.start(says("b", "1"));
  on.second.kept->kept_out.await(1);
  on.at.clock->advance(1us);
  BOOST_TEST(agent_fixture::follow(waiting) == "b=1 | ok");
  // The silent run was recovered by no process, so it goes on.
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
}

BOOST_AUTO_TEST_CASE(a_process_that_has_shut_down_keeps_no_run_out) {
  two_processes on;
  auto held = on.start_held();
  on.first.on.runtime.shut_down().value();
  BOOST_TEST(on.second.open_runs().size() == 1U);
  BOOST_TEST(agent_fixture::show(on.second.start(says("b", "1")))
             == "b=1 | ok");
  BOOST_TEST(on.second.kept->kept_out.count() == 0U);
}

// -- processes that have died ----

namespace {

// The name of a process of this machine that has died: another one has its id.
std::string dead_name() {
  const auto own = actors::make_holder_name("left");
  const auto start = own.find('/', own.find('/') + 1) + 1;
  return own.substr(0, start) + "1" + own.substr(own.find('/', start));
}

// Leaves a run open, as a process with this name does that is killed.
void leave_run(const two_processes& on, const std::string& holder) {
  const auto kept = on.at.open();
  store_change opens;
  opens.kind = change_kind::append;
  opens.owner = {"press", "ann", "s"};
  opens.event = std::make_shared<const event>(change({{"k", 1}}, "left"));
  const auto loaded = kept->load_session({"press", "ann", "s"}, {}).value();
  opens.session_revision = loaded->scope.revision + 1;
  opens.runs = {{"e-left", "a", holder}};
  BOOST_TEST_REQUIRE(kept->commit({&opens, 1}).value().moved.empty());
}

// A run that has just ended may be listed beside it.
unfinished_run left_run(process& on) {
  const auto listed = on.open_runs();
  const auto found
    = std::ranges::find(listed, "e-left", &unfinished_run::invocation_id);
  BOOST_TEST_REQUIRE((found != listed.end()));
  return *found;
}

} // namespace

BOOST_DATA_TEST_CASE(a_process_that_has_died_keeps_no_run_out,
                     data::make(kinds) * data::make({false, true}),
                     kind,
                     rejects) {
  two_processes on(kind);
  leave_run(on, dead_name());
  BOOST_TEST(left_run(on.second).is_free);
  run_options how;
  how.policy = rejects ? run_policy::reject : run_policy::queue;
  BOOST_TEST(agent_fixture::show(on.second.start(says("b", "1"), how))
             == "b=1 | ok");
  BOOST_TEST(on.second.kept->kept_out.count() == 1U);
  // The store has forgotten the process, but not its run.
  BOOST_TEST(!left_run(on.second).silent);
  BOOST_TEST(agent_fixture::show(on.second.start(says("b", "2"), how))
             == "b=2 | ok");
  BOOST_TEST(on.second.kept->kept_out.count() == 1U);
}

BOOST_AUTO_TEST_CASE(a_run_of_a_process_that_has_died_is_given_up_at_once) {
  two_processes on;
  leave_run(on, dead_name());
  BOOST_TEST(on.second.close("e-left") == "ok", on.second.reason);
  BOOST_TEST(on.second.open_runs().empty());
}

BOOST_AUTO_TEST_CASE(a_living_run_keeps_others_out_beside_a_dead_one) {
  two_processes on;
  auto held = on.start_held();
  leave_run(on, dead_name());
  auto waiting = on.second.start(says("b", "1"));
  on.second.kept->looks.await(2);
  BOOST_TEST(on.second.kept->kept_out.count() == 1U);
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
  BOOST_TEST(agent_fixture::follow(waiting) == "b=1 | ok");
}

// Names of other machines, and those that tell no process.
BOOST_DATA_TEST_CASE(a_process_that_may_live_keeps_runs_out_for_the_lease,
                     data::make({"another-boot", "no-process"})) {
  two_processes on;
  leave_run(on,
            sample == std::string("no-process") ? sample : dead_name() + "x");
  BOOST_TEST(!left_run(on.second).is_free);
  BOOST_TEST(on.second.close("e-left") == "busy");
  run_options how;
  how.policy = run_policy::reject;
  BOOST_TEST(code_of(on.second.start(says("b", "0"), how).wait().get())
             == "busy");
  on.at.clock->advance(lease);
  const auto looks = on.second.kept->looks.count();
  auto waiting = on.second.start(says("b", "1"));
  on.second.kept->looks.await(looks + 2);
  on.at.clock->advance(1us);
  BOOST_TEST(agent_fixture::follow(waiting) == "b=1 | ok");
}

// -- at once ----

BOOST_DATA_TEST_CASE(runs_that_processes_start_at_once_do_not_mix,
                     data::make(kinds)) {
  two_processes on(sample);
  constexpr std::size_t runs_each = 5;
  BOOST_TEST(run_at_once(on, runs_each) == 2 * runs_each);
  const auto events = on.second.on.events(on.second.key);
  BOOST_TEST(events.size() == 2 * runs_each * 3);
  const auto in_order = runs_in_order(events);
  BOOST_TEST(in_order.size() == 2 * runs_each);
  BOOST_TEST(std::set(in_order.begin(), in_order.end()).size()
             == 2 * runs_each);
}

// -- the wait ----

namespace {

// Simulated time that keeps the short delays of its timers.
class delayed_environment final : public simulated_environment {
public:
  using simulated_environment::simulated_environment;

  void call_after(std::chrono::nanoseconds delay,
                  std::function<void()> done) override {
    simulated_environment::call_after(delay, std::move(done));
    if (delay > 500ms)
      return;
    {
      const std::lock_guard guard(mutex_);
      delays_.push_back(
        std::chrono::duration_cast<std::chrono::milliseconds>(delay).count());
    }
    timers.add();
  }

  std::vector<std::int64_t> delays() const {
    const std::lock_guard guard(mutex_);
    return delays_;
  }

  tally timers; ///< With a short delay.

private:
  mutable std::mutex mutex_;
  std::vector<std::int64_t> delays_;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_run_looks_again_after_growing_delays_and_warns_once) {
  two_processes on;
  std::mutex mutex;
  words warnings;
  const auto warned = [&] {
    const std::lock_guard guard(mutex);
    return warnings;
  };
  const auto time = std::make_shared<delayed_environment>(1);
  process third(on.at, time, [&](const std::string& told) {
    const std::lock_guard guard(mutex);
    warnings.push_back(told);
  });
  auto held = on.start_held();
  auto waiting = third.start(says("c", "1"));
  const std::vector<std::int64_t> expected{20, 40, 80, 160, 320, 500, 500, 500};
  for (std::size_t count = 1; count <= expected.size(); ++count) {
    time->timers.await(count);
    BOOST_TEST(third.kept->looks.count() == count);
    // The delays until the seventh look are longer than a second.
    BOOST_TEST(warned().size() == (count < 7 ? 0U : 1U));
    if (count < expected.size())
      time->advance(std::chrono::milliseconds(expected[count - 1]));
  }
  BOOST_TEST(time->delays() == expected, boost::test_tools::per_element());
  // A look costs no commit.
  BOOST_TEST(third.kept->kept_out.count() == 1U);
  const auto warning = warned().at(0);
  const auto open = on.second.open_runs().at(0);
  BOOST_TEST(mentions(warning,
                      " waits for run " + open.invocation_id
                        + " of session press/ann/s, which process "
                        + open.holder
                        + " has; it begins when that run has "
                          "ended, or in 86400000 ms if"),
             warning);
  BOOST_TEST(mentions(warning, "`troupe runs --close`"), warning);
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
  on.first.on.runtime.shut_down().value(); // The run is closed.
  time->advance(500ms);
  BOOST_TEST(agent_fixture::follow(waiting) == "c=1 | ok");
}

BOOST_AUTO_TEST_CASE(a_run_can_be_cancelled_while_it_waits) {
  two_processes on;
  auto held = on.start_held();
  auto waiting = on.second.start(says("b", "1"));
  on.second.kept->kept_out.await(1);
  waiting.cancel();
  BOOST_TEST(code_of(waiting.wait().get()) == "cancelled");
  BOOST_TEST(on.second.open_runs().size() == 1U);
  // The next run of the process has its turn.
  auto next = on.second.start(repeats("b"));
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
  BOOST_TEST(agent_fixture::follow(next) == "b=after done | ok");
  BOOST_TEST(on.texts() == (words{"go", "done", "go", "after done"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_deadline_of_a_run_passes_while_it_waits) {
  two_processes on;
  const auto time = std::make_shared<simulated_environment>(1);
  process third(on.at, time);
  auto held = on.start_held();
  run_options how;
  how.deadline = 19ms;
  auto waiting = third.start(says("c", "1"), how);
  third.kept->kept_out.await(1);
  time->advance(19ms);
  BOOST_TEST(code_of(waiting.wait().get()) == "deadline_exceeded");
  BOOST_TEST(on.texts() == words{"go"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_shutdown_ends_the_runs_that_wait) {
  two_processes on;
  auto held = on.start_held();
  auto waiting = on.second.start(says("b", "1"));
  on.second.kept->kept_out.await(1);
  on.second.on.runtime.shut_down().value();
  BOOST_TEST(code_of(waiting.wait().get()) == "cancelled");
  // It never began, so it is not left open.
  BOOST_TEST(on.first.open_runs().size() == 1U);
  BOOST_TEST(on.first.on.texts(on.first.key) == words{"go"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_removed_session_ends_the_runs_that_wait) {
  two_processes on;
  auto held = on.start_held();
  auto waiting = on.second.start(says("b", "1"));
  on.second.kept->kept_out.await(1);
  on.second.on.sessions().remove(on.second.key).get().value();
  BOOST_TEST(code_of(waiting.wait().get()) == "cancelled");
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "cancelled");
}

BOOST_AUTO_TEST_CASE(later_runs_of_the_process_keep_their_order) {
  two_processes on;
  auto held = on.start_held();
  auto waiting = on.second.start(says("b", "1"));
  on.second.kept->kept_out.await(1);
  auto behind = on.second.start(says("b", "2"));
  auto last = on.second.start(says("b", "3"));
  run_options how;
  how.policy = run_policy::reject;
  BOOST_TEST(code_of(on.second.start(says("b", "4"), how).wait().get())
             == "busy");
  how.policy = run_policy::interleave;
  BOOST_TEST(agent_fixture::show(on.second.start(says("b", "5"), how))
             == "b=5 | ok");
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
  BOOST_TEST(code_of(last.wait().get()) == "ok");
  BOOST_TEST(code_of(behind.wait().get()) == "ok");
  BOOST_TEST(code_of(waiting.wait().get()) == "ok");
  BOOST_TEST(
    on.texts()
      == (words{"go", "go", "5", "done", "go", "1", "go", "2", "go", "3"}),
    boost::test_tools::per_element());
}

// The blocked commit lets the later ones gather, mostly in one group.
BOOST_DATA_TEST_CASE(other_commits_of_the_group_are_written,
                     data::make(kinds)) {
  two_processes on(sample);
  auto& sessions = on.second.on.sessions();
  const auto other = on.second.on.open("s2");
  auto held = on.start_held();
  // Loads the session, so that the run reaches the queue at once.
  BOOST_TEST(on.second.on.append(on.second.key, {{"k", 0}}) == "ok");
  gate blocked;
  on.second.kept->commit_gate = &blocked;
  answers<event_ptr> all;
  sessions.append_event(other, change({{"k", 1}})).then(all.next());
  blocked.await_arrival();
  sessions.append_event(other, change({{"k", 2}})).then(all.next());
  auto waiting = on.second.start(says("b", "1"));
  sessions.append_event(on.second.key, change({{"k", 3}, {"user:n", 1}}))
    .then(all.next());
  blocked.open();
  for (const auto& each : all.await())
    BOOST_TEST(code_of(each) == "ok");
  on.second.kept->kept_out.await(1);
  on.second.kept->commit_gate = nullptr;
  BOOST_TEST(on.second.on.state(other) == json({{"k", 2}, {"user:n", 1}}));
  BOOST_TEST(on.second.on.state(on.second.key)
             == json({{"k", 3}, {"user:n", 1}}));
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
  BOOST_TEST(agent_fixture::follow(waiting) == "b=1 | ok");
}

// A recovered run has a policy as any other one.
BOOST_AUTO_TEST_CASE(a_recovery_waits_for_a_run_of_another_process) {
  two_processes on;
  process third(on.at);
  const auto lost_model = std::make_shared<held_model>();
  auto lost = third.start(asks("lost", lost_model));
  lost_model->asked.await(1);
  const auto id = on.held_id();
  third.on.runtime.shut_down().value();
  auto held = on.start_held();
  const auto answering = scripted({{"lost", {{.text = "found"}}}});
  auto recovered
    = on.second.on.runtime.recover(asks("lost", answering), on.second.key, id);
  on.second.kept->kept_out.await(1);
  BOOST_TEST(on.texts() == (words{"go", "go"}),
             boost::test_tools::per_element());
  on.model->answer("done");
  BOOST_TEST(code_of(held.wait().get()) == "ok");
  BOOST_TEST(agent_fixture::follow(recovered).ends_with("lost=found | ok"));
}

// -- giving up ----

BOOST_DATA_TEST_CASE(a_run_that_is_given_up_is_not_recovered,
                     data::make(kinds)) {
  two_processes on(sample);
  auto held = on.start_held();
  const auto id = on.held_id();
  on.first.on.runtime.shut_down().value();
  BOOST_TEST(on.second.close(id) == "ok", on.second.reason);
  BOOST_TEST(on.second.open_runs().empty());
  BOOST_TEST(on.texts() == words{"go"}, boost::test_tools::per_element());
  auto recovered
    = on.second.on.runtime.recover(asks("waits", on.model), on.second.key, id);
  BOOST_TEST(code_of(recovered.wait().get()) == "not_found");
  BOOST_TEST(on.second.close(id) == "not_found");
  BOOST_TEST(on.second.on.append(on.second.key, {{"k", 1}}) == "ok");
}

BOOST_AUTO_TEST_CASE(a_run_that_goes_on_is_not_given_up) {
  two_processes on;
  auto held = on.start_held();
  const auto id = on.held_id();
  BOOST_TEST(on.first.close(id) == "busy");
  BOOST_TEST(mentions(on.first.reason, "is active in this process"),
             on.first.reason);
  BOOST_TEST(on.second.close(id) == "busy");
  BOOST_TEST(mentions(on.second.reason, "try again after "), on.second.reason);
  BOOST_TEST(on.second.open_runs().size() == 1U);
  // Its process is silent for longer than the lease.
  on.at.clock->advance(lease + 1us);
  BOOST_TEST(on.second.close(id) == "ok", on.second.reason);
  BOOST_TEST(on.second.open_runs().empty());
}

BOOST_AUTO_TEST_CASE(runs_that_are_not_open_are_not_given_up) {
  two_processes on;
  BOOST_TEST(on.first.close("e-unknown") == "not_found");
  BOOST_TEST(mentions(on.first.reason,
                      "session press/ann/s has no open run 'e-unknown'"),
             on.first.reason);
  auto& runtime = on.first.on.runtime;
  BOOST_TEST(code_of(runtime.close_run({"press", "ann", "none"}, "x").get())
             == "not_found");
  BOOST_TEST(code_of(runtime.close_run({"press", "", "s"}, "x").get())
             == "invalid_argument");
  runtime.shut_down().value();
  BOOST_TEST(on.first.close("x") == "cancelled");
  agent_fixture in_memory;
  BOOST_TEST(code_of(in_memory.runtime.close_run(in_memory.key, "x").get())
             == "not_found");
}

BOOST_AUTO_TEST_CASE(a_recovery_that_comes_first_keeps_its_run) {
  two_processes on;
  auto held = on.start_held();
  const auto id = on.held_id();
  on.first.on.runtime.shut_down().value();
  // Another process takes the run over just before it is closed.
  on.second.kept->before_close = [&] {
    const auto other = on.at.open();
    store_change taken;
    taken.kind = change_kind::append;
    taken.owner = {"press", "ann", "s"};
    taken.event = std::make_shared<const event>(change({{"k", 1}}, "taken"));
    const auto loaded = other->load_session({"press", "ann", "s"}, {}).value();
    taken.session_revision = loaded->scope.revision + 1;
    taken.runs = {{id, "waits", "another"}};
    BOOST_TEST(other->commit({&taken, 1}).value().moved.empty());
  };
  BOOST_TEST(on.second.close(id) == "busy");
  BOOST_TEST(mentions(on.second.reason, "process another has recovered run '"),
             on.second.reason);
  BOOST_TEST(on.second.open_runs().at(0).holder == "another");
}

// A recovery with other agents leaves its run open, and then has it no more.
BOOST_AUTO_TEST_CASE(a_run_whose_recovery_was_refused_is_given_up) {
  two_processes on;
  auto held = on.first.start(
    sequential("both", {says("before", "1"), asks("waits", on.model)}));
  on.model->asked.await(1);
  const auto id = on.held_id();
  on.first.on.runtime.shut_down().value();
  auto recovered = on.second.on.runtime.recover(
    sequential("both", {says("another", "1")}), on.second.key, id);
  BOOST_TEST(code_of(recovered.wait().get()) == "conflict");
  // The run is left with the next group of commits.
  BOOST_TEST(on.second.on.append(on.second.key, {{"k", 1}}) == "ok");
  const auto left = on.second.open_runs();
  BOOST_TEST_REQUIRE(left.size() == 1U);
  BOOST_TEST(left[0].holder.ends_with(".refused"), left[0].holder);
  // Its name keeps no other run out.
  BOOST_TEST(!left[0].silent.has_value());
  BOOST_TEST(on.second.close(id) == "ok", on.second.reason);
  BOOST_TEST(on.second.open_runs().empty());
}

BOOST_AUTO_TEST_CASE(a_failing_store_gives_up_no_run) {
  two_processes on;
  auto held = on.start_held();
  const auto id = on.held_id();
  on.first.on.runtime.shut_down().value();
  on.second.kept->is_dead = true;
  BOOST_TEST(on.second.close(id) == "store_failed");
  on.second.kept->is_dead = false;
  BOOST_TEST(on.second.close(id) == "ok", on.second.reason);
}

BOOST_AUTO_TEST_SUITE_END()
