// Trims: a session without its oldest events, in memory and over stores.

#include "troupe/core/environment.hpp"
#include "troupe/stores/artifact_view.hpp"

#include "../forwarding_store.hpp"
#include "counting.hpp"
#include "locations.hpp"
#include "long_session.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(session_trims, *boost::unit_test::timeout(120))

namespace {

const session_key fork_key("press", "ann", "fork");

/// A session of the events "1" to "COUNT", of which few are in memory.
struct fixture {
  explicit fixture(const std::string& kind, std::size_t count = 10)
    : at(kind),
      on(options()) {
    on.open("s", {{"n", 0}});
    for (std::size_t number = 1; number <= count; ++number)
      BOOST_TEST_REQUIRE(add(number) == "ok");
  }

  runtime_options options() const {
    auto chosen = at.options();
    chosen.events_kept = 4;
    return chosen;
  }

  std::string add(std::size_t number) {
    auto said = numbered(number);
    said.actions.state_delta
      = delta::from_json({{"n", number}, {"user:n", number}}).value();
    return on.append(here, std::move(said));
  }

  trimmed_session trim(std::uint64_t to, const session_key& key = here) {
    return on.sessions().trim(key, to).value();
  }

  std::string code_at(std::uint64_t revision, const session_key& key = here) {
    return code_of(on.sessions().get(key, {.at = revision}).get());
  }

  location_of at;
  runtime_fixture on;
};

std::vector<std::string> words(std::size_t first, std::size_t last) {
  std::vector<std::string> all;
  for (auto number = first; number <= last; ++number)
    all.push_back(std::to_string(number));
  return all;
}

// Takes the next events of a follower until its error, whose code is the last
// word, or until it has those up to `last`.
std::vector<std::string> follow_to(follower& of, std::uint64_t last) {
  std::vector<std::string> all;
  while (!of.revision() || *of.revision() < last) {
    answers<event_ptr> taken;
    of.next().then(taken.next());
    const auto next = taken.await()[0];
    all.push_back(next ? (*next)->text() : code_of(next));
    if (!next)
      break;
  }
  return all;
}

} // namespace

// -- reads ----

BOOST_DATA_TEST_CASE(old_events_are_gone_and_all_else_stays,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind);
  const auto before = with.on.fetch(here);
  const auto done = with.trim(7);
  BOOST_TEST(done.first_revision == 7U);
  BOOST_TEST(done.removed == 7U);
  const auto now = with.on.fetch(here);
  BOOST_TEST(now.first_revision() == 7U);
  BOOST_TEST(now.revision() == 10U);
  BOOST_TEST((now.state().all() == before.state().all()));
  BOOST_TEST((now.last_update_time() == before.last_update_time()));
  BOOST_TEST(with.on.texts(here) == words(8, 10));
  BOOST_TEST(now.events().number(0) == 8U);
  BOOST_TEST(to_json(now)["firstRevision"] == 7);
  BOOST_TEST(before.events().size()
             == 10U); // Readers keep the events they have.
  BOOST_TEST(!to_json(before).contains("firstRevision"));
  BOOST_TEST(with.on.user_state()["n"] == 10);
  // Later ones have the next numbers.
  BOOST_TEST(with.add(11) == "ok");
  BOOST_TEST(with.on.fetch(here).revision() == 11U);
  BOOST_TEST(with.on.texts(here) == words(8, 11));
  BOOST_TEST(with.on.sessions()
               .get(here, {.num_recent_events = 2})
               .value()
               .events()
               .size()
             == 2U);
}

