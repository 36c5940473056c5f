// Claims of runs by several processes, and the end of a run in the process that
// has lost it.

#include "../runtime/staged_store.hpp"
#include "recovered_outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(claimed_runs)

BOOST_AUTO_TEST_CASE(a_process_that_lost_its_run_commits_nothing_more) {
  const auto place = make_memory_data();
  process first(place);
  process second(place);
  first.open();
  const auto count = make_counter();
  const held_tool held(count);
  auto stuck = first.runtime.run(
    holder(count, held.made), first.key, user_message("go"));
  held.begun->await(1);
  const auto again = make_counter();
  BOOST_TEST(second.recover(holder(again, counting_tool(again, "held")))
             == "ok");
  const auto events = second.events(second.key).size();
  const auto state = show_state(second);
  held.released->add();
  BOOST_TEST(code_of(stuck.wait().get()) == "cancelled");
  BOOST_TEST(second.events(second.key).size() == events);
  BOOST_TEST(first.events(first.key).size() == events);
  BOOST_TEST(show_state(second) == state);
  BOOST_TEST(second.state(second.key).at("held") == 1);
  BOOST_TEST(count->of("model:a") == 1);
  BOOST_TEST(again->of("model:a") == 1);
}

BOOST_AUTO_TEST_CASE(an_answer_of_a_model_comes_too_late) {
  const auto place = make_memory_data();
  process first(place);
  process second(place);
  first.open();
  const auto held = std::make_shared<held_model>();
  auto stuck
    = first.runtime.run(asks("a", held), first.key, user_message("go"));
  held->asked.await(1);
  BOOST_TEST(second.recover(thinks(make_counter(), "a", {{.text = "second"}}))
             == "ok");
  held->answer("first");
  const auto ended = stuck.wait().get();
  BOOST_TEST(code_of(ended) == "cancelled");
  BOOST_TEST(reason_of(ended).find("another process has recovered")
               != std::string::npos,
             reason_of(ended));
  const auto texts = second.texts(second.key);
  BOOST_TEST(std::ranges::count(texts, "second") == 1);
  BOOST_TEST(std::ranges::count(texts, "first") == 0);
}

BOOST_AUTO_TEST_CASE(a_recovery_is_taken_over_by_another_one) {
  const auto count = make_counter();
  process whole;
  whole.open();
  BOOST_TEST_REQUIRE(whole.go(holder(count, counting_tool(count, "held")))
                     == "ok");
  const auto changes = whole.log->taken();
  const auto place = place_with(changes, up_to_message(changes));
  process second(place);
  process third(place);
  const held_tool held(make_counter());
  auto stuck = second.runtime.recover(
    holder(make_counter(), held.made), second.key, second.run_id());
  held.begun->await(1);
  const auto last = make_counter();
  BOOST_TEST(third.recover(holder(last, counting_tool(last, "held"))) == "ok");
  // The answer of the model was stored by the second process.
  BOOST_TEST(show_counts(last->taken()) == "model:a=1 tool:held=1 ");
  held.released->add();
  BOOST_TEST(code_of(stuck.wait().get()) == "cancelled");
  BOOST_TEST(show_state(third) == show_state(whole));
  BOOST_TEST(show_events(third.events(third.key), false)
             == show_events(whole.events(whole.key), false));
  BOOST_TEST(claims_in(third) == 2U);
}

