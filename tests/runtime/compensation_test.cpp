// Rewinds that undo the typed operations of a session on `user:` and `app:`
// keys.

#include "../stores/temporary_folder.hpp"
#include "rewind_steps.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(compensations, *boost::unit_test::timeout(120))

namespace {

const std::vector<std::string> all_kinds{"memory", "store", "sqlite"};

const session_key other_key("press", "ann", "other");

using keys = std::vector<std::string>;

/// Two sessions of one user, in memory or over a store.
struct fixture {
  explicit fixture(const std::string& kind) : on(options_for(kind)) {
    on.open("s");
    on.open("other");
  }

  runtime_options options_for(const std::string& kind) {
    auto options = options_of(place, kind == "store");
    if (kind == "sqlite")
      options.store = "sqlite:" + (folder.path() / "s.db").string();
    return options;
  }

  /// Appends an event with one operation.
  void does(const session_key& key,
            const std::string& name,
            const std::string& op,
            json operand) {
    BOOST_TEST(on.append(key, operate({operation_on(name, op, operand)}))
               == "ok");
  }

  result<rewound_session> back_to(std::uint64_t revision,
                                  const session_key& key = here) {
    return on.sessions()
      .rewind(key, rewind_target::to(revision), {.compensate = true})
      .get();
  }

  temporary_folder folder;
  staged_place place;
  runtime_fixture on;
};

} // namespace

BOOST_DATA_TEST_CASE(a_counter_is_exact_beside_another_session,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind);
  auto& on = with.on;
  for (int count = 0; count < 20; ++count)
    on.append(here, counting());
  answers<event_ptr> appended;
  answers<rewound_session> rewound;
  for (int count = 0; count < 50; ++count) {
    on.sessions().append_event(other_key, counting()).then(appended.next());
    if (count == 25)
      on.sessions()
        .rewind(here, rewind_target::to(5), {.compensate = true})
        .then(rewound.next());
  }
  const auto done = rewound.await().front().value();
  appended.await();
  BOOST_TEST((done.compensated_keys == keys{"app:n", "user:n"}));
  BOOST_TEST(done.kept_keys.empty());
  BOOST_TEST(on.state(here) == json({{"n", 5}, {"user:n", 55}, {"app:n", 55}}));
  // Back to the start, and forward to the newest count.
  with.back_to(0).value();
  BOOST_TEST(on.state(here) == json({{"user:n", 50}, {"app:n", 50}}));
  with.back_to(20).value();
  BOOST_TEST(on.state(here)
             == json({{"n", 20}, {"user:n", 70}, {"app:n", 70}}));
  BOOST_TEST(on.events(here).live().size() == 20U);
  BOOST_TEST(with.place.damage().empty());
}

BOOST_DATA_TEST_CASE(each_operation_is_undone, data::make(all_kinds), kind) {
  fixture with(kind);
  auto& on = with.on;
  with.does(other_key, "app:list", "append", "a");
  with.does(other_key, "app:set", "union", {"a"});
  with.does(other_key, "app:least", "min", 5);
  with.does(other_key, "app:fields", "merge", {{"a", 1}});
  const auto before = on.state(here);
  on.append(here,
            operate({operation_on("app:list", "append", "b"),
                     operation_on("app:set", "union", {"a", "b"}),
                     operation_on("app:least", "min", 3),
                     operation_on("user:most", "max", 3),
                     operation_on("app:fields", "merge", {{"a", 2}, {"b", 2}}),
                     {{"op", "cas"},
                      {"key", "user:lock"},
                      {"value", "mine"},
                      {"expected", nullptr}}}));
  on.append(here, says_so("two", {{"user:theme", "dark"}}));
  with.does(other_key, "app:list", "append", "c");
  const auto after = on.state(here);
  const auto done = with.back_to(0).value();
  BOOST_TEST((done.compensated_keys
              == keys{"app:fields",
                      "app:least",
                      "app:list",
                      "app:set",
                      "user:lock",
                      "user:most"}));
  BOOST_TEST((done.kept_keys == keys{"user:theme"}));
  auto expected = before;
  expected["app:list"] = json::array({"a", "c"});
  expected["user:theme"] = "dark";
  BOOST_TEST(on.state(here) == expected);
  // Forward again, with the element at the end now.
  with.back_to(2).value();
  expected = after;
  expected["app:list"] = json::array({"a", "c", "b"});
  BOOST_TEST(on.state(here) == expected);
}

BOOST_DATA_TEST_CASE(a_refused_rewind_leaves_nothing,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind);
  auto& on = with.on;
  on.append(here, counting());
  with.does(here, "app:list", "append", "b");
  on.append(other_key, json({{"app:list", json::array()}}));
  const auto before = on.state(here);
  const auto refused = with.back_to(0);
  BOOST_TEST(code_of(refused) == "conflict");
  BOOST_TEST(refused.error().message().find("'app:list'") != std::string::npos);
  BOOST_TEST(on.state(here) == before);
  BOOST_TEST(on.fetch(here).revision() == 2U);
  // Without compensation it goes back, and with it also to a later place.
  BOOST_TEST(on.sessions().rewind(here, rewind_target::to(1)).value().to == 1U);
}

