// Sessions that are created together with their past, completely or not at all.

#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

using step = store_script::step;

BOOST_AUTO_TEST_SUITE(session_pasts)

namespace {

create_request with_past(std::vector<event> events,
                         json state = json::object(),
                         const std::string& id = "s") {
  create_request wanted{"press", "ann", id};
  wanted.state = std::move(state);
  wanted.events = std::move(events);
  return wanted;
}

std::vector<event> counts(int number) {
  std::vector<event> events;
  for (int index = 0; index < number; ++index)
    events.push_back(counting("e" + std::to_string(index)));
  return events;
}

event at(event said, std::chrono::seconds time) {
  said.timestamp = timestamp(time);
  return said;
}

} // namespace

BOOST_DATA_TEST_CASE(a_session_is_created_with_its_past,
                     data::make({false, true}),
                     over_a_store) {
  const staged_place place;
  runtime_fixture on(over_a_store ? place.options() : runtime_options());
  on.open("t");
  BOOST_TEST(on.append({"press", "ann", "t"}, counting()) == "ok");
  const auto created
    = on.sessions()
        .create(with_past({at(counting("a"), 5s),
                           at(change({{"k", 1}, {"temp:x", 1}}), 9s),
                           at(counting("b"), 7s)},
                          {{"n", 10}, {"app:x", 1}}))
        .value();
  const json state
    = {{"n", 12}, {"k", 1}, {"user:n", 3}, {"app:n", 3}, {"app:x", 1}};
  BOOST_TEST(created.state().all() == state);
  BOOST_TEST(created.revision() == 3U);
  const auto found = on.fetch(here);
  BOOST_TEST(found.state().all() == state);
  BOOST_TEST(found.revision() == 3U);
  BOOST_TEST((found.last_update_time() == timestamp(9s)));
  BOOST_REQUIRE(found.events().size() == 3U);
  BOOST_TEST(found.events()[0]->actions.state_delta.to_json()
             == json({{"n", 11}, {"user:n", 2}, {"app:n", 2}}));
  BOOST_TEST(found.events()[1]->actions.state_delta.to_json()
             == json({{"k", 1}}));
  BOOST_TEST(on.append(here, counting()) == "ok");
  BOOST_TEST(on.app_state()["n"] == 4);
  BOOST_TEST(code_of(on.sessions().create(with_past({})).get())
             == "already_exists");
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(its_update_time_can_be_told) {
  runtime_fixture on;
  auto wanted = with_past({at(change({{"a", 1}}), 3s)});
  wanted.last_update_time = timestamp(8s);
  BOOST_TEST(
    (on.sessions().create(wanted).value().last_update_time() == timestamp(8s)));
}

BOOST_DATA_TEST_CASE(one_refused_event_refuses_the_session,
                     data::make({"", "user:", "app:"})
                       * data::make({false, true}),
                     prefix,
                     over_a_store) {
  const staged_place place;
  runtime_fixture on(over_a_store ? place.options() : runtime_options());
  on.open("t", {{"user:word", "x"}, {"app:word", "x"}});
  BOOST_TEST(on.append({"press", "ann", "t"}, counting()) == "ok");
  auto events = counts(3);
  events.push_back(
    operate({operation_on(std::string(prefix) + "word", "add", 1)}));
  events.push_back(counting());
  const json initial = {{"word", "x"}, {"user:made", 1}, {"app:made", 1}};
  BOOST_TEST(code_of(on.sessions().create(with_past(events, initial)).get())
             == "type_error");
  BOOST_TEST(code_of(on.sessions().get(here).get()) == "not_found");
  BOOST_TEST(on.user_state() == json({{"word", "x"}, {"n", 1}}));
  BOOST_TEST(on.app_state() == json({{"word", "x"}, {"n", 1}}));
  // The owners work normally after the refusal.
  BOOST_TEST(code_of(on.sessions().create(with_past(counts(3))).get()) == "ok");
  BOOST_TEST(on.state(here)
             == json({{"n", 3},
                      {"user:n", 4},
                      {"user:word", "x"},
                      {"app:n", 4},
                      {"app:word", "x"}}));
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(it_is_one_commit_however_long) {
  const staged_place place;
  constexpr int count = 20'000;
  {
    runtime_fixture on(place.options());
    BOOST_TEST(code_of(on.sessions().create(with_past(counts(count))).get())
               == "ok");
    BOOST_TEST(place.script->arrived.count() == 1U);
  }
  runtime_fixture again(place.options());
  BOOST_TEST(again.fetch(here).events().size() == 1U * count);
  BOOST_TEST(again.state(here) == counted(count));
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(a_failed_creation_leaves_all_or_nothing_of_the_past) {
  const staged_place place;
  runtime_fixture on(place.options());
  place.script->next_commits({step::fail});
  BOOST_TEST(code_of(on.sessions().create(with_past(counts(9))).get())
             == "store_failed");
  BOOST_TEST(code_of(on.sessions().get(here).get()) == "not_found");
  BOOST_TEST(on.app_state() == json::object());
  place.script->next_commits({step::fail_anyway});
  BOOST_TEST(code_of(on.sessions().create(with_past(counts(9))).get())
             == "store_failed");
  BOOST_TEST(on.state(here) == counted(9));
  BOOST_TEST(on.fetch(here).revision() == 9U);
}

// The app is stale at the first decision, so the creation is decided again.
BOOST_AUTO_TEST_CASE(it_is_decided_again_on_what_others_have_written) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open("t");
  BOOST_TEST(on.append({"press", "ann", "t"}, counting()) == "ok");
  runtime_fixture beside(place.beside());
  for (int number = 0; number < 10; ++number) {
    BOOST_TEST(beside.append({"press", "ann", "t"}, counting()) == "ok");
    BOOST_TEST(
      code_of(on.sessions()
                .create(with_past(
                  counts(5), json::object(), "s" + std::to_string(number)))
                .get())
      == "ok");
  }
  BOOST_TEST(on.user_state()["n"] == 61);
  BOOST_TEST(on.app_state()["n"] == 61);
  BOOST_TEST(place.damage().empty());
}

BOOST_DATA_TEST_CASE(events_of_the_past_take_effect_once,
                     data::make({false, true}) * data::make({8, 4'096}),
                     in_the_next_runtime,
                     remembered) {
  const staged_place place;
  auto options = place.options();
  options.remembered_ids = static_cast<std::size_t>(remembered);
  options.events_kept = 4;
  auto on = std::make_unique<runtime_fixture>(options);
  BOOST_TEST(code_of(on->sessions().create(with_past(counts(60))).get())
             == "ok");
  if (in_the_next_runtime)
    on = std::make_unique<runtime_fixture>(place.options());
  for (int number = 0; number < 60; ++number)
    BOOST_TEST(on->append(here, counting("e" + std::to_string(number)))
               == "ok");
  BOOST_TEST(on->append(here, change({{"other", 1}}, "e3")) == "conflict");
  BOOST_TEST(on->fetch(here).revision() == 60U);
  BOOST_TEST(on->state(here) == counted(60));
}

// A look-up that waits for a creation is answered when that is refused.
BOOST_DATA_TEST_CASE(a_get_behind_a_refused_creation_is_answered,
                     data::make({"n", "app:n"}),
                     key) {
  runtime_options options;
  options.threads = 1;
  runtime_fixture on(std::move(options));
  on.open("t");
  answers<session> told;
  {
    const standstill waiting(on, {"press", "ann", "t"});
    on.sessions()
      .create(with_past(
        {change({{key, "a text"}}), operate({operation_on(key, "add", 1)})}))
      .then(told.next());
    on.sessions().get(here).then(told.next());
  }
  const auto all = told.await();
  BOOST_TEST(code_of(all[0]) == "type_error");
  BOOST_TEST(code_of(all[1]) == "not_found");
}

BOOST_AUTO_TEST_CASE(what_breaks_a_rule_is_refused_by_its_number) {
  runtime_fixture on;
  auto partial = change({{"a", 1}});
  partial.partial = true;
  auto large = change({{"a", std::string(300'000, 'x')}});
  for (auto& [bad, code] : std::vector<std::pair<event, std::string>>{
         {partial, "invalid_argument"},
         {large, "too_large"},
         {counting("twice"), "invalid_argument"}}) {
    const auto refused
      = on.sessions()
          .create(with_past({counting("twice"), std::move(bad)}))
          .get();
    BOOST_TEST(code_of(refused) == code);
    BOOST_TEST(refused.error().message().starts_with("event 2: "));
  }
  BOOST_TEST(on.rows().empty());
}

BOOST_AUTO_TEST_SUITE_END()