// The slower process has decided its claim before the other one commits.
BOOST_AUTO_TEST_CASE(a_claim_that_comes_second_is_a_conflict) {
  const auto count = make_counter();
  process whole;
  whole.open();
  const auto make
    = [](const counter& by) { return holder(by, counting_tool(by, "held")); };
  BOOST_TEST_REQUIRE(whole.go(make(count)) == "ok");
  const auto changes = whole.log->taken();
  staged_place shared;
  shared.place = place_with(changes, up_to_message(changes));
  runtime_fixture slow(shared.options());
  process fast(shared.place);
  const auto id = fast.run_id();
  shared.script->hold();
  const auto lost = make_counter();
  auto waits = slow.runtime.recover(make(lost), fast.key, id);
  shared.script->arrived.await(1);
  BOOST_TEST(fast.recover(make(make_counter())) == "ok");
  shared.script->release();
  const auto ended = waits.wait().get();
  BOOST_TEST(code_of(ended) == "conflict");
  BOOST_TEST(reason_of(ended).find("another process has recovered")
               != std::string::npos,
             reason_of(ended));
  BOOST_TEST(show_counts(lost->taken()) == "");
  BOOST_TEST(show_state(fast) == show_state(whole));
  BOOST_TEST(claims_in(fast) == 1U);
}

// A process finds the run free. Then a third process recovers the run, and the
// first process recovers it back: before the claim of the finder is decided, or
// while it is written.
BOOST_DATA_TEST_CASE(a_run_that_its_process_has_back_is_not_free,
                     boost::unit_test::data::make({true, false}),
                     before_the_claim) {
  staged_place shared;
  process first(shared.place);
  process third(shared.place);
  first.open();
  const auto id_of = [&] { return first.run_id(); };
  const held_tool begun(make_counter());
  const held_tool taken(make_counter());
  const held_tool back(make_counter());
  const auto recover_by = [&](process& on, const held_tool& used) {
    forget_holders(shared.place);
    auto started = on.runtime.recover(
      holder(make_counter(), used.made), first.key, id_of());
    used.begun->await(1);
    return started;
  };
  auto lost = first.runtime.run(
    holder(make_counter(), begun.made), first.key, user_message("go"));
  begun.begun->await(1);
  std::vector<run> started;
  const auto move = [&] {
    started.push_back(recover_by(third, taken));
    begun.released->add();
    BOOST_TEST(code_of(lost.wait().get()) == "cancelled");
    started.push_back(recover_by(first, back));
  };

  const auto once = std::make_shared<std::once_flag>();
  if (before_the_claim)
    shared.script->on_session_load = [&, once] { std::call_once(*once, move); };
  else
    shared.script->hold();
  runtime_fixture slow(shared.options());
  forget_holders(shared.place);
  auto waits = slow.runtime.recover(
    holder(make_counter(), begun.made), first.key, id_of());
  if (!before_the_claim) {
    shared.script->arrived.await(1);
    move();
    shared.script->release();
  }
  const auto ended = waits.wait().get();
  BOOST_TEST(code_of(ended) == "busy");
  BOOST_TEST(reason_of(ended).find("was heard of") != std::string::npos,
             reason_of(ended));
  BOOST_TEST_REQUIRE(started.size() == 2U);
  back.released->add();
  BOOST_TEST(code_of(started[1].wait().get()) == "ok");
  taken.released->add();
  BOOST_TEST(code_of(started[0].wait().get()) == "cancelled");
  BOOST_TEST(claims_in(first) == 2U);
}

// The process was only silent: it goes on while the claim is written, with an
// event or without.
BOOST_DATA_TEST_CASE(a_run_whose_process_goes_on_is_not_free,
                     boost::unit_test::data::make({true, false}),
                     writes_an_event) {
  staged_place shared;
  process first(shared.place);
  first.open();
  const held_tool held(make_counter());
  const held_tool next(make_counter());
  const auto root = sequential(
    "s",
    {holder(make_counter(), held.made),
     thinks(
       make_counter(), "b", {calling("held"), {.text = "done"}}, {next.made})});
  auto going = first.runtime.run(root, first.key, user_message("go"));
  held.begun->await(1);
  runtime_fixture slow(shared.options());
  shared.script->hold();
  forget_holders(shared.place);
  auto waits = slow.runtime.recover(root, first.key, first.run_id());
  shared.script->arrived.await(1);
  if (writes_an_event) {
    held.released->add();
    next.begun->await(1);
  }
  // A sign of life, as its next renewal is.
  for (const auto& each :
       make_memory_store(shared.place)->list_runs({}).value())
    make_memory_store(shared.place)->renew_holder(each.holder).value();
  shared.script->release();
  BOOST_TEST(code_of(waits.wait().get()) == "busy");
  if (!writes_an_event)
    held.released->add();
  next.released->add();
  BOOST_TEST(code_of(going.wait().get()) == "ok");
  BOOST_TEST(claims_in(first) == 0U);
}

