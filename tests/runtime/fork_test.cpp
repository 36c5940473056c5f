// Forks of sessions: their past, their own way, and their parents.

#include "troupe/stores/shared/memory_store.hpp"

#include "counting.hpp"
#include "pause_fixture.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(forks)

namespace {

// A runtime in memory alone or over a store, with the session `here`.
struct fork_fixture {
  explicit fork_fixture(bool over_a_store, runtime_options changed = {})
    : on(with_store(over_a_store, std::move(changed))) {
    create_request wanted(here);
    wanted.state = json{{"n", 0}, {"topic", "owls"}};
    wanted.last_update_time = timestamp(1s);
    on.sessions().create(wanted).value();
  }

  runtime_options with_store(bool over_a_store, runtime_options changed) {
    if (over_a_store)
      changed.store = place.options().store;
    changed.append_wait_max = {};
    return changed;
  }

  // Appends `count` events that count on, with the ids `e1`, `e2`, ….
  void count_to(int last, const session_key& key = here) {
    for (auto number = static_cast<int>(on.fetch(key).revision()) + 1;
         number <= last;
         ++number) {
      auto said = change({{"n", number}}, "e" + std::to_string(number));
      said.timestamp = timestamp(std::chrono::seconds(1 + number));
      on.sessions().append_event(key, std::move(said)).value();
    }
  }

  result<session> fork(fork_options options = {}, std::string id = "fork") {
    return on.sessions().fork(here, options, std::move(id)).get();
  }

  json keys_at(const session_key& key, std::uint64_t revision) {
    return on.sessions().get(key, {.at = revision}).value().state().all();
  }

  staged_place place;
  runtime_fixture on;
};

const session_key fork_key("press", "ann", "fork");

json keys(int n) {
  return {{"n", n}, {"topic", "owls"}};
}

const json& origin_of(const event& said) {
  return said.actions.extra.data().at("agentState").at("forkedFrom");
}

} // namespace

BOOST_DATA_TEST_CASE(a_fork_has_the_past_and_goes_its_own_way,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  auto& on = with.on;
  with.count_to(5);
  const auto made = with.fork({.at = 3});
  BOOST_TEST(code_of(made) == "ok");
  BOOST_TEST(made.value().key().id == "fork");
  BOOST_TEST(made.value().revision() == 4U);
  BOOST_TEST(made.value().state().all() == keys(3));
  BOOST_TEST(on.append(fork_key, {{"n", 30}}) == "ok");
  BOOST_TEST(on.append(here, {{"n", 60}}) == "ok");

  const auto fork = on.fetch(fork_key);
  BOOST_TEST(fork.revision() == 5U);
  BOOST_TEST(fork.state().all() == keys(30));
  const auto parent = on.fetch(here);
  BOOST_TEST(parent.revision() == 6U);
  BOOST_TEST(parent.state().all() == keys(60));
  BOOST_TEST(fork.events().size() == 5U);
  for (std::size_t index = 0; index < 3; ++index)
    BOOST_TEST(to_json(*fork.events()[index])
               == to_json(*parent.events()[index]));
  BOOST_TEST(fork.events()[4]->id != parent.events()[4]->id);
  BOOST_TEST(on.rows().size() == 2U);
  BOOST_TEST(with.place.damage().empty());
}

BOOST_DATA_TEST_CASE(its_first_own_event_names_its_origin,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  with.count_to(2);
  with.fork().value();
  const auto said = with.on.events(fork_key).back();
  BOOST_TEST(said->author == "system");
  BOOST_TEST(origin_of(*said).at("session") == "s");
  BOOST_TEST(origin_of(*said).at("revision") == 2);
  BOOST_TEST(origin_of(*said).contains("incarnation") == over_a_store);
}

