// Runs whose process ended, and that another process recovers.

#include "troupe/agents/turns/recovery.hpp"

#include "troupe/contexts/first_invocation.hpp"

#include "../runtime/staged_store.hpp"
#include "recovered_outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(recovered_runs)

namespace {

/// The last of these changes, for the messages of checks.
std::string last_of(const std::vector<store_change>& changes,
                    std::size_t count) {
  return show_event(*changes[count - 1].event, false);
}

/// Requires that a recovered run has ended as the whole one, and that its calls
/// are the rest.
void check_equal(process& on,
                 const recovery_tree& of,
                 const whole_run& whole,
                 const counts& calls,
                 const counts& rest) {
  BOOST_TEST(show_state(on) == whole.state);
  BOOST_TEST(show_events(on.events(on.key), of.at_once) == whole.events);
  BOOST_TEST(show_counts(calls) == show_counts(rest));
  for (const auto& [name, number] : calls)
    if (is_body(name))
      BOOST_TEST(number <= whole.calls.at(name), name);
  const auto id = on.run_id();
  for (const auto& each : on.events(on.key))
    BOOST_TEST(each->invocation_id == id);
}

const auto each_tree = boost::unit_test::data::xrange(all_trees().size());

/// Returns the number of changes up to the first event with this text, which it
/// includes.
std::size_t up_to_text(const std::vector<store_change>& changes,
                       const std::string& words) {
  for (std::size_t index = 0; index < changes.size(); ++index)
    if (changes[index].kind == change_kind::append
        && changes[index].event->text() == words)
      return index + 1;
  throw std::runtime_error("no event says " + words);
}

/// Runs `root` in a process that ends behind the event with this text. Returns
/// the place.
std::shared_ptr<memory_data> ended_behind(const agent& root,
                                          const std::string& words,
                                          user_message message = "go") {
  process on;
  on.open();
  on.go(root, std::move(message));
  const auto changes = on.log->taken();
  return place_with(changes, up_to_text(changes, words));
}

/// A message that answers a call.
content answer_to(const std::string& id, const std::string& name, json with) {
  content message("user", {});
  message.parts.emplace_back(function_response{id, name, std::move(with)});
  return message;
}

/// An event by a user with any fields.
event forged(const std::string& run, json fields) {
  event said(content("user", {part("forged")}));
  said.author = "user";
  said.invocation_id = run;
  said.extra = std::move(fields);
  return said;
}

json metadata_of(const char* name, json data) {
  auto fields = json::object();
  fields["customMetadata"]["troupe"][name] = std::move(data);
  return fields;
}

json path_fields(const std::string& path) {
  auto fields = json::object();
  fields["nodeInfo"]["path"] = path;
  return fields;
}

} // namespace

// -- every prefix ----

BOOST_DATA_TEST_CASE(a_run_goes_on_from_every_event, each_tree, index) {
  const auto& of = all_trees()[index];
  const whole_run whole(of);
  BOOST_TEST_REQUIRE(whole.code == "ok", of.name << ": " << whole.reason);
  for (auto cut = whole.message(); cut <= whole.changes.size(); ++cut) {
    BOOST_TEST_CONTEXT(of.name << " cut after " << cut << " of "
                               << whole.changes.size() << ": "
                               << last_of(whole.changes, cut)) {
      process on(whole.cut(cut));
      const auto count = make_counter();
      const auto code = on.recover(of.make(count));
      BOOST_TEST(code == "ok", code << ": " << on.reason);
      BOOST_TEST(claims_in(on) == 1U);
      check_equal(on,
                  of,
                  whole,
                  count->taken(),
                  rest_of(whole.calls, completed_in(whole.changes, cut)));
    }
  }
}

// The second process ends after its claim and one or two more events.
BOOST_DATA_TEST_CASE(a_recovered_run_is_recovered_again, each_tree, index) {
  const auto& of = all_trees()[index];
  const whole_run whole(of);
  for (auto cut = whole.message(); cut <= whole.changes.size(); ++cut) {
    process second(whole.cut(cut));
    second.recover(of.make(make_counter()));
    auto changes = whole.changes;
    changes.resize(cut);
    const auto later = second.log->taken();
    for (std::size_t more = 1; more <= std::min<std::size_t>(3, later.size());
         ++more) {
      changes.push_back(later[more - 1]);
      BOOST_TEST_CONTEXT(of.name << " cut after " << cut << " and " << more
                                 << ": " << last_of(changes, changes.size())) {
        process third(place_with(changes, changes.size()));
        const auto count = make_counter();
        const auto code = third.recover(of.make(count));
        BOOST_TEST(code == "ok", code << ": " << third.reason);
        BOOST_TEST(claims_in(third) == 2U);
        check_equal(
          third,
          of,
          whole,
          count->taken(),
          rest_of(whole.calls, completed_in(changes, changes.size())));
      }
    }
  }
}

// -- calls that are made again ----

BOOST_AUTO_TEST_CASE(a_call_is_made_again_with_its_id) {
  const auto ids = std::make_shared<std::vector<std::string>>();
  const auto tells_id
    = tool_of("tells", [ids](const json&, tool_context& context) -> json {
        ids->push_back(context.function_call_id());
        return "told";
      });
  const auto make = [&](const counter& count) {
    return thinks(count, "a", {calling("tells"), {.text = "done"}}, {tells_id});
  };
  process on;
  on.open();
  BOOST_TEST_REQUIRE(on.go(make(make_counter())) == "ok");
  const auto changes = on.log->taken();
  // Behind the model's answer.
  process second(place_with(changes, up_to_message(changes) + 1));
  BOOST_TEST(second.recover(make(make_counter())) == "ok");
  BOOST_TEST_REQUIRE(ids->size() == 2U);
  BOOST_TEST(ids->at(0) == ids->at(1));
}

BOOST_AUTO_TEST_CASE(an_agent_that_has_ended_does_not_run_again) {
  const auto make = [](const counter& count) {
    return sequential("s",
                      {adder(count, "first", "n"),
                       adder(count, "second", "n"),
                       adder(count, "third", "n")});
  };
  process on;
  on.open();
  BOOST_TEST_REQUIRE(on.go(make(make_counter())) == "ok");
  const auto changes = on.log->taken();
  const auto message = up_to_message(changes);
  for (std::size_t events = 0; events <= 3; ++events) {
    process second(place_with(changes, message + events));
    const auto count = make_counter();
    BOOST_TEST(second.recover(make(count)) == "ok");
    // An agent has ended once the next one has an event.
    BOOST_TEST(count->of("body:first") == (events > 1 ? 0 : 1));
    BOOST_TEST(count->of("body:second") == (events > 2 ? 0 : 1));
    BOOST_TEST(count->of("body:third") == 1);
  }
}