BOOST_DATA_TEST_CASE(earlier_revisions_are_gone, data::make(all_kinds), kind) {
  fixture with(kind);
  with.trim(7);
  BOOST_TEST(with.code_at(0) == "gone");
  BOOST_TEST(with.code_at(6) == "gone");
  BOOST_TEST(with.code_at(11) == "not_found");
  const auto why = with.on.sessions().get(here, {.at = 3}).get();
  BOOST_TEST_REQUIRE(!why);
  BOOST_TEST(why.error().message()
             == "revision 3 of session press/ann/s was deleted by a trim; its "
                "oldest revision is 7");
  for (std::uint64_t revision = 7; revision <= 10; ++revision) {
    const auto then = with.on.sessions().get(here, {.at = revision}).value();
    BOOST_TEST(then.state().all()["n"] == revision);
    BOOST_TEST(then.revision() == revision);
    BOOST_TEST(then.first_revision() == 7U);
    BOOST_TEST(then.events().size() == revision - 7);
  }
}

BOOST_DATA_TEST_CASE(a_trim_takes_any_place, data::make(all_kinds), kind) {
  fixture with(kind, 3);
  BOOST_TEST(with.trim(0).removed == 0U);
  BOOST_TEST(with.on.fetch(here).first_revision() == 0U);
  BOOST_TEST(with.trim(3).removed == 3U);
  BOOST_TEST(with.on.texts(here).empty());
  BOOST_TEST(with.on.state(here)["n"] == 3);
  const auto again = with.trim(2);
  BOOST_TEST(again.first_revision == 3U);
  BOOST_TEST(again.removed == 0U);
  BOOST_TEST(with.code_at(3) == "ok");
  BOOST_TEST(with.add(4) == "ok");
  BOOST_TEST(with.on.texts(here) == words(4, 4));
  BOOST_TEST(code_of(with.on.sessions().trim(here, 5).get()) == "not_found");
  BOOST_TEST(code_of(with.on.sessions().trim(fork_key, 0).get())
             == "not_found");
  BOOST_TEST(code_of(with.on.sessions().trim({"", "ann", "s"}, 0).get())
             == "invalid_argument");
}

BOOST_DATA_TEST_CASE(it_stays_trimmed_when_opened_again,
                     data::make(shared_kinds),
                     kind) {
  const location_of at(kind);
  {
    runtime_fixture on(at.options());
    on.open();
    long_session::add(on, 1, 10);
    BOOST_TEST(on.sessions().trim(here, 6).value().removed == 6U);
  }
  runtime_fixture on(at.options());
  BOOST_TEST(on.texts(here) == words(7, 10));
  BOOST_TEST(on.fetch(here).first_revision() == 6U);
}

// A session without an actor keeps its state at its user.
BOOST_AUTO_TEST_CASE(an_idle_session_stays_trimmed) {
  runtime_options options;
  options.live_sessions_max = 1;
  runtime_fixture on(std::move(options));
  on.open();
  long_session::add(on, 1, 5);
  on.sessions().trim(here, 4).value();
  for (int number = 0; number < 50; ++number)
    on.open("other" + std::to_string(number));
  BOOST_TEST(on.texts(here) == words(5, 5));
  BOOST_TEST(on.fetch(here).first_revision() == 4U);
  BOOST_TEST(code_of(on.sessions().get(here, {.at = 3}).get()) == "gone");
}

BOOST_AUTO_TEST_CASE(a_store_that_cannot_trim_says_so) {
  class keeps_all final : public forwarding_store {
  public:
    using forwarding_store::forwarding_store;

    bool can_trim() const noexcept override { return store::can_trim(); }
  };

  runtime_options options;
  options.store = std::make_shared<keeps_all>(make_memory_store());
  runtime_fixture on(std::move(options));
  on.open();
  long_session::add(on, 1, 2);
  const auto refused = on.sessions().trim(here, 1).get();
  BOOST_TEST(code_of(refused) == "invalid_argument");
  BOOST_TEST(on.texts(here) == words(1, 2));
}

// -- appends ----

BOOST_DATA_TEST_CASE(an_id_counts_as_long_as_its_event,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind);
  with.trim(7);
  BOOST_TEST(with.add(8) == "ok"); // A retry.
  BOOST_TEST(with.on.fetch(here).revision() == 10U);
  BOOST_TEST(with.add(3) == "ok"); // A new event.
  BOOST_TEST(with.on.fetch(here).revision() == 11U);
  BOOST_TEST(with.on.state(here)["n"] == 3);
  BOOST_TEST(with.add(3) == "ok");
  BOOST_TEST(with.on.fetch(here).revision() == 11U);
}