// It is given up while the claim is written.
BOOST_AUTO_TEST_CASE(a_run_that_is_given_up_is_not_recovered) {
  staged_place shared;
  process first(shared.place);
  first.open();
  const held_tool held(make_counter());
  const auto root = holder(make_counter(), held.made);
  auto lost = first.runtime.run(root, first.key, user_message("go"));
  held.begun->await(1);
  runtime_fixture slow(shared.options());
  shared.script->hold();
  forget_holders(shared.place);
  auto waits = slow.runtime.recover(root, first.key, first.run_id());
  shared.script->arrived.await(1);
  runtime_fixture other(shared.beside());
  forget_holders(shared.place);
  BOOST_TEST_REQUIRE(
    other.runtime.close_run(first.key, first.run_id()).get().has_value());
  shared.script->release();
  BOOST_TEST(code_of(waits.wait().get()) == "not_found");
  BOOST_TEST(claims_in(first) == 0U);
  lost.cancel();
  held.released->add();
  BOOST_TEST(!lost.wait().get().has_value());
}

// The session that is in memory does not know the run yet. So the first
// decision on the claim fails, but it must not close the run.
BOOST_AUTO_TEST_CASE(a_run_that_is_not_in_memory_yet_is_not_given_up) {
  const auto place = make_memory_data();
  process late(place);
  late.open();
  late.go(says("a", "1"));
  const auto make = [](bool is_stuck) {
    return custom("a", [is_stuck](invocation_context& context) -> agent_run {
      context.state().set("temp:seen", 1);
      co_await context.emit(text("begun"));
      if (is_stuck)
        co_await context.sleep(1h);
    });
  };
  {
    process ends(place);
    ends.runtime.run(make(true), late.key, user_message("go")).detach();
    while (ends.events(ends.key).size() < 4)
      std::this_thread::yield();
  }
  const auto id = make_memory_store(place)->list_runs({}).value().at(0);
  forget_holders(place);
  const auto root = make(false);
  const auto refused
    = late.end_of(late.runtime.recover(root, late.key, id.invocation_id));
  BOOST_TEST(refused == "conflict", refused + ": " + late.reason);
  BOOST_TEST(late.tells("temp:seen"), late.reason);
  run_options allowing;
  allowing.allow_lost_temp = true;
  forget_holders(place);
  const auto code = late.end_of(
    late.runtime.recover(root, late.key, id.invocation_id, allowing));
  BOOST_TEST(code == "ok", code + ": " + late.reason);
}

namespace {

using tally_ptr = std::shared_ptr<tally>;

// Says three things; then, if `begun` is set, it counts there and waits for
// long.
agent says_three(const tally_ptr& begun = {}) {
  return custom("a", [begun](invocation_context& context) -> agent_run {
    for (int number = 1; number <= 3; ++number)
      co_await context.emit(text("said"));
    if (begun) {
      begun->add();
      co_await context.sleep(1h);
    }
  });
}

// Leaves such a run open, as the newest of the session, by a process that shuts
// down. Returns its id.
std::string leave_run(const std::shared_ptr<memory_data>& place,
                      const session_key& key) {
  process ends(place);
  const auto begun = std::make_shared<tally>();
  auto started = ends.runtime.run(says_three(begun), key, user_message("go"));
  begun->await(1);
  const auto id = started.invocation_id();
  started.detach();
  return id;
}

std::size_t open_runs_of(const std::shared_ptr<memory_data>& place) {
  return make_memory_store(place)->list_runs({}).value().size();
}

} // namespace