BOOST_AUTO_TEST_CASE(an_update_returns_the_value_that_it_had_written) {
  const auto got = std::make_shared<std::vector<int>>();
  const auto root
    = custom("a", [got](invocation_context& context) -> agent_run {
        const auto written
          = co_await context.update("n", [](const std::optional<json>& now) {
              return json((now ? now->get<int>() : 0) + 1);
            });
        got->push_back(written.get<int>());
        context.state().add("n", 10);
        co_await context.emit(text("behind"));
      });
  const auto place = ended_behind(root, "behind");
  process second(place);
  BOOST_TEST(second.recover(root) == "ok");
  BOOST_TEST_REQUIRE(got->size() == 2U);
  BOOST_TEST(got->at(0) == 1);
  BOOST_TEST(got->at(1) == 1);
  BOOST_TEST(second.state(second.key).at("n") == 11);
}

BOOST_AUTO_TEST_CASE(callbacks_around_the_run_are_called_once) {
  const auto plugins_of = [](const counter& count) {
    plugin made;
    made.name = "counts";
    made.before_run = [count](callback_context& context) {
      count->add("before");
      context.state().add("before", 1);
    };
    made.after_run = [count](callback_context& context) {
      count->add("after");
      context.state().add("after", 1);
    };
    return std::vector{made};
  };
  const auto make = [](const counter& count) {
    return sequential("s",
                      {adder(count, "first", "n"), adder(count, "last", "n")});
  };
  process on(make_memory_data(), {}, plugins_of(make_counter()));
  on.open();
  BOOST_TEST_REQUIRE(on.go(make(make_counter())) == "ok");
  const auto changes = on.log->taken();
  const auto message = up_to_message(changes);
  // The last event has the changes of `after_run`.
  for (auto cut = message; cut <= changes.size(); ++cut) {
    const auto count = make_counter();
    process second(place_with(changes, cut), {}, plugins_of(count));
    BOOST_TEST(second.recover(make(make_counter())) == "ok");
    BOOST_TEST(show_state(second) == show_state(on));
    BOOST_TEST(count->of("before") == (cut == message ? 1 : 0));
    BOOST_TEST(count->of("after") == (cut == changes.size() ? 0 : 1));
  }
}

BOOST_AUTO_TEST_CASE(the_handle_delivers_only_new_events) {
  const auto make = [](const counter& count) {
    return sequential("s",
                      {adder(count, "first", "n"),
                       adder(count, "second", "n"),
                       adder(count, "third", "n")});
  };
  process second(ended_behind(make(make_counter()), "second was here"));
  auto started
    = second.runtime.recover(make(make_counter()), second.key, second.run_id());
  BOOST_TEST(started.invocation_id() == second.run_id());
  std::string said;
  for (const auto& each : started)
    said += each->text();
  BOOST_TEST(said == "third was here");
}

// -- refusals ----

BOOST_AUTO_TEST_CASE(only_runs_that_the_session_has_are_recovered) {
  const auto make = [] { return adder(make_counter(), "a", "n"); };
  process on;
  on.open();
  BOOST_TEST_REQUIRE(on.go(make()) == "ok");
  const auto events = on.events(on.key).size();
  BOOST_TEST(on.recover(make(), {}, "nothing") == "not_found");
  BOOST_TEST(on.tells("nothing"), on.reason);
  BOOST_TEST(on.end_of(on.runtime.recover(make(), on.key, ""))
             == "invalid_argument");
  BOOST_TEST(on.tells("empty"), on.reason);
  const session_key nowhere("press", "ann", "nowhere");
  BOOST_TEST(on.end_of(on.runtime.recover(make(), nowhere, on.run_id()))
             == "not_found");
  BOOST_TEST(on.tells("nowhere"), on.reason);
  BOOST_TEST(on.events(on.key).size() == events);
}

BOOST_AUTO_TEST_CASE(a_run_that_has_paused_is_answered) {
  const auto place = make_memory_data();
  process first(place);
  first.open();
  BOOST_TEST_REQUIRE(first.go(one_call("a", order())) == "ok");
  BOOST_TEST_REQUIRE(first.waits.size() == 1U);
  process second(place);
  const auto events = second.events(second.key).size();
  BOOST_TEST(second.recover(one_call("a", order())) == "not_found");
  BOOST_TEST(second.tells("paused"), second.reason);
  BOOST_TEST(second.events(second.key).size() == events);
  BOOST_TEST(second.sessions().open_calls(second.key).value().size() == 1U);
}

BOOST_AUTO_TEST_CASE(recoveries_are_counted_over_all_processes) {
  process first;
  first.open();
  BOOST_TEST_REQUIRE(first.go(says("a", "fine")) == "ok");
  auto changes = first.log->taken();
  changes.resize(up_to_message(changes));
  // Two processes end behind their claims.
  for (int count = 1; count <= 2; ++count) {
    process ended(place_with(changes, changes.size()));
    BOOST_TEST(ended.recover(says("a", "fine"), {.recoveries_max = 2}) == "ok");
    changes.push_back(ended.log->taken().front());
  }
  process on(place_with(changes, changes.size()));
  const auto events = on.events(on.key).size();
  BOOST_TEST(claims_in(on) == 2U);
  BOOST_TEST(on.recover(says("a", "fine"), {.recoveries_max = 2})
             == "limit_exceeded");
  BOOST_TEST(on.tells("recoveries_max"), on.reason);
  BOOST_TEST(on.events(on.key).size() == events);
  BOOST_TEST(on.recover(says("a", "fine")) == "ok");
  BOOST_TEST(claims_in(on) == 3U);
}

BOOST_AUTO_TEST_CASE(a_recovery_with_another_root_does_not_count) {
  process on(ended_behind(says("old", "I am old"), "I am old"));
  const auto events = on.events(on.key).size();
  const run_options once{.recoveries_max = 1};
  BOOST_TEST(on.recover(says("young", "I am young"), once) == "conflict");
  BOOST_TEST(on.tells("'old'"), on.reason);
  BOOST_TEST(on.tells("'young'"), on.reason);
  BOOST_TEST(claims_in(on) == 0U);
  BOOST_TEST(on.events(on.key).size() == events);
  BOOST_TEST(on.recover(says("old", "I am old"), once) == "ok");
  BOOST_TEST(claims_in(on) == 1U);
}

BOOST_AUTO_TEST_CASE(no_run_is_recovered_more_than_never) {
  process on(ended_behind(says("a", "x"), "x"));
  BOOST_TEST(on.recover(says("a", "x"), {.recoveries_max = 0})
             == "limit_exceeded");
  BOOST_TEST(claims_in(on) == 0U);
}