// -- followers ----

BOOST_DATA_TEST_CASE(a_follower_is_told_of_events_that_are_gone,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind);
  auto slow = with.on.sessions().follow(here, {.from = 2});
  auto quick = with.on.sessions().follow(here, {.from = 2});
  BOOST_TEST(follow_to(quick, 10) == words(3, 10));
  BOOST_TEST(follow_to(slow, 3) == words(3, 3));
  with.trim(7);
  auto late = with.on.sessions().follow(here, {.from = 6});
  auto whole = with.on.sessions().follow(here, {.from = 7});
  BOOST_TEST(with.add(11) == "ok");
  BOOST_TEST(follow_to(quick, 11) == words(11, 11));
  BOOST_TEST(follow_to(whole, 11) == words(8, 11));
  BOOST_TEST(follow_to(late, 11) == std::vector<std::string>{"gone"});
  // It has fetched some events already.
  const auto rest = follow_to(slow, 11);
  BOOST_TEST(!rest.empty());
  if (rest.back() != "gone")
    BOOST_TEST(rest == words(4, 11));
}

// -- going back and forks ----

BOOST_DATA_TEST_CASE(a_trimmed_session_goes_back, data::make(all_kinds), kind) {
  fixture with(kind);
  with.trim(6);
  auto& sessions = with.on.sessions();
  BOOST_TEST(code_of(sessions.rewind(here, rewind_target::to(5)).get())
             == "gone");
  BOOST_TEST(
    code_of(sessions.rewind(here, rewind_target::before_run("e")).get())
    == "not_found");
  sessions.rewind(here, rewind_target::to(6)).value();
  BOOST_TEST(with.on.state(here)["n"] == 6);
  BOOST_TEST(with.on.events(here).live().empty());
  sessions.rewind(here, rewind_target::to(9)).value();
  BOOST_TEST(with.on.state(here)["n"] == 9);
  BOOST_TEST(with.on.events(here).live().size() == 3U);
  // A rewind that is kept takes back events that are gone.
  with.trim(8);
  BOOST_TEST(with.on.events(here).live().size() == 1U);
}

BOOST_DATA_TEST_CASE(a_rewind_before_the_newest_event_is_refused,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind, 4);
  with.trim(4);
  BOOST_TEST(
    code_of(with.on.sessions().rewind(here, rewind_target::to(3)).get())
    == "gone");
  BOOST_TEST(
    code_of(with.on.sessions().rewind(here, rewind_target::to(4)).get())
    == "invalid_argument");
}

BOOST_DATA_TEST_CASE(forks_keep_what_they_share, data::make(all_kinds), kind) {
  fixture with(kind);
  auto& sessions = with.on.sessions();
  sessions.fork(here, {.at = 8}, "fork").value();
  with.trim(7);
  BOOST_TEST(with.on.fetch(fork_key).first_revision() == 0U);
  BOOST_TEST(with.on.events(fork_key).size() == 9U);
  BOOST_TEST(with.code_at(3, fork_key) == "ok");
  BOOST_TEST(code_of(sessions.fork(here, {.at = 6}).get()) == "gone");
  const auto second = sessions.fork(here, {.at = 9}, "second").value();
  BOOST_TEST(second.first_revision() == 7U);
  const auto third = sessions.fork(here, {.at = 7}, "third").value();
  BOOST_TEST(with.on.events(third.key()).size() == 1U);
  with.trim(10);
  BOOST_TEST(with.on.texts(second.key())
             == (std::vector<std::string>{"8", "9", ""}));
  BOOST_TEST(
    with.on.sessions().get(second.key(), {.at = 8}).value().state().all()["n"]
    == 8);
  BOOST_TEST(with.code_at(6, second.key()) == "gone");
  BOOST_TEST(with.on.append(second.key(), numbered(20)) == "ok");
  BOOST_TEST(with.on.texts(second.key())
             == (std::vector<std::string>{"8", "9", "", "20"}));
  with.trim(9, second.key());
  BOOST_TEST(with.on.texts(second.key())
             == (std::vector<std::string>{"", "20"}));
}