// The session in memory has no event of the run. It then loads the newest one
// only, and not the message of the run.
BOOST_AUTO_TEST_CASE(a_run_with_its_message_out_of_memory_is_not_given_up) {
  const staged_place shared;
  auto options = shared.beside();
  options.events_kept = 1;
  runtime_fixture late(options);
  process first(shared.place);
  first.open();
  late.runtime.run(says("a", "0"), first.key, user_message("go"))
    .wait()
    .get()
    .value();
  const auto id = leave_run(shared.place, first.key);
  forget_holders(shared.place);
  const auto ended
    = late.runtime.recover(says_three(), first.key, id).wait().get();
  BOOST_TEST(code_of(ended) == "ok", reason_of(ended));
}

// The process of the run leaves it while the claim is written, so the recovery
// is kept out once. It then goes on beside the run of a third process.
BOOST_AUTO_TEST_CASE(a_recovery_that_interleaves_waits_for_no_run) {
  staged_place shared;
  process first(shared.place);
  first.open();
  run_options beside;
  beside.policy = run_policy::interleave;
  beside.deadline = 60s; // It ends if it waits.
  const auto begun = std::make_shared<tally>();
  auto lost = first.runtime.run(
    says_three(begun), first.key, user_message("go"), beside);
  begun->await(1);
  forget_holders(shared.place);
  runtime_fixture slow(shared.options());
  shared.script->hold();
  auto waits
    = slow.runtime.recover(says_three(), first.key, first.run_id(), beside);
  shared.script->arrived.await(1);
  process third(shared.place);
  const auto held = std::make_shared<held_model>();
  auto going
    = third.runtime.run(asks("b", held), first.key, user_message("go"), beside);
  held->asked.await(1);
  lost.leave();
  BOOST_TEST(!lost.wait().get().has_value());
  first.append(first.key, {{"k", 1}}); // The leave is written before.
  shared.script->release();
  const auto ended = waits.wait().get();
  BOOST_TEST(code_of(ended) == "ok", reason_of(ended));
  held->answer("done");
  BOOST_TEST(code_of(going.wait().get()) == "ok");
}

// Its claim is decided again, since another process has written to the session,
// and the run's message has left memory meanwhile.
BOOST_AUTO_TEST_CASE(a_recovery_that_is_cancelled_leaves_its_run_open) {
  staged_place shared;
  process other(shared.place);
  other.open();
  const auto id = leave_run(shared.place, other.key);
  forget_holders(shared.place);
  auto options = shared.options();
  options.events_kept = 1;
  runtime_fixture slow(options);
  shared.script->hold();
  auto waits = slow.runtime.recover(says_three(), other.key, id);
  shared.script->arrived.await(1);
  BOOST_TEST(other.append(other.key, {{"k", 1}}) == "ok");
  waits.cancel();
  shared.script->release();
  BOOST_TEST(code_of(waits.wait().get()) == "cancelled");
  // The close of the run, if there were one, is written before.
  BOOST_TEST(slow.append(other.key, {{"k", 2}}) == "ok");
  BOOST_TEST(open_runs_of(shared.place) == 1U);
  const auto ended
    = slow.runtime.recover(says_three(), other.key, id).wait().get();
  BOOST_TEST(code_of(ended) == "ok", reason_of(ended));
}

// Such a process leaves its runs, so they can wait through many restarts.
BOOST_AUTO_TEST_CASE(processes_that_shut_down_do_not_count) {
  const auto place = make_memory_data();
  process first(place);
  first.open();
  const auto id = leave_run(place, first.key);
  const run_options never{.recoveries_max = 0};
  for (int count = 1; count <= 3; ++count) {
    process stops(place);
    const auto begun = std::make_shared<tally>();
    auto again = stops.runtime.recover(says_three(begun), first.key, id, never);
    begun->await(1);
    stops.runtime.shut_down().value();
    BOOST_TEST(code_of(again.wait().get()) == "cancelled");
  }
  const auto code
    = first.end_of(first.runtime.recover(says_three(), first.key, id, never));
  BOOST_TEST(code == "ok", first.reason);
  BOOST_TEST(claims_in(first) == 4U);
}