BOOST_AUTO_TEST_CASE(keys_that_are_lost_have_to_be_allowed) {
  const auto root
    = sequential("s",
                 {custom("a",
                         [](invocation_context& context) -> agent_run {
                           context.state().set("temp:x", 1);
                           co_await context.emit(text("set"));
                         }),
                  says("b", "behind"),
                  tells("c", "temp:x")});
  for (const auto* words : {"set", "behind"}) {
    process on(ended_behind(root, words));
    const auto events = on.events(on.key).size();
    BOOST_TEST(on.recover(root) == "conflict");
    BOOST_TEST(on.tells("temp:x"), on.reason);
    BOOST_TEST(on.tells("allow_lost_temp"), on.reason);
    BOOST_TEST(on.events(on.key).size() == events);
    BOOST_TEST(on.recover(root, {.allow_lost_temp = true}) == "ok");
  }
  process on(ended_behind(root, "behind"));
  BOOST_TEST(on.recover(root, {.allow_lost_temp = true}) == "ok");
  // `a` does not run again.
  BOOST_TEST(on.texts(on.key).back() == "absent");
}

BOOST_AUTO_TEST_CASE(keys_of_the_message_are_lost_too) {
  const auto root = says("a", "x");
  process on(ended_behind(root, "x", {"go", {{"temp:said", 1}, {"kept", 1}}}));
  BOOST_TEST(on.recover(root) == "conflict");
  BOOST_TEST(on.tells("temp:said"), on.reason);
  BOOST_TEST(!on.tells("kept"), on.reason);
  BOOST_TEST(claims_in(on) == 0U);
  BOOST_TEST(on.recover(root, {.allow_lost_temp = true}) == "ok");
}

BOOST_AUTO_TEST_CASE(keys_of_a_lane_are_lost_until_it_has_ended) {
  const auto one = custom("one", [](invocation_context& context) -> agent_run {
    context.state().set("temp:x", 1);
    co_await context.emit(text("set"));
    co_await context.emit(text("later"));
  });
  const auto root
    = sequential("s",
                 {parallel({.name = "p", .isolate_temp = true}, {one}),
                  says("b", "behind")});
  process active(ended_behind(root, "set"));
  BOOST_TEST(active.recover(root) == "conflict");
  BOOST_TEST(active.tells("temp:x"), active.reason);
  BOOST_TEST(active.recover(root, {.allow_lost_temp = true}) == "ok");
  BOOST_TEST(active.texts(active.key).back() == "behind");
  process ended(ended_behind(root, "behind"));
  BOOST_TEST(ended.recover(root) == "ok");
}

BOOST_AUTO_TEST_CASE(a_message_that_was_taken_back_is_not_recovered) {
  process on(ended_behind(says("a", "x"), "x"));
  const auto id = on.run_id();
  on.sessions().rewind(on.key, rewind_target::before_run(id)).value();
  BOOST_TEST(on.recover(says("a", "x"), {}, id) == "not_found");
  BOOST_TEST(on.tells("rewind"), on.reason);
  BOOST_TEST(claims_in(on) == 0U);
}

BOOST_AUTO_TEST_CASE(a_rewind_within_the_run_takes_its_later_steps_back) {
  const auto make = [](const counter& count) {
    return sequential("s",
                      {adder(count, "first", "n"),
                       adder(count, "second", "n"),
                       adder(count, "third", "n")});
  };
  process on;
  on.open();
  BOOST_TEST_REQUIRE(on.go(make(make_counter())) == "ok");
  const auto changes = on.log->taken();
  process second(place_with(changes, up_to_text(changes, "third was here")));
  // Behind the message and the event of `first`.
  second.sessions().rewind(second.key, rewind_target::to(2)).value();
  BOOST_TEST(second.state(second.key).at("n") == 1);
  const auto count = make_counter();
  BOOST_TEST(second.recover(make(count)) == "ok");
  BOOST_TEST(count->of("body:second") == 1);
  BOOST_TEST(count->of("body:third") == 1);
  BOOST_TEST(second.state(second.key).at("n") == 3);
}

// -- changed programs ----

namespace {

std::vector<agent> spoken(const std::vector<std::string>& names) {
  std::vector<agent> all;
  for (const auto& each : names)
    all.push_back(says(each, "I am " + each));
  return all;
}

struct changed_program {
  agent before;
  std::string words; ///< Of the last event.
  agent now;
  std::vector<std::string> told; ///< Parts of the reason.
};

void check_changed(const changed_program& is) {
  process on(ended_behind(is.before, is.words));
  const auto state = show_state(on);
  const auto events = show_events(on.events(on.key), false);
  BOOST_TEST(on.recover(is.now) == "conflict");
  for (const auto& each : is.told)
    BOOST_TEST(on.tells(each), each << " in " << on.reason);
  BOOST_TEST(show_state(on) == state);
  BOOST_TEST(show_events(on.events(on.key), false) == events);
}

workflow_node silent(const std::string& name) {
  return function(name, [name](node_context&) { return json(name); });
}

agent row_of(std::vector<workflow_node> nodes) {
  std::vector<workflow_edge> edges;
  std::string last = workflow_start;
  for (const auto& each : nodes) {
    edges.push_back({last, each.name});
    last = each.name;
  }
  return workflow(
    {.name = "w", .nodes = std::move(nodes), .edges = std::move(edges)});
}

workflow_node speaking(const std::string& name) {
  return function(
    name, [name](node_context& context) -> task<std::optional<node_output>> {
      co_await context.emit(text("I am {}", name));
      co_return node_output(name);
    });
}

} // namespace

BOOST_AUTO_TEST_CASE(another_order_of_agents_is_told) {
  check_changed({.before = sequential("s", spoken({"one", "two", "three"})),
                 .words = "I am two",
                 .now = sequential("s", spoken({"two", "one", "three"})),
                 .told = {"'one'", "'two'", "order", "s@1"}});
  check_changed({.before = loop({.name = "s", .max_iterations = 2},
                                spoken({"one", "two", "three"})),
                 .words = "I am two",
                 .now = loop({.name = "s", .max_iterations = 2},
                             spoken({"two", "one", "three"})),
                 .told = {"'one'", "'two'", "order"}});
}

BOOST_AUTO_TEST_CASE(a_missing_agent_is_told) {
  check_changed({.before = sequential("s", spoken({"one", "two", "three"})),
                 .words = "I am two",
                 .now = sequential("s", spoken({"one", "three"})),
                 .told = {"'s'", "'two'"}});
  check_changed({.before = parallel("p", spoken({"one"})),
                 .words = "I am one",
                 .now = parallel("p", spoken({"three"})),
                 .told = {"'p'", "'one'"}});
}

BOOST_AUTO_TEST_CASE(another_root_is_told) {
  check_changed({.before = says("old", "I am old"),
                 .words = "I am old",
                 .now = says("young", "I am young"),
                 .told = {"'old'", "'young'"}});
}