BOOST_DATA_TEST_CASE(artifacts_go_back_beyond_their_events,
                     data::make(all_kinds),
                     kind) {
  const location_of at(kind);
  auto options = at.options();
  options.artifacts = "memory:";
  runtime_fixture on(std::move(options));
  const auto kept = on.runtime.artifacts();
  on.open();
  const auto save = [&](const std::string& text) {
    const auto version = kept->save(here, "report", part(text)).value();
    auto said = change(json::object());
    said.actions.artifact_delta["report"] = version;
    BOOST_TEST(on.append(here, std::move(said)) == "ok");
  };
  save("one");
  save("two");
  long_session::add(on, 3, 4);
  save("three");
  on.sessions().trim(here, 3).value();
  on.sessions().rewind(here, rewind_target::to(4)).value();
  const artifact_view shown(*kept, on.fetch(here));
  BOOST_TEST((shown.current("report").value() == 1));
}

// -- runs ----

BOOST_DATA_TEST_CASE(agents_read_what_is_left, data::make(all_kinds), kind) {
  fixture with(kind);
  with.trim(6);
  sight whole;
  sight few;
  BOOST_TEST(run_on(with.on, looks("whole", history_extent::all(), whole))
             != "");
  BOOST_TEST(whole.texts
             == (std::vector<std::string>{"7", "8", "9", "10", "go"}));
  BOOST_TEST(whole.first == 7U);
  run_on(with.on, looks("few", history_extent::newest(2), few));
  BOOST_TEST(few.count == 3U);
  witness seen;
  run_on(with.on, llm({.name = "writer", .model = seen.model()}));
  // The first turn that is whole begins the prompt.
  BOOST_TEST_REQUIRE(!seen.heard->empty());
  BOOST_TEST(seen.heard->front() == "7");
}

BOOST_DATA_TEST_CASE(an_agent_that_walks_back_reaches_the_end,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind, 40);
  with.trim(10);
  std::vector<std::string> read;
  const auto walks
    = custom({.name = "walker",
              .run = [&read](invocation_context& context) -> agent_run {
                read.clear();
                for (auto next = context.first_revision(); next > 1;) {
                  const auto page = co_await context.events_before(next, 7);
                  for (auto index = page.size(); index > 0; --index)
                    read.push_back(page[index - 1]->text());
                  next = page.first_number();
                }
                co_await context.emit(text("done"));
              },
              .reads = history_extent::newest(1)});
  run_on(with.on, walks);
  auto expected = words(11, 39); // The newest one is among its own events.
  std::ranges::reverse(expected);
  BOOST_TEST(read == expected);
}

// The run has begun with events that are then gone.
BOOST_DATA_TEST_CASE(a_run_goes_on_without_them, data::make(all_kinds), kind) {
  fixture with(kind);
  std::vector<std::string> seen;
  const auto root
    = custom({.name = "root",
              .run = [&](invocation_context& context) -> agent_run {
                const result<trimmed_session> trimmed
                  = co_await with.on.sessions().trim(here, 9);
                trimmed.value();
                co_await context.emit(text("one"));
                for (const auto& said : context.events())
                  seen.push_back(said->text());
                co_await context.emit(text("two"));
              },
              .reads = history_extent::all()});
  run_on(with.on, root);
  BOOST_TEST(seen.back() == "one");
  BOOST_TEST(with.on.texts(here)
             == (std::vector<std::string>{"10", "go", "one", "two"}));
}