BOOST_DATA_TEST_CASE(a_fork_is_read_as_its_parent_was,
                     data::make({false, true}) * data::make({3, 1'300}),
                     over_a_store,
                     beginning) {
  fork_fixture with(over_a_store);
  with.count_to(beginning + 2);
  const auto at = static_cast<std::uint64_t>(beginning);
  with.fork({.at = at}).value();
  with.on.append(fork_key, {{"n", -1}});
  with.on.sessions().remove(here).value();
  for (const std::uint64_t revision :
       {std::uint64_t{0}, std::uint64_t{1}, at / 2, at - 1, at, at + 1}) {
    const auto past
      = with.on.sessions().get(fork_key, {.at = revision}).value();
    BOOST_TEST(past.state().all()
               == keys(static_cast<int>(std::min(revision, at))));
    BOOST_TEST(past.events().size() == revision);
    BOOST_TEST((past.last_update_time()
                == timestamp(1s + std::chrono::seconds(revision)))
               == (revision <= at));
  }
  BOOST_TEST(with.keys_at(fork_key, at + 2) == keys(-1));
  BOOST_TEST(code_of(with.on.sessions().get(fork_key, {.at = at + 3}).get())
             == "not_found");
}

BOOST_DATA_TEST_CASE(a_fork_begins_at_0_or_at_the_newest_event,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  with.count_to(4);
  BOOST_TEST(with.fork({.at = 0}, "f0").value().state().all() == keys(0));
  BOOST_TEST(with.fork({.at = 4}, "f4").value().revision() == 5U);
  BOOST_TEST(with.fork({}, "f").value().revision() == 5U);
  BOOST_TEST(with.on.events({"press", "ann", "f0"}).size() == 1U);
  BOOST_TEST(with.on.events({"press", "ann", "f"}).size() == 5U);
  BOOST_TEST(with.on.fetch({"press", "ann", "f0"}).state().all() == keys(0));
}

BOOST_DATA_TEST_CASE(a_fork_that_cannot_be_made_is_refused,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  auto& sessions = with.on.sessions();
  with.count_to(2);
  const auto beyond = with.fork({.at = 3});
  BOOST_TEST(code_of(beyond) == "not_found");
  BOOST_TEST(beyond.error().message()
             == "session press/ann/s has no revision 3; its newest one is 2");
  BOOST_TEST(code_of(sessions.fork({"press", "ann", "none"}).get())
             == "not_found");
  BOOST_TEST(code_of(sessions.fork({"none", "ann", "s"}).get()) == "not_found");
  BOOST_TEST(code_of(with.fork({}, "s")) == "already_exists");
  BOOST_TEST(code_of(with.fork({}, std::string("a\0b", 3)))
             == "invalid_argument");
  BOOST_TEST(code_of(sessions.fork({"press", "", "s"}).get())
             == "invalid_argument");
  BOOST_TEST(with.on.rows().size() == 1U);
  const auto unnamed = with.fork({}, "");
  BOOST_TEST(!unnamed.value().key().id.empty());
  BOOST_TEST(with.on.rows().size() == 2U);
}

// An id of the past counts as used, also one that is long forgotten.
BOOST_DATA_TEST_CASE(a_retry_of_an_event_of_the_past_finds_it,
                     data::make({false, true}) * data::make({0, 2'000}),
                     over_a_store,
                     later) {
  runtime_options options;
  if (over_a_store) {
    options.remembered_ids = 16;
    options.events_kept = 1;
  }
  fork_fixture with(over_a_store, std::move(options));
  with.count_to(100);
  with.fork({.at = 80}).value();
  for (int number = 0; number < later; ++number)
    with.on.append(fork_key, {{"n", number}});
  const auto before = with.on.fetch(fork_key).revision();
  auto again = change({{"n", 7}}, "e7");
  again.timestamp = timestamp(8s);
  const auto found = with.on.sessions().append_event(fork_key, again).get();
  BOOST_TEST(code_of(found) == "ok");
  BOOST_TEST(with.on.fetch(fork_key).revision() == before);
  BOOST_TEST(with.on.append(fork_key, change({{"n", 8}}, "e7")) == "conflict");
  // The parent had this id after the fork.
  BOOST_TEST(with.on.append(fork_key, change({{"n", 90}}, "e90")) == "ok");
}

BOOST_DATA_TEST_CASE(a_fork_may_be_forked,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  auto& sessions = with.on.sessions();
  with.count_to(40);
  auto key = here;
  // Some begin in the middle of a chunk of the log, and none at its end.
  for (int level = 1; level <= 20; ++level) {
    const auto revision = with.on.fetch(key).revision();
    key = sessions.fork(key, {.at = revision - 1}, "f" + std::to_string(level))
            .value()
            .key();
    for (int count = 0; count < 37; ++count)
      with.on.append(key, {{"n", level}});
  }
  const auto events = with.on.events(key);
  BOOST_TEST(events.size() == 40U + 20 * 37);
  for (int number = 1; number < 40; ++number)
    BOOST_TEST(events[static_cast<std::size_t>(number - 1)]->id
               == "e" + std::to_string(number));
  BOOST_TEST(with.keys_at(key, 20) == keys(20));
  BOOST_TEST(with.keys_at(key, 100) == keys(2));
  for (int level = 0; level < 20; ++level)
    sessions
      .remove({"press", "ann", level == 0 ? "s" : "f" + std::to_string(level)})
      .value();
  BOOST_TEST(with.on.events(key).size() == 40U + 20 * 37);
  BOOST_TEST(with.keys_at(key, 20) == keys(20));
  BOOST_TEST(with.place.damage().empty());
}

BOOST_DATA_TEST_CASE(one_of_two_forks_with_one_id_is_made,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  with.count_to(3);
  std::array<std::string, 4> codes;
  on_threads(codes.size(),
             [&](std::size_t index) { codes[index] = code_of(with.fork()); });
  BOOST_TEST(std::ranges::count(codes, "ok") == 1);
  BOOST_TEST(std::ranges::count(codes, "already_exists") == 3);
  BOOST_TEST(with.on.fetch(fork_key).revision() == 4U);
}

BOOST_DATA_TEST_CASE(a_session_is_forked_while_it_grows,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  // Checks of Boost.Test may not run on several threads at a time.
  std::atomic<int> torn = 0;
  on_threads(4, [&](std::size_t index) {
    if (index == 0)
      return with.count_to(300);
    for (int count = 0; count < 40; ++count) {
      const auto id = std::to_string(index) + "-" + std::to_string(count);
      const auto fork = with.fork({}, id).value();
      const auto read = with.on.fetch(fork.key());
      const auto shared = read.events().size() - 1;
      if (read.state().all() != keys(static_cast<int>(shared)))
        ++torn;
      if (shared > 0
          && read.events()[shared - 1]->id != "e" + std::to_string(shared))
        ++torn;
    }
  });
  BOOST_TEST(torn == 0);
  BOOST_TEST(with.place.damage().empty());
}

BOOST_DATA_TEST_CASE(the_parent_may_be_removed_and_made_again,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  auto& on = with.on;
  with.count_to(40);
  with.fork({.at = 33}).value();
  on.sessions().remove(here).value();
  BOOST_TEST(code_of(on.sessions().get(here).get()) == "not_found");
  on.open("s");
  BOOST_TEST(on.append(here, {{"n", -1}}) == "ok");
  BOOST_TEST(on.events(fork_key).size() == 34U);
  BOOST_TEST(on.fetch(fork_key).state().all() == keys(33));
  BOOST_TEST(with.keys_at(fork_key, 12) == keys(12));
  on.sessions().remove(fork_key).value();
  BOOST_TEST(on.events(here).size() == 1U);
  BOOST_TEST(with.place.damage().empty());
}

// The parent goes between the two steps of a fork.
BOOST_DATA_TEST_CASE(a_fork_of_a_session_that_is_removed_meanwhile_is_refused,
                     data::make({false, true}),
                     made_again) {
  staged_place place;
  runtime_fixture beside(place.beside());
  beside.open("s");
  BOOST_TEST(beside.append(here, {{"n", 1}}) == "ok");
  std::atomic<bool> is_armed = false;
  const auto remove_it = [&] {
    if (!is_armed.exchange(false))
      return;
    beside.sessions().remove(here).value();
    if (made_again) {
      beside.open("s");
      beside.append(here, {{"n", 2}});
    }
  };
  // The first session load after this one is that of the fork's key.
  std::atomic<int> loads = 0;
  place.script->on_session_load = [&] {
    if (loads.fetch_add(1) == 1)
      remove_it();
  };
  runtime_fixture on(place.options());
  BOOST_TEST(on.fetch(here).revision() == 1U);
  loads = 0;
  is_armed = true;
  const auto made = on.sessions().fork(here, {}, "fork").get();
  BOOST_TEST(code_of(made) == "not_found");
  BOOST_TEST(!is_armed);
  BOOST_TEST(code_of(on.sessions().get(fork_key).get()) == "not_found");
  BOOST_TEST(place.damage().empty());
}

BOOST_AUTO_TEST_CASE(a_failed_commit_leaves_no_fork) {
  fork_fixture with(true);
  with.count_to(3);
  with.place.script->next_commits({store_script::step::fail});
  BOOST_TEST(code_of(with.fork()) == "store_failed");
  BOOST_TEST(code_of(with.on.sessions().get(fork_key).get()) == "not_found");
  BOOST_TEST(code_of(with.fork()) == "ok");
  with.place.script->next_commits({store_script::step::fail_anyway});
  BOOST_TEST(code_of(with.fork({}, "other")) == "store_failed");
  BOOST_TEST(with.on.events({"press", "ann", "other"}).size() == 4U);
}

BOOST_AUTO_TEST_CASE(a_store_that_cannot_fork_refuses) {
  class old_store : public forwarding_store {
  public:
    using forwarding_store::forwarding_store;

    bool can_fork() const noexcept override { return store::can_fork(); }
  };

  runtime_options options;
  options.store = std::make_shared<old_store>(make_memory_store());
  runtime_fixture on(std::move(options));
  on.open("s");
  const auto refused = on.sessions().fork(here).get();
  BOOST_TEST(code_of(refused) == "invalid_argument");
  BOOST_TEST(refused.error().message().find("cannot fork sessions")
             != std::string::npos);
  BOOST_TEST(on.rows().size() == 1U);
}

BOOST_DATA_TEST_CASE(effects_on_user_and_app_are_not_repeated,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  auto& on = with.on;
  for (int count = 0; count < 3; ++count)
    on.append(here, counting());
  with.fork({.at = 2}).value();
  BOOST_TEST(on.user_state() == json({{"n", 3}}));
  BOOST_TEST(on.app_state() == json({{"n", 3}}));
  BOOST_TEST(
    on.state(fork_key)
    == json({{"n", 2}, {"topic", "owls"}, {"user:n", 3}, {"app:n", 3}}));
  BOOST_TEST(on.append(fork_key, counting()) == "ok");
  BOOST_TEST(on.user_state() == json({{"n", 4}}));
  BOOST_TEST(on.state(here)["n"] == 3);
}

BOOST_DATA_TEST_CASE(a_fork_is_followed_from_its_parents_first_event,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  with.count_to(50);
  with.fork({.at = 40}).value();
  auto reader = with.on.sessions().follow(fork_key, {.from = 0});
  for (int number = 1; number <= 40; ++number)
    BOOST_TEST(reader.next().value()->id == "e" + std::to_string(number));
  BOOST_TEST(origin_of(*reader.next().value()).at("revision") == 40);
  with.on.append(fork_key, change({{"n", 1}}, "own"));
  BOOST_TEST(reader.next().value()->id == "own");
}

// In memory, sessions above the limit give up their actors.
BOOST_AUTO_TEST_CASE(an_idle_fork_keeps_its_past) {
  runtime_options options;
  options.live_sessions_max = 1;
  fork_fixture with(false, std::move(options));
  with.count_to(40);
  with.fork({.at = 33}).value();
  for (int count = 0; count < 8; ++count)
    with.on.open("o" + std::to_string(count));
  BOOST_TEST(with.on.events(fork_key).size() == 34U);
  auto again = change({{"n", 7}}, "e7");
  again.timestamp = timestamp(8s);
  BOOST_TEST(with.on.append(fork_key, again) == "ok");
  BOOST_TEST(with.on.events(fork_key).size() == 34U);
  BOOST_TEST(with.keys_at(fork_key, 12) == keys(12));
}

BOOST_DATA_TEST_CASE(a_fork_is_there_when_opened_again,
                     data::make({1, 4'096}),
                     kept) {
  staged_place place;
  {
    runtime_fixture on(place.beside());
    on.open("s");
    for (int number = 1; number <= 10; ++number)
      on.append(here, {{"n", number}});
    on.sessions().fork(here, {.at = 8}, "fork").value();
    on.sessions().remove(here).value();
  }
  auto options = place.options();
  options.events_kept = static_cast<std::size_t>(kept);
  runtime_fixture on(std::move(options));
  BOOST_TEST(on.events(fork_key).size() == 9U);
  BOOST_TEST(on.state(fork_key)["n"] == 8);
  BOOST_TEST(on.append(fork_key, {{"n", 9}}) == "ok");
  BOOST_TEST(on.fetch(fork_key).revision() == 10U);
}

// -- open calls ----

BOOST_DATA_TEST_CASE(open_calls_are_closed_unless_they_are_kept,
                     data::make({false, true}),
                     keep) {
  pause_fixture on;
  const auto root = one_call("a", pay());
  on.go(root);
  const auto asked = on.waits.at(0);
  const auto fork
    = on.sessions().fork(on.key, {.keep_open_calls = keep}).value().key();
  BOOST_TEST(on.sessions().open_calls(on.key).value().size() == 1U);
  BOOST_TEST(on.sessions().open_calls(fork).value().size() == (keep ? 1U : 0U));
  const auto answered
    = on.runtime.run(root, fork, on.replies({{asked, yes}})).wait().get();
  BOOST_TEST(code_of(answered) == (keep ? "ok" : "invalid_argument"));
  if (!keep)
    BOOST_TEST(reason_of(answered).find("closed when this session was forked")
               != std::string::npos);
  // The parent does not notice.
  BOOST_TEST(on.go(root, on.replies({{asked, yes}})).ends_with("| ok"));
  BOOST_TEST(on.state(on.key)["paid"] == 1);
}

BOOST_AUTO_TEST_CASE(a_rewind_of_a_fork_opens_no_closed_call) {
  pause_fixture on;
  on.go(one_call("a", pay()));
  const auto fork = on.sessions().fork(on.key).value();
  const auto back
    = on.sessions()
        .rewind(fork.key(), rewind_target::to(fork.revision() - 1))
        .get();
  BOOST_TEST(code_of(back) == "ok");
  BOOST_TEST(on.sessions().open_calls(fork.key()).value().empty());
}

BOOST_AUTO_TEST_CASE(a_model_is_told_that_a_call_was_closed) {
  pause_fixture on;
  const auto seen = std::make_shared<std::vector<model_request>>();
  const auto asked = std::make_shared<made_model>(
    [seen](model_request request, const model_reply& reply) {
      seen->push_back(request);
      content said("model", {});
      if (seen->size() == 1)
        said.parts.emplace_back(function_call{"", "order", json::object()});
      else
        said.parts.emplace_back("done");
      reply(model_response(std::move(said)));
    });
  const auto root = uses("a", asked, {order()});
  on.go(root);
  const auto fork = on.sessions().fork(on.key).value().key();
  on.runtime.run(root, fork, user_text("and now?")).wait().value();
  const auto told
    = seen->at(1).contents[2]->parts[0].response()->response.data();
  BOOST_TEST(
    told
    == json(
      {{"error", "the session was forked before the tool had answered"}}));
}

BOOST_DATA_TEST_CASE(agents_go_on_from_the_past,
                     data::make({false, true}),
                     over_a_store) {
  fork_fixture with(over_a_store);
  auto& on = with.on;
  const auto model = scripted({{"a", {{.text = "one"}, {.text = "two"}}}});
  const auto root = llm({.name = "a", .model = model});
  on.runtime.run(root, here, user_text("first")).wait().value();
  const auto fork = with.fork().value().key();
  on.runtime.run(root, fork, user_text("second")).wait().value();
  BOOST_TEST(
    on.texts(fork)
      == (std::vector<std::string>{"first", "one", "", "second", "two"}),
    boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