BOOST_AUTO_TEST_CASE(another_kind_of_agent_is_told) {
  check_changed(
    {.before = sequential("s", spoken({"a", "b"})),
     .words = "I am a",
     .now = sequential("s", {sequential("a", spoken({"x"})), says("b", "b")}),
     .told = {"'a'", "kind"}});
}

BOOST_AUTO_TEST_CASE(a_changed_workflow_is_told) {
  check_changed({.before = row_of({silent("a"), speaking("b"), silent("c")}),
                 .words = "I am b",
                 .now = row_of({silent("a"), speaking("b")}),
                 .told = {"'w'", "'b'"}});
  check_changed({.before = row_of({silent("a"), speaking("b")}),
                 .words = "I am b",
                 .now = row_of({silent("a"), speaking("b"), silent("more")}),
                 .told = {"'w'", "'b'"}});
  // A changed row of a node that has not begun.
  check_changed({.before = row_of({silent("a"), speaking("b")}),
                 .words = "I am b",
                 .now = row_of({silent("a"), speaking("b2")}),
                 .told = {"'w'"}});
}

BOOST_AUTO_TEST_CASE(a_body_that_says_something_else_is_a_conflict) {
  check_changed({.before = says("a", "before"),
                 .words = "before",
                 .now = says("a", "after"),
                 .told = {"other content"}});
}

BOOST_AUTO_TEST_CASE(a_body_that_updates_another_key_is_a_conflict) {
  const auto updating = [](const std::string& key) {
    return custom("a", [key](invocation_context& context) -> agent_run {
      co_await context.update(
        key, [](const std::optional<json>&) { return json(1); });
      co_await context.emit(text("updated"));
    });
  };
  check_changed({.before = updating("x"),
                 .words = "updated",
                 .now = updating("y"),
                 .told = {"'a'", "'y'"}});
}

// -- runs that go on from a pause ----

namespace {

agent orders(const counter& count) {
  return thinks(count, "a", {calling("order"), {.text = "done"}}, {order()});
}

/// A place where a run has paused for `order`, and the process of the run with
/// the answer has ended behind its message.
struct answered_place {
  answered_place() {
    process on;
    on.open();
    on.go(orders(make_counter()));
    call = on.waits.at(0);
    on.go(orders(make_counter()), answer());
    changes = on.log->taken();
    std::size_t messages = 0;
    for (std::size_t index = 0; index < changes.size(); ++index)
      if (changes[index].kind == change_kind::append
          && changes[index].event->author == "user" && ++messages == 2) {
        run = changes[index].event->invocation_id;
        place = place_with(changes, index + 1);
      }
  }

  content answer() const {
    return answer_to(call, "order", json{{"result", "three"}});
  }