// The comparison fails when the rewind reaches the app, and is made anew.
BOOST_AUTO_TEST_CASE(an_overtaken_comparison_is_planned_again) {
  fixture with("store");
  runtime_fixture beside(with.place.beside());
  with.does(here, "app:list", "append", "mine");
  std::atomic<int> times = 1;
  with.place.script->each_commit([&] {
    if (times.fetch_sub(1) > 0)
      beside.append(other_key,
                    operate({operation_on("app:list", "append", "theirs")}));
    return store_script::step::work;
  });
  const auto done = with.back_to(0).value();
  BOOST_TEST((done.compensated_keys == keys{"app:list"}));
  BOOST_TEST(with.on.state(here).at("app:list") == json({"theirs"}));
  // A writer that is always faster ends it.
  with.back_to(1).value();
  times = 1'000;
  const auto refused = with.back_to(0);
  times = 0;
  BOOST_TEST(code_of(refused) == "conflict");
  BOOST_TEST(refused.error().message().find(
               "on 'app:list' were not undone in 16 attempts")
             != std::string::npos);
}

BOOST_DATA_TEST_CASE(a_compensating_rewind_takes_effect_once,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind);
  auto& on = with.on;
  on.append(here, counting());
  with.does(here, "app:list", "append", "b");
  const auto again = [&] {
    return on.sessions()
      .rewind(here,
              rewind_target::to(0),
              {.expected_revision = 2, .compensate = true})
      .get();
  };
  const auto first = again().value();
  on.append(other_key, json({{"app:list", "no list"}}));
  const auto second = again().value();
  BOOST_TEST(second.event->id == first.event->id);
  BOOST_TEST((second.compensated_keys == first.compensated_keys));
  BOOST_TEST((second.compensated_keys == keys{"app:list", "app:n", "user:n"}));
  BOOST_TEST(on.state(here).at("app:n") == 0);
  BOOST_TEST(on.fetch(here).revision() == 3U);
  // A rewind without compensation is another one.
  BOOST_TEST(
    code_of(on.sessions()
              .rewind(here, rewind_target::to(0), {.expected_revision = 2})
              .get())
    == "conflict");
}

BOOST_DATA_TEST_CASE(a_fork_undoes_its_own_operations,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind);
  auto& on = with.on;
  on.append(here, counting());
  on.append(here, counting());
  const session_key fork("press", "ann", "fork");
  on.sessions().fork(here, {}, "fork").value(); // Its origin is event 3.
  on.append(fork, counting());
  const auto own = with.back_to(3, fork).value();
  BOOST_TEST((own.compensated_keys == keys{"app:n", "user:n"}));
  BOOST_TEST(on.app_state() == json({{"n", 2}}));
  on.append(fork, counting());
  const auto done = with.back_to(1, fork).value();
  BOOST_TEST((done.kept_keys == keys{"app:n", "user:n"}));
  BOOST_TEST(done.compensated_keys.empty());
  BOOST_TEST(on.state(fork) == json({{"n", 1}, {"user:n", 2}, {"app:n", 2}}));
  with.back_to(0).value();
  BOOST_TEST(on.app_state() == json({{"n", 0}}));
}

// A sender could otherwise let a rewind take away more than was added.
BOOST_DATA_TEST_CASE(records_from_outside_are_ignored,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind);
  auto& on = with.on;
  auto forged = change({{"app:n", 7}}, "e1");
  forged.timestamp = timestamp(std::chrono::seconds(1));
  forged.invocation_id = "i";
  forged.actions.applied
    = {{operation_kind::add, scope::app, "n", value(json(100)), {}}};
  on.append(here, forged);
  // A retry of the event, and one of the stored event, find it.
  BOOST_TEST(on.append(here, forged) == "ok");
  const auto shared = std::make_shared<const event>(forged);
  BOOST_TEST(code_of(on.sessions().append_event(here, shared).get()) == "ok");
  auto second = forged;
  second.id = "e2";
  // In `extra`, these fields would be read as records from the store.
  second.actions.applied.clear();
  second.actions.extra
    = json{{"appliedOps", {{{"op", "add"}, {"key", "app:n"}, {"value", 100}}}},
           {"applied_ops", "x"},
           {"route", "a"}};
  on.sessions()
    .append_event(here, std::make_shared<const event>(second))
    .value();
  create_request wanted(session_key("press", "ann", "imported"));
  wanted.events.push_back(forged);
  on.sessions().create(wanted).value();
  for (const auto& id : {"s", "imported"}) {
    const session_key key("press", "ann", id);
    for (const auto events = on.events(key); const auto& said : events) {
      BOOST_TEST(said->actions.applied.empty());
      BOOST_TEST(!to_json(*said)["actions"].contains("appliedOps"));
      BOOST_TEST(!to_json(*said)["actions"].contains("applied_ops"));
    }
    const auto done = with.back_to(0, key).value();
    BOOST_TEST((done.kept_keys == keys{"app:n"}));
    BOOST_TEST(on.app_state() == json({{"n", 7}}));
  }
}

// A client may send an event again as it was stored.
BOOST_DATA_TEST_CASE(a_retry_with_operations_is_found,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind);
  auto& on = with.on;
  BOOST_TEST(on.append(here, counting("e1")) == "ok");
  BOOST_TEST(on.append(here, counting("e1")) == "ok");
  const auto stored = on.events(here)[0];
  BOOST_TEST(stored->actions.applied.size() == 2U);
  BOOST_TEST(code_of(on.sessions().append_event(here, *stored).get()) == "ok");
  BOOST_TEST(on.fetch(here).revision() == 1U);
}

BOOST_DATA_TEST_CASE(records_outlive_the_program,
                     data::make({std::string("store"), std::string("sqlite")}),
                     kind) {
  fixture with(kind);
  for (int count = 0; count < 9; ++count)
    with.on.append(here, counting());
  runtime_fixture again(with.options_for(kind));
  const auto done = again.sessions()
                      .rewind(here, rewind_target::to(4), {.compensate = true})
                      .value();
  BOOST_TEST((done.compensated_keys == keys{"app:n", "user:n"}));
  BOOST_TEST(again.state(here) == counted(4));
}

BOOST_AUTO_TEST_SUITE_END()