// One that has ended otherwise counts, also behind those that have left it.
BOOST_AUTO_TEST_CASE(processes_that_are_killed_count) {
  const auto place = make_memory_data();
  process first(place);
  first.open();
  const auto id = leave_run(place, first.key);
  const run_options once{.recoveries_max = 1};
  process left(place);
  process killed(place);
  for (auto* const on : {&left, &killed}) {
    const auto begun = std::make_shared<tally>();
    on->runtime.recover(says_three(begun), first.key, id, once).detach();
    begun->await(1);
    forget_holders(place);
  }
  BOOST_TEST(
    first.end_of(first.runtime.recover(says_three(), first.key, id, once))
    == "limit_exceeded");
  BOOST_TEST(first.tells("recovered 1 times"), first.reason);
  BOOST_TEST(claims_in(first) == 2U);
}

// The holder has changed meanwhile.
BOOST_AUTO_TEST_CASE(a_claim_that_is_decided_again_forgets_the_leave) {
  const auto place = make_memory_data();
  process first(place);
  first.open();
  first.go(says("a", "1"));
  const auto id = first.run_id();
  auto claim = make_claim_event("a", id, "another");
  const auto end_after = [&](bool was_left) {
    number_claim(claim, 1, was_left);
    event_log events;
    events.push_back(first.events(first.key).front());
    events.push_back(std::make_shared<const event>(claim));
    const auto found = find_recoverable(
      events.slice(), {.invocation_id = id, .recoveries_max = 1});
    return code_of(found);
  };
  BOOST_TEST(end_after(true) == "ok");
  BOOST_TEST(end_after(false) == "limit_exceeded");
  BOOST_TEST(end_after(true) == "ok");
}

BOOST_AUTO_TEST_CASE(of_two_recoveries_at_once_one_counts) {
  const auto& of = all_trees()[1];
  const whole_run whole(of);
  for (std::size_t round = 0; round < 10; ++round) {
    const auto place = whole.cut(whole.message());
    process one(place);
    process two(place);
    const auto id = one.run_id();
    two.run_id(); // Both have the session in memory.
    std::vector<std::string> codes(2);
    on_threads(2, [&](std::size_t index) {
      auto& on = index == 0 ? one : two;
      codes[index]
        = on.end_of(on.runtime.recover(of.make(make_counter()), on.key, id));
    });
    const auto shown = codes[0] + " " + codes[1];
    BOOST_TEST(std::ranges::count(codes, "ok") == 1, shown);
    // The other one came too late: during the recovery, or behind its end.
    for (const auto& each : codes)
      BOOST_TEST((each == "ok" || each == "conflict" || each == "cancelled"
                  || each == "busy" || each == "not_found"),
                 shown);
    BOOST_TEST(show_state(one) == whole.state);
    BOOST_TEST(show_events(one.events(one.key), of.at_once) == whole.events);
  }
}

BOOST_AUTO_TEST_CASE(a_run_that_is_active_here_is_not_recovered) {
  process on;
  on.open();
  const auto count = make_counter();
  const held_tool held(count);
  auto started
    = on.runtime.run(holder(count, held.made), on.key, user_message("go"));
  held.begun->await(1);
  const auto events = on.events(on.key).size();
  BOOST_TEST(on.recover(holder(count, held.made)) == "busy");
  BOOST_TEST(on.tells(on.run_id()), on.reason);
  BOOST_TEST(on.events(on.key).size() == events);
  held.released->add();
  BOOST_TEST(code_of(started.wait().get()) == "ok");
  BOOST_TEST(claims_in(on) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