  std::string call;
  std::string run;
  std::vector<store_change> changes;
  std::shared_ptr<memory_data> place;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_run_that_went_on_from_a_pause_is_recovered) {
  const answered_place at;
  BOOST_TEST_REQUIRE(at.place != nullptr);
  process on(at.place);
  const auto count = make_counter();
  BOOST_TEST(on.recover(orders(count), {}, at.run) == "ok");
  BOOST_TEST(on.texts(on.key).back() == "done");
  BOOST_TEST(show_counts(count->taken()) == "model:a=1 ");
  BOOST_TEST(on.state(on.key).at("ordered") == 1);
  BOOST_TEST(on.sessions().open_calls(on.key).value().empty());
  // The run before has paused, and is over.
  BOOST_TEST(on.recover(orders(count)) == "conflict");
}

BOOST_AUTO_TEST_CASE(a_failed_recovery_gives_its_pause_back) {
  const answered_place at;
  BOOST_TEST_REQUIRE(at.place != nullptr);
  process on(at.place);
  scripted_reply refusal;
  refusal.failure = "no model today";
  const auto broken = uses("a", scripted({{"a", {refusal}}}), {order()});
  BOOST_TEST(on.recover(broken, {}, at.run) == "model_failed");
  BOOST_TEST_REQUIRE(on.sessions().open_calls(on.key).value().size() == 1U);
  BOOST_TEST(on.recover(orders(make_counter()), {}, at.run) == "not_found");
  BOOST_TEST(on.go(orders(make_counter()), at.answer()) == "ok");
  BOOST_TEST(on.texts(on.key).back() == "done");
  BOOST_TEST(on.state(on.key).at("ordered") == 1);
}

namespace {

/// A question of a node, and what follows it.
agent asking_graph(const counter& count) {
  return workflow({.name = "w",
                   .nodes = {counting_node(count, "a"),
                             function("q",
                                      [](node_context& context) {
                                        const auto answer
                                          = context.ask("How many?");
                                        context.state().add("asked", 1);
                                        return answer;
                                      }),
                             counting_node(count, "z")},
                   .edges = {{"START", "a"}, {"a", "q"}, {"q", "z"}}});
}

/// A map whose items ask, but for the first one.
agent asking_map(const counter& count) {
  const node_function work = [count](node_context& context) -> json {
    json answer;
    if (context.input() != 1)
      answer = context.ask("item " + to_text(context.input()));
    count->add("item:each");
    context.state().add("n", 1);
    return answer;
  };
  return workflow(
    {.name = "w",
     .nodes = {trees::listing_node(count, {1, 2, 3}),
               {.name = "each", .work = map_over{.work = work, .lanes_max = 1}},
               counting_node(count, "z")},
     .edges = {{"START", "list"}, {"list", "each"}, {"each", "z"}}});
}

/// A map of an agent that waits for an answer from outside.
agent map_of_orders(const counter& count) {
  return workflow(
    {.name = "w",
     .nodes = {trees::listing_node(count, {"x", "y"}),
               {.name = "each", .work = map_over{.work = orders(count)}},
               counting_node(count, "z")},
     .edges = {{"START", "list"}, {"list", "each"}, {"each", "z"}}});
}

const std::vector<recovery_tree>& pausing_trees() {
  static const std::vector<recovery_tree> all{
    {.name = "long_running", .make = orders},
    {.name = "confirmation",
     .make =
       [](const counter& count) {
         return thinks(count, "a", {calling("pay"), {.text = "done"}}, {pay()});
       }},
    {.name = "beside_another_tool",
     .make =
       [](const counter& count) {
         scripted_reply both;
         both.function_calls
           = {{"", "one", json::object()}, {"", "order", json::object()}};
         return thinks(count,
                       "a",
                       {both, {.text = "done"}},
                       {counting_tool(count, "one"), order()});
       }},
    {.name = "question", .make = asking_graph},
    {.name = "map_with_questions", .make = asking_map},
    {.name = "map_of_agents", .make = map_of_orders, .at_once = true},
    {.name = "in_a_sequence",
     .make =
       [](const counter& count) {
         return sequential(
           "s",
           {adder(count, "first", "n"), orders(count), adder(count, "z", "n")});
       }},
    {.name = "in_a_body",
     .make =
       [](const counter& count) {
         const auto below = orders(count);
         const auto first = adder(count, "first", "n");
         return custom(
           "boss",
           [first, below](invocation_context& context) -> agent_run {
             co_await context.run(first);
             co_await context.run(below);
             context.state().add("boss", 1);
             co_await context.emit(text("boss is done"));
           },
           {first, below});
       }},
    {.name = "in_lanes",
     .make =
       [](const counter& count) {
         return sequential(
           "s",
           {parallel(
              "p",
              {orders(count),
               thinks(count, "b", {calling("pay"), {.text = "paid"}}, {pay()}),
               adder(count, "c", "n")}),
            adder(count, "last", "n")});
       },
     .at_once = true}};
  return all;
}

/// Answers all calls that a process waits for.
content answers_to(process& on) {
  content message("user", {});
  for (const auto& said : on.events(on.key))
    for (const auto& element : said->content.parts) {
      const auto* call = element.call();
      if (call == nullptr || std::ranges::count(on.waits, call->id) == 0)
        continue;
      auto with = call->name == "adk_request_confirmation"
                    ? yes
                    : json::object({{"result", 7}});
      message.parts.emplace_back(
        function_response{call->id, call->name, std::move(with)});
    }
  return message;
}

bool is_pause(const store_change& change) {
  return change.event && change.event->actions.extra.data().is_object()
         && change.event->actions.extra.data().contains("agentState")
         && change.event->actions.extra.data()
              .at("agentState")
              .contains("waitsFor");
}

} // namespace

BOOST_DATA_TEST_CASE(runs_that_pause_go_on_from_every_event,
                     boost::unit_test::data::xrange(pausing_trees().size()),
                     index) {
  const auto& of = pausing_trees()[index];
  process whole;
  whole.open();
  const auto first_calls = make_counter();
  BOOST_TEST_REQUIRE(whole.go(of.make(first_calls)) == "ok");
  BOOST_TEST_REQUIRE(!whole.waits.empty());
  const auto paused_state = show_state(whole);
  const auto paused_events = show_events(whole.events(whole.key), of.at_once);
  const auto paused_waits = whole.waits.size();
  const auto paused = whole.log->taken().size();
  const auto later_calls = make_counter();
  BOOST_TEST_REQUIRE(whole.go(of.make(later_calls), answers_to(whole)) == "ok");
  BOOST_TEST_REQUIRE(whole.waits.empty());
  const auto changes = whole.log->taken();
  const auto last_run = changes.back().event->invocation_id;
  const auto check_end = [&](process& on, const std::string& code) {
    BOOST_TEST(code == "ok", code << ": " << on.reason);
    BOOST_TEST(on.waits.empty());
    BOOST_TEST(show_state(on) == show_state(whole));
    BOOST_TEST(show_events(on.events(on.key), of.at_once)
               == show_events(whole.events(whole.key), of.at_once));
    const auto all = on.events(on.key);
    for (const auto& each : all)
      BOOST_TEST(first_invocation(*each) == on.run_id());
    BOOST_TEST(all.back()->invocation_id != on.run_id());
  };
  for (auto cut = up_to_message(changes); cut <= changes.size(); ++cut) {
    BOOST_TEST_CONTEXT(of.name << " cut after " << cut << " of " << paused
                               << " and " << changes.size() << ": "
                               << last_of(changes, cut)) {
      process on(place_with(changes, cut));
      const auto count = make_counter();
      const auto done = completed_in(changes, cut);
      if (cut < paused) {
        const auto code = on.recover(of.make(count));
        BOOST_TEST(code == "ok", code << ": " << on.reason);
        BOOST_TEST(on.waits.size() == paused_waits);
        BOOST_TEST(show_state(on) == paused_state);
        BOOST_TEST(show_events(on.events(on.key), of.at_once) == paused_events);
        BOOST_TEST(show_counts(count->taken())
                   == show_counts(rest_of(first_calls->taken(), done)));
        check_end(on, on.go(of.make(make_counter()), answers_to(on)));
      } else if (cut == paused) {
        BOOST_TEST_REQUIRE(is_pause(changes[cut - 1]));
        BOOST_TEST(on.recover(of.make(count)) == "conflict");
      } else {
        check_end(on, on.recover(of.make(count), {}, last_run));
        auto before = completed_in(changes, paused);
        BOOST_TEST(
          show_counts(count->taken())
          == show_counts(rest_of(later_calls->taken(), rest_of(done, before))));
      }
    }
  }
}

// -- later turns ----

BOOST_AUTO_TEST_CASE(the_conversation_stays_with_the_agent_that_has_it) {
  const auto make = [](const counter& count) {
    auto chat
      = thinker(count,
                "chat",
                {calling("transfer_to_agent", {{"agent_name", "billing"}})});
    return llm(std::move(chat), {thinks(count, "billing", {{.text = "paid"}})});
  };
  process whole;
  whole.open();
  BOOST_TEST_REQUIRE(whole.go(make(make_counter())) == "ok");
  BOOST_TEST_REQUIRE(whole.texts(whole.key).back() == "paid");
  const auto changes = whole.log->taken();
  for (auto cut = up_to_message(changes); cut <= changes.size(); ++cut) {
    process on(place_with(changes, cut));
    BOOST_TEST(on.recover(make(make_counter())) == "ok");
    const auto count = make_counter();
    BOOST_TEST(on.go(make(count), "and now?") == "ok");
    BOOST_TEST(show_counts(count->taken()) == "model:billing=1 ",
               "cut after " << cut);
  }
}

BOOST_AUTO_TEST_CASE(a_later_run_does_not_hide_the_one_before) {
  const auto make = [](const counter& count) {
    return sequential("s",
                      {adder(count, "first", "n"), adder(count, "last", "n")});
  };
  process on(ended_behind(make(make_counter()), "first was here"));
  const auto id = on.run_id();
  BOOST_TEST(on.go(make(make_counter()), "again") == "ok");
  BOOST_TEST(on.state(on.key).at("n") == 3);
  const auto count = make_counter();
  BOOST_TEST(on.recover(make(count), {}, id) == "ok");
  BOOST_TEST(on.state(on.key).at("n") == 4);
  BOOST_TEST(on.events(on.key).back()->invocation_id == id);
}

// The first event behind lost keys names them. A body that makes this event
// again, when its writer does not run again, makes the same event.
BOOST_AUTO_TEST_CASE(a_body_repeats_an_event_that_names_lost_keys) {
  const auto sets
    = [](callback_context& context) { context.state().set("temp:x", 1); };
  const auto body = [](invocation_context& context) -> agent_run {
    co_await context.emit(text("one"));
    co_await context.emit(text("two"));
  };
  const auto with_callback
    = custom(custom_options{.name = "a", .run = body, .before_agent = {sets}});
  const auto behind_another
    = sequential("s",
                 {custom("w",
                         [](invocation_context& context) -> agent_run {
                           co_await context.emit(text("zero"));
                           context.state().set("temp:x", 1);
                         }),
                  custom("a", body)});
  for (const auto& root : {with_callback, behind_another}) {
    process on(ended_behind(root, "one"));
    BOOST_TEST(on.recover(root) == "conflict");
    BOOST_TEST(on.tells("temp:x"), on.reason);
    const auto code = on.recover(root, {.allow_lost_temp = true});
    BOOST_TEST(code == "ok", code << ": " << on.reason);
    const auto texts = on.texts(on.key);
    BOOST_TEST(std::ranges::count(texts, "one") == 1);
    BOOST_TEST(std::ranges::count(texts, "two") == 1);
  }
}

// -- events by users ----

namespace {

const std::vector<json>& forged_fields() {
  static const std::vector<json> all = [] {
    auto placed = [](const std::string& path, json fields) {
      fields["nodeInfo"]["path"] = path;
      return fields;
    };
    return std::vector<json>{
      metadata_of("recovers", 1),
      metadata_of("recovers", 7),
      path_fields("s@1/third@1"),
      path_fields("s@1/other@1"),
      path_fields("s@1"),
      placed("s@1", metadata_of("step", "after_agent")),
      placed("s@1/first@1", metadata_of("step", "after_agent")),
      placed("s@1/second@1", metadata_of("step", "after_agent")),
      placed("s@1/second@1", metadata_of("step", "state")),
      metadata_of("step", "before_run"),
      metadata_of("answers", true),
      metadata_of("temp", json::array({"x"})),
      placed("s@1/second@1", metadata_of("temp", json::array({"x"}))),
      metadata_of("items", json::array({1, 2})),
      metadata_of("result", 5),
      metadata_of("firstInvocation", "e-other")};
  }();
  return all;
}

agent three_steps(const counter& count) {
  return sequential("s",
                    {adder(count, "first", "n"),
                     thinks(count,
                            "second",
                            {calling("one"), {.text = "middle"}},
                            {counting_tool(count, "one")}),
                     adder(count, "third", "n")});
}

} // namespace

BOOST_DATA_TEST_CASE(an_event_by_a_user_changes_no_recovery,
                     boost::unit_test::data::xrange(forged_fields().size()),
                     index) {
  const auto& fields = forged_fields()[index];
  const recovery_tree of{.name = "three_steps", .make = three_steps};
  const whole_run whole(of);
  for (auto cut = whole.message(); cut < whole.changes.size(); ++cut) {
    BOOST_TEST_CONTEXT(to_text(fields) << " after " << cut) {
      process on(whole.cut(cut));
      const auto id = on.run_id();
      BOOST_TEST_REQUIRE(on.append(on.key, forged(id, fields)) == "ok");
      const auto count = make_counter();
      const auto code = on.recover(three_steps(count));
      BOOST_TEST(code == "ok", code << ": " << on.reason);
      BOOST_TEST(show_state(on) == whole.state);
      BOOST_TEST(
        show_counts(count->taken())
        == show_counts(rest_of(whole.calls, completed_in(whole.changes, cut))));
      std::string shown;
      for (const auto& each : on.events(on.key))
        if (each->text() != "forged" && !claims_run(*each))
          shown
            += with_names(show_event(*each, false), calls_in(on.events(on.key)))
               + "\n";
      BOOST_TEST(shown == whole.events);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_pause_by_a_user_changes_no_recovery) {
  const recovery_tree of{.name = "three_steps", .make = three_steps};
  const whole_run whole(of);
  for (const auto* name : {"waitsFor", "releases"}) {
    process on(whole.cut(whole.message() + 1));
    auto said = forged(on.run_id(), json());
    auto state = json::object();
    if (name == std::string("waitsFor"))
      state[name] = json::array({"x"});
    else
      state[name] = on.events(on.key).front()->id;
    said.actions.extra = json::object({{"agentState", std::move(state)}});
    BOOST_TEST_REQUIRE(on.append(on.key, std::move(said)) == "ok");
    const auto code = on.recover(three_steps(make_counter()));
    BOOST_TEST(code == "ok", name << ": " << on.reason);
    BOOST_TEST(show_state(on) == whole.state);
  }
}

BOOST_AUTO_TEST_CASE(a_user_can_take_no_run_away) {
  const auto place = make_memory_data();
  process first(place);
  process second(place);
  first.open();
  const auto count = make_counter();
  const held_tool held(count);
  auto started = first.runtime.run(
    holder(count, held.made), first.key, user_message("go"));
  held.begun->await(1);
  BOOST_TEST_REQUIRE(
    second.append(second.key,
                  forged(second.run_id(), metadata_of("recovers", 1)))
    == "ok");
  held.released->add();
  BOOST_TEST(code_of(started.wait().get()) == "ok");
  BOOST_TEST(first.texts(first.key).back() == "done");
}

// -- retries ----

namespace {

/// Simulated time that notes the delays of its timers.
class noting_environment : public simulated_environment {
public:
  using simulated_environment::simulated_environment;

  void call_after(std::chrono::nanoseconds delay,
                  std::function<void()> done) override {
    simulated_environment::call_after(delay, std::move(done));
    const std::lock_guard guard(mutex_);
    delays_.push_back(delay);
    noted_.notify_all();
  }

  /// Waits until so many timers with exactly this delay were set.
  void await_delay(std::chrono::nanoseconds delay, std::ptrdiff_t count = 1) {
    std::unique_lock guard(mutex_);
    if (!noted_.wait_for(guard, patience, [&] {
          return std::ranges::count(delays_, delay) >= count;
        }))
      throw std::runtime_error("no timer of this delay was set");
  }

  /// Waits for a timer of more than 400 s, and returns its delay.
  std::chrono::nanoseconds await_long_delay() {
    std::unique_lock guard(mutex_);
    auto found = delays_.end();
    if (!noted_.wait_for(guard, patience, [&] {
          found = std::ranges::find_if(delays_,
                                       [](auto delay) { return delay > 400s; });
          return found != delays_.end();
        }))
      throw std::runtime_error("no long timer was set");
    return *found;
  }

private:
  std::mutex mutex_;
  std::condition_variable noted_;
  std::vector<std::chrono::nanoseconds> delays_;
};

/// A workflow of one node whose first attempt fails, and that is tried again
/// 1,001 s later.
agent tried_again(const counter& count,
                  std::uint64_t attempts_max = 2,
                  double jitter = 0) {
  auto node = function("n", [count, attempts_max](node_context& context) {
    count->add("node:n");
    if (context.attempt() < attempts_max || attempts_max == 1)
      throw error(errc::tool_failed, "not yet");
    context.state().add("n", 1);
    return json("done");
  });
  node.retry = {.attempts_max = attempts_max,
                .first_delay = 1001s,
                .delay_max = 2002s,
                .jitter = jitter};
  return workflow({.name = "w", .nodes = {node}, .edges = {{"START", "n"}}});
}

/// The changes of a run up to the failure event of an attempt.
std::vector<store_change>
up_to_failure(std::uint64_t attempts_max,
              double jitter = 0,
              const std::shared_ptr<noting_environment>& time
              = std::make_shared<noting_environment>(1)) {
  process on(make_memory_data(), time);
  on.open();
  auto started
    = on.runtime.run(tried_again(make_counter(), attempts_max, jitter),
                     on.key,
                     user_message("go"));
  for (;;) {
    const auto said = started.next().get().value();
    BOOST_TEST_REQUIRE(said != nullptr);
    if (!said->field("errorCode").empty())
      break;
  }
  if (jitter > 0)
    time->await_long_delay();
  auto changes = on.log->taken();
  started.cancel();
  while (changes.back().event->field("errorCode").empty())
    changes.pop_back();
  return changes;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_recovered_node_waits_for_the_rest_of_its_time) {
  const auto changes = up_to_failure(2);
  const auto time = std::make_shared<noting_environment>(2);
  time->advance(400s);
  process on(place_with(changes, changes.size()), time);
  const auto count = make_counter();
  auto started = on.runtime.recover(tried_again(count), on.key, on.run_id());
  time->await_delay(601s);
  BOOST_TEST(count->of("node:n") == 0);
  time->advance(601s);
  BOOST_TEST(code_of(started.wait().get()) == "ok");
  BOOST_TEST(count->of("node:n") == 1);
  BOOST_TEST(on.state(on.key).at("n") == 1);
}

// The random share of a wait differs from run to run, and a recovery keeps it.
BOOST_AUTO_TEST_CASE(a_recovered_node_waits_until_the_time_of_its_run) {
  std::set<std::chrono::nanoseconds> waits;
  for (const unsigned seed : {1U, 2U, 3U}) {
    const auto first = std::make_shared<noting_environment>(seed);
    const auto changes = up_to_failure(2, 0.5, first);
    const auto whole = first->await_long_delay();
    BOOST_TEST((whole >= 500s && whole <= 1502s));
    waits.insert(whole);
    const auto time = std::make_shared<noting_environment>(seed + 10);
    time->advance(300s);
    process on(place_with(changes, changes.size()), time);
    const auto count = make_counter();
    auto started
      = on.runtime.recover(tried_again(count, 2, 0.5), on.key, on.run_id());
    time->await_delay(whole - 300s);
    time->advance(whole - 300s);
    BOOST_TEST(code_of(started.wait().get()) == "ok");
  }
  BOOST_TEST(waits.size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_recovered_node_whose_time_has_passed_does_not_wait) {
  const auto changes = up_to_failure(2);
  const auto time = std::make_shared<noting_environment>(2);
  time->advance(1001s);
  process on(place_with(changes, changes.size()), time);
  const auto count = make_counter();
  BOOST_TEST(on.recover(tried_again(count)) == "ok");
  BOOST_TEST(count->of("node:n") == 1);
  BOOST_TEST(on.state(on.key).at("n") == 1);
}

BOOST_AUTO_TEST_CASE(a_node_that_failed_for_good_is_not_called_again) {
  const auto changes = up_to_failure(1);
  process on(place_with(changes, changes.size()));
  const auto events = show_events(on.events(on.key), false);
  const auto count = make_counter();
  BOOST_TEST(on.recover(tried_again(count, 1)) == "tool_failed");
  BOOST_TEST(on.tells("'n'"), on.reason);
  BOOST_TEST(on.tells("not yet"), on.reason);
  BOOST_TEST(count->of("node:n") == 0);
  BOOST_TEST(show_events(on.events(on.key), false) == events);
}

// -- cancelled fan-outs ----

namespace {

/// How many bodies run at once. Thread-safe.
class crowd {
public:
  void enter() {
    const std::lock_guard guard(mutex_);
    most_ = std::max(most_, ++now_);
  }

  void leave() {
    const std::lock_guard guard(mutex_);
    --now_;
  }

  int now() const {
    const std::lock_guard guard(mutex_);
    return now_;
  }

  int most() const {
    const std::lock_guard guard(mutex_);
    return most_;
  }

private:
  mutable std::mutex mutex_;
  int now_ = 0;
  int most_ = 0;
};

/// One body in a crowd, while it runs.
struct visitor {
  explicit visitor(std::shared_ptr<crowd> where) : in(std::move(where)) {
    in->enter();
  }

  ~visitor() { in->leave(); }

  visitor(const visitor&) = delete;
  visitor& operator=(const visitor&) = delete;

  const std::shared_ptr<crowd> in;
};

constexpr int wide_size = 1'000;

/// A fan-out of nodes on four lanes. Those from number `held` on wait for long.
agent wide_graph(const counter& count,
                 const std::shared_ptr<crowd>& all,
                 const std::shared_ptr<tally>& waiting,
                 int held) {
  workflow_options options;
  options.name = "w";
  options.lanes_max = 4;
  for (int number = 0; number < wide_size; ++number) {
    const auto name = "n" + std::to_string(number);
    options.nodes.push_back(function(
      name, [=](node_context& context) -> task<std::optional<node_output>> {
        const visitor here(all);
        count->add(name);
        if (number >= held) {
          waiting->add();
          co_await context.sleep(24h);
        }
        co_return node_output(number);
      }));
    options.edges.push_back({workflow_start, name});
  }
  return workflow(std::move(options));
}

std::set<std::string> ended_nodes(process& on) {
  std::set<std::string> names;
  for (const auto& each : on.events(on.key))
    if (const auto said = record_in(*each);
        said && said->is == workflow_record::kind::end)
      names.insert(said->node);
  return names;
}

} // namespace

// The process ends before it has closed the cancelled run.
BOOST_AUTO_TEST_CASE(a_cancelled_fan_out_goes_on_with_the_nodes_that_are_left) {
  process first;
  first.open();
  const auto all = std::make_shared<crowd>();
  const auto waiting = std::make_shared<tally>();
  auto started
    = first.runtime.run(wide_graph(make_counter(), all, waiting, 300),
                        first.key,
                        user_message("go"));
  waiting->await(4);
  started.cancel();
  BOOST_TEST(code_of(started.wait().get()) == "cancelled");
  BOOST_TEST(all->most() == 4);
  BOOST_TEST(all->now() == 0);
  BOOST_TEST(waiting->count() == 4U);
  const auto ended = ended_nodes(first);
  BOOST_TEST(ended.size() == 300U);
  const auto changes = first.log->taken();
  process second(place_with(changes, changes.size()));
  const auto again = make_counter();
  const auto later = std::make_shared<crowd>();
  BOOST_TEST(second.recover(wide_graph(again, later, waiting, wide_size))
               == "ok",
             second.reason);
  BOOST_TEST(later->most() <= 4);
  int wrong = 0;
  for (int number = 0; number < wide_size; ++number) {
    const auto name = "n" + std::to_string(number);
    wrong += again->of(name) == (ended.contains(name) ? 0 : 1) ? 0 : 1;
  }
  BOOST_TEST(wrong == 0);
  BOOST_TEST(ended_nodes(second).size() == static_cast<unsigned>(wide_size));
}

// -- waits ----

namespace {

/// A workflow whose node waits for `duration` from its first call on, and
/// counts its calls. It fails after the wait in the attempts before `good`.
agent waiting_graph(const counter& count,
                    std::chrono::nanoseconds duration,
                    std::uint64_t good = 1) {
  auto node
    = function("n",
               [count, duration, good](
                 node_context& context) -> task<std::optional<node_output>> {
                 count->add("node:n");
                 context.state().add("begun", 1);
                 co_await context.sleep_for(duration);
                 count->add("woken");
                 if (context.attempt() < good)
                   throw error(errc::tool_failed, "not yet");
                 context.state().add("woken", 1);
                 co_return node_output("woken");
               });
  node.retry = {.attempts_max = good, .first_delay = 1s, .jitter = 0};
  return workflow({.name = "w", .nodes = {node}, .edges = {{"START", "n"}}});
}

bool tells_wait(const event& said) {
  return fact_in(said, due_fact) != nullptr;
}

/// The changes of a run up to the event by which a node waits.
std::vector<store_change> up_to_wait(const agent& root) {
  const auto time = std::make_shared<noting_environment>(1);
  process on(make_memory_data(), time);
  on.open();
  auto started = on.runtime.run(root, on.key, user_message("go"));
  for (;;) {
    const auto said = started.next().get().value();
    BOOST_TEST_REQUIRE(said != nullptr);
    if (tells_wait(*said))
      break;
  }
  auto changes = on.log->taken();
  started.cancel();
  BOOST_TEST(code_of(started.wait().get()) == "cancelled");
  while (!tells_wait(*changes.back().event))
    changes.pop_back();
  return changes;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_recovered_wait_has_the_rest_of_its_time) {
  const auto changes = up_to_wait(waiting_graph(make_counter(), 1001s));
  const auto time = std::make_shared<noting_environment>(2);
  time->advance(400s);
  process on(place_with(changes, changes.size()), time);
  const auto count = make_counter();
  // The program would wait longer now.
  auto started
    = on.runtime.recover(waiting_graph(count, 5000s), on.key, on.run_id());
  time->await_delay(601s);
  BOOST_TEST(count->of("woken") == 0);
  time->advance(601s);
  BOOST_TEST(code_of(started.wait().get()) == "ok");
  BOOST_TEST(count->of("node:n") == 1);
  BOOST_TEST(on.state(on.key).at("begun") == 1);
  BOOST_TEST(on.state(on.key).at("woken") == 1);
}

BOOST_AUTO_TEST_CASE(a_recovered_wait_whose_time_has_passed_is_over) {
  const auto changes = up_to_wait(waiting_graph(make_counter(), 1001s));
  const auto time = std::make_shared<noting_environment>(2);
  time->advance(1001s);
  process on(place_with(changes, changes.size()), time);
  const auto count = make_counter();
  BOOST_TEST(on.recover(waiting_graph(count, 1001s)) == "ok");
  BOOST_TEST(on.state(on.key).at("woken") == 1);
  BOOST_TEST(std::ranges::count_if(
               on.events(on.key),
               [](const event_ptr& each) { return tells_wait(*each); })
             == 1);
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_over_is_over_in_the_next_attempt) {
  const auto time = std::make_shared<noting_environment>(1);
  process on(make_memory_data(), time);
  on.open();
  const auto count = make_counter();
  auto started = on.runtime.run(
    waiting_graph(count, 1001s, 2), on.key, user_message("go"));
  time->await_delay(1001s);
  time->advance(1001s);
  time->await_delay(1s);
  time->advance(1s);
  BOOST_TEST(code_of(started.wait().get()) == "ok");
  BOOST_TEST(count->of("woken") == 2);
}

BOOST_AUTO_TEST_CASE(a_time_limit_does_not_count_the_wait) {
  auto node = function(
    "n", [](node_context& context) -> task<std::optional<node_output>> {
      co_await context.sleep_for(1001s);
      // This wait counts.
      if (context.input() == "slow")
        co_await context.sleep(24h);
      co_return node_output("done");
    });
  node.timeout = 10s;
  const auto root
    = workflow({.name = "w", .nodes = {node}, .edges = {{"START", "n"}}});
  for (const auto* message : {"go", "slow"}) {
    const auto time = std::make_shared<noting_environment>(1);
    process on(make_memory_data(), time);
    on.open();
    auto started = on.runtime.run(root, on.key, user_message(message));
    time->await_delay(1001s);
    // The limit passes, and is set again: later by the time of the wait.
    time->advance(10s);
    time->await_delay(1001s, 2);
    time->advance(991s);
    if (message == std::string("go")) {
      BOOST_TEST(code_of(started.wait().get()) == "ok");
      continue;
    }
    time->await_delay(24h);
    time->advance(20s);
    BOOST_TEST(code_of(started.wait().get()) == "deadline_exceeded");
  }
}

BOOST_AUTO_TEST_CASE(a_cancellation_ends_a_wait) {
  const auto time = std::make_shared<noting_environment>(1);
  process on(make_memory_data(), time);
  on.open();
  const auto count = make_counter();
  auto started
    = on.runtime.run(waiting_graph(count, 1001s), on.key, user_message("go"));
  time->await_delay(1001s);
  started.cancel();
  BOOST_TEST(code_of(started.wait().get()) == "cancelled");
  BOOST_TEST(count->of("woken") == 0);
}

// A body that runs again has to wait at the same place.
BOOST_AUTO_TEST_CASE(a_wait_at_another_place_is_a_conflict) {
  const auto changes = up_to_wait(waiting_graph(make_counter(), 1001s));
  const auto speaks_first = workflow(
    {.name = "w",
     .nodes
     = {function("n",
                 [](node_context& context) -> task<std::optional<node_output>> {
                   context.state().add("begun", 1);
                   co_await context.emit(text("first"));
                   co_await context.sleep_for(1001s);
                   co_return std::nullopt;
                 })},
     .edges = {{"START", "n"}}});
  process on(place_with(changes, changes.size()));
  BOOST_TEST(on.recover(speaks_first) == "conflict");
  BOOST_TEST(on.tells("'n'"), on.reason);
}

BOOST_AUTO_TEST_SUITE_END()