// The context still has the view of its last step.
BOOST_DATA_TEST_CASE(an_agent_walks_back_after_a_trim,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind, 100);
  std::vector<std::string> read;
  const auto root = custom(
    {.name = "root",
     .run = [&](invocation_context& context) -> agent_run {
       const result<trimmed_session> trimmed
         = co_await with.on.sessions().trim(here, 50);
       trimmed.value();
       const result<event_ptr> appended
         = co_await with.on.sessions().append_event(here, numbered(101));
       appended.value();
       const auto page
         = co_await context.events_before(context.first_revision(), 200);
       for (const auto& said : page)
         read.push_back(said->text());
       co_await context.emit(text("done"));
     },
     .reads = history_extent::newest(10)});
  run_on(with.on, root);
  BOOST_TEST(read.front() == "51");
  BOOST_TEST(with.on.texts(here).back() == "done");
}

BOOST_DATA_TEST_CASE(an_agent_walks_back_after_a_trim_elsewhere,
                     data::make(shared_kinds),
                     kind) {
  const location_of at(kind);
  runtime_fixture one(at.options());
  auto few = at.options();
  few.events_kept = 4;
  runtime_fixture other(std::move(few));
  one.open();
  long_session::add(one, 1, 300);
  BOOST_TEST(other.append(here, numbered(301)) == "ok");
  one.sessions().trim(here, 200).value();
  std::vector<std::string> read;
  const auto walks
    = custom({.name = "walker",
              .run = [&read](invocation_context& context) -> agent_run {
                read.clear();
                for (auto next = context.first_revision(); next > 1;) {
                  const auto page = co_await context.events_before(next, 70);
                  for (auto index = page.size(); index > 0; --index)
                    read.push_back(page[index - 1]->text());
                  next = page.first_number();
                }
                co_await context.emit(text("done"));
              },
              .reads = history_extent::newest(1)});
  for (int round = 0; round < 2; ++round) {
    run_on(other, walks);
    BOOST_TEST_REQUIRE(!read.empty());
    BOOST_TEST(read.back() == "201");
    BOOST_TEST(other.texts(here).back() == "done");
  }
}

BOOST_DATA_TEST_CASE(a_run_is_found_after_a_trim_elsewhere,
                     data::make(shared_kinds),
                     kind) {
  const location_of at(kind);
  runtime_fixture one(at.options());
  runtime_fixture other(at.options());
  one.open();
  long_session::add(one, 1, 20);
  run_on(other, custom("root", [](invocation_context& c) -> agent_run {
           co_await c.emit(text("done"));
         }));
  const auto run = other.events(here).back()->invocation_id;
  one.sessions().trim(here, 10).value();
  const auto done
    = other.sessions().rewind(here, rewind_target::before_run(run)).value();
  BOOST_TEST(done.to == 20U);
}

BOOST_DATA_TEST_CASE(a_budget_counts_what_is_left,
                     data::make(all_kinds),
                     kind) {
  fixture with(kind, 1);
  const auto talks = llm(
    {.name = "writer",
     .model = std::make_shared<made_model>(
       [](const model_request&, const model_reply& reply) {
         model_response said(content("model", {part("ok")}));
         said.extra = value(json{{"usageMetadata", {{"totalTokenCount", 60}}}});
         reply(std::move(said));
       })});
  run_options options;
  options.session_tokens_max = 100;
  const auto run = [&] {
    return agent_fixture::show(
      with.on.runtime.run(talks, here, user_text("go"), options));
  };
  run();
  run();
  BOOST_TEST(run().find("limit_exceeded") != std::string::npos);
  with.trim(with.on.fetch(here).revision());
  BOOST_TEST(run().find("limit_exceeded") == std::string::npos);
}

BOOST_DATA_TEST_CASE(a_long_conversation_is_summed_up,
                     data::make(all_kinds),
                     kind) {
  const location_of at(kind);
  auto options = at.options();
  options.events_kept = 4;
  std::string summed;
  options.compaction = compaction_options{
    .compaction_interval = 1,
    .summarizer
    = [&summed](const summary_request& wanted) -> std::optional<content> {
      summed = to_text(wanted);
      return content("model", {part("in short")});
    }};
  runtime_fixture on(std::move(options));
  on.open();
  long_session::add(on, 1, 40);
  on.sessions().trim(here, 30).value();
  run_on(on, llm({.name = "writer", .model = witness().model()}));
  BOOST_TEST(summed.find("31") != std::string::npos);
  BOOST_TEST(summed.find("29") == std::string::npos);
}

// -- age ----

BOOST_DATA_TEST_CASE(events_expire_by_their_age, data::make(all_kinds), kind) {
  const location_of at(kind);
  const auto time = std::make_shared<simulated_environment>(1);
  auto options = at.options();
  options.environment = time;
  runtime_fixture on(std::move(options));
  const auto young = on.open("young");
  const auto old = on.open("old");
  const auto other = on.open("s", json::object(), "bob");
  for (const auto& key : {young, old, other})
    for (std::size_t number = 1; number <= 3; ++number)
      BOOST_TEST(on.append(key, numbered(number)) == "ok");
  time->advance(std::chrono::days(40));
  BOOST_TEST(on.append(young, numbered(4)) == "ok");
  const auto expire = [&](std::optional<std::string> user) {
    return on.sessions()
      .expire_events(
        {"press", time->now() - std::chrono::days(30), std::move(user)})
      .value();
  };
  BOOST_TEST(expire("ann") == 6U);
  BOOST_TEST(on.texts(young) == words(4, 4));
  BOOST_TEST(on.texts(old).empty());
  BOOST_TEST(on.texts(other) == words(1, 3));
  BOOST_TEST(expire({}) == 3U);
  BOOST_TEST(expire({}) == 0U);
  BOOST_TEST(on.fetch(old).revision() == 3U);
  BOOST_TEST(code_of(on.sessions().expire_events({"press", timestamp()}).get())
             == "invalid_argument");
}

// -- other processes ----

BOOST_DATA_TEST_CASE(others_see_a_trim_when_they_read_on,
                     data::make(shared_kinds),
                     kind) {
  const location_of at(kind);
  const auto options = [&at] {
    auto chosen = at.options();
    chosen.events_kept = 4;
    return chosen;
  };
  runtime_fixture one(options());
  runtime_fixture other(options());
  one.open();
  long_session::add(one, 1, 30);
  // In memory of the other one, with its newest events.
  BOOST_TEST(other.append(here, numbered(31)) == "ok");
  one.sessions().trim(here, 25).value();
  auto late = other.sessions().follow(here, {.from = 3});
  BOOST_TEST(follow_to(late, 31) == std::vector<std::string>{"gone"});
  BOOST_TEST(other.texts(here) == words(26, 31));
  BOOST_TEST(other.fetch(here).first_revision() == 25U);
  BOOST_TEST(code_of(other.sessions().get(here, {.at = 20}).get()) == "gone");
  auto early = other.sessions().follow(here, {.from = 25});
  BOOST_TEST(follow_to(early, 31) == words(26, 31));
  BOOST_TEST(other.append(here, numbered(32)) == "ok");
  BOOST_TEST(one.texts(here) == words(26, 32));
}

// The session that was read is removed and made again before the trim is
// written: the trim reads the new one.
BOOST_AUTO_TEST_CASE(a_session_that_was_made_again_is_read_again) {
  fixture with("store");
  runtime_fixture other(with.at.place().beside());
  bool is_done = false;
  with.at.place().script->on_session_load = [&] {
    if (std::exchange(is_done, true))
      return;
    long_session::make_anew(other, 5);
  };
  BOOST_TEST(code_of(with.on.sessions().trim(here, 8).get()) == "not_found");
  BOOST_TEST(with.on.texts(here) == words(1, 5));
  BOOST_TEST(is_done);
}

BOOST_AUTO_TEST_CASE(a_trim_that_is_not_confirmed_fails) {
  fixture with("store");
  with.at.place().script->next_commits({store_script::step::fail});
  BOOST_TEST(code_of(with.on.sessions().trim(here, 8).get()) == "store_failed");
  BOOST_TEST(with.on.texts(here) == words(1, 10));
}

BOOST_AUTO_TEST_SUITE_END()
