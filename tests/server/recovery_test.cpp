// Runs whose processes have ended, which a server recovers by itself or on
// request.

#include "troupe/stores/shared/memory_store.hpp"

#include "../runtime/staged_store.hpp"
#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(server_recoveries)

namespace {

troupe::runtime on_place(const std::shared_ptr<memory_data>& place) {
  runtime_options chosen;
  chosen.store = std::shared_ptr<store>(make_memory_store(place));
  return troupe::runtime::open(std::move(chosen)).value();
}

agent saying(const std::string& name, const std::string& words) {
  return custom(name, [words](invocation_context& context) -> agent_run {
    content said("model", {part(words)});
    co_await context.emit(std::move(said));
  });
}

// Leaves an open run of an agent of this name, whose process ends in the
// middle.
session_key leave_run(const std::shared_ptr<memory_data>& place,
                      const std::string& name) {
  auto ended = on_place(place);
  const auto key
    = ended.sessions().create({"press", "ann", name}).value().key();
  const auto begun = std::make_shared<std::promise<void>>();
  const auto stuck
    = custom(name, [begun](invocation_context& context) -> agent_run {
        begun->set_value();
        co_await context.sleep(std::chrono::hours(1));
      });
  ended.run(stuck, key, "go").detach();
  begun->get_future().wait();
  return key;
}

std::string last_text(troupe::runtime& on, const session_key& key) {
  return on.sessions().get(key).value().events().back()->text();
}

// Options of a server that recovers one run, and tells its agent and outcome.
server_options telling_recoveries(std::promise<std::string>& told) {
  server_options options;
  options.recovers_runs = true;
  options.on_recovery
    = [&told](const unfinished_run& left, const result<void>& ended) {
        told.set_value(left.agent + " "
                       + (ended ? "ok" : to_string(ended.error())));
      };
  return options;
}

} // namespace

// A run of another agent belongs to another program. It is the older one, so
// the server has seen it before the other.
BOOST_AUTO_TEST_CASE(open_runs_of_its_apps_are_recovered) {
  const auto place = make_memory_data();
  const auto others = leave_run(place, "other");
  const auto own = leave_run(place, "root");
  std::promise<std::string> told;
  server_fixture on(on_place(place),
                    {{"press", saying("root", "back")}},
                    telling_recoveries(told));
  BOOST_TEST(told.get_future().get() == "root ok");
  BOOST_TEST(last_text(on.runtime, own) == "back");
  BOOST_TEST(last_text(on.runtime, others) == "go");
  const auto left = on.runtime.unfinished("press").value();
  BOOST_TEST_REQUIRE(left.size() == 1U);
  BOOST_TEST(left.front().agent == "other");
}

// A server with a run under way on a place, which stops.
namespace {

http_answer stop_in_a_run(const std::shared_ptr<memory_data>& place,
                          bool recovers) {
  const auto begun = std::make_shared<std::promise<void>>();
  const auto stuck
    = custom("root", [begun](invocation_context& context) -> agent_run {
        begun->set_value();
        co_await context.sleep(std::chrono::hours(1));
      });
  server_options options;
  options.recovers_runs = recovers;
  server_fixture on(on_place(place), {{"press", stuck}}, std::move(options));
  on.runtime.sessions().create({"press", "ann", "s"}).value();
  auto asked = std::async(std::launch::async, [&on] {
    return on.client.post("/run",
                          {{"appName", "press"},
                           {"userId", "ann"},
                           {"sessionId", "s"},
                           {"newMessage", {{"parts", {{{"text", "go"}}}}}}});
  });
  begun->get_future().wait();
  on.server.stop(std::chrono::milliseconds(0));
  return asked.get();
}

} // namespace

BOOST_AUTO_TEST_CASE(a_stopped_server_leaves_its_runs_to_the_next_one) {
  const auto place = make_memory_data();
  const auto answer = stop_in_a_run(place, true);
  BOOST_TEST(answer.status == 503);
  BOOST_TEST(answer.body.find("another process can recover it")
               != std::string::npos,
             answer.body);
  std::promise<std::string> told;
  server_fixture on(on_place(place),
                    {{"press", saying("root", "back")}},
                    telling_recoveries(told));
  BOOST_TEST(told.get_future().get() == "root ok");
  BOOST_TEST(last_text(on.runtime, {"press", "ann", "s"}) == "back");
}

// A server whose agents have changed tries a run once, and again if another
// process has had it since.
BOOST_AUTO_TEST_CASE(a_refused_run_is_tried_again_after_another_process) {
  const auto place = make_memory_data();
  const auto begun = std::make_shared<tally>();
  const auto right = sequential(
    "root",
    {saying("one", "1"),
     custom("two", [begun](invocation_context& context) -> agent_run {
       begun->add();
       co_await context.sleep(std::chrono::hours(1));
     })});
  auto other = on_place(place);
  const auto key = other.sessions().create({"press", "ann", "s"}).value().key();
  auto first = other.run(right, key, "go");
  begun->await(1);
  first.leave();
  BOOST_TEST(!first.wait().get());
  tally tries;
  std::atomic<int> conflicts{0};
  server_options options;
  options.recovers_runs = true;
  options.on_recovery = [&](const unfinished_run&, const result<void>& ended) {
    conflicts += !ended && ended.error().code() == errc::conflict ? 1 : 0;
    tries.add();
  };
  server_fixture on(on_place(place),
                    {{"press", sequential("root", {saying("another", "1")})}},
                    std::move(options));
  tries.await(1);
  auto left = other.unfinished("press").value();
  while (left.size() != 1U || !left.front().was_refused) {
    std::this_thread::yield();
    left = other.unfinished("press").value();
  }
  auto second = other.recover(right, key, left.front().invocation_id);
  begun->await(2);
  second.leave();
  BOOST_TEST(!second.wait().get());
  tries.await(2);
  BOOST_TEST(conflicts == 2);
}

// The next look is two seconds later.
BOOST_AUTO_TEST_CASE(a_recovery_whose_store_failed_is_tried_again) {
  staged_place shared;
  const auto key = leave_run(shared.place, "root");
  shared.script->fail_loads(true);
  tally tries;
  std::promise<std::string> back;
  server_options options;
  options.recovers_runs = true;
  options.on_recovery = [&](const unfinished_run&, const result<void>& ended) {
    tries.add();
    if (ended)
      back.set_value("ok");
    else if (ended.error().code() == errc::store_failed)
      shared.script->fail_loads(false);
    else
      back.set_value(to_string(ended.error()));
  };
  server_fixture on(troupe::runtime::open(shared.options()).value(),
                    {{"press", saying("root", "back")}},
                    std::move(options));
  BOOST_TEST(back.get_future().get() == "ok");
  tries.await(2);
  BOOST_TEST(last_text(on.runtime, key) == "back");
}

// The store has the claim of the first try, and no process executes the run.
BOOST_AUTO_TEST_CASE(a_claim_with_an_unknown_outcome_is_made_again) {
  staged_place shared;
  const auto key = leave_run(shared.place, "root");
  shared.script->next_commits({store_script::step::fail_anyway});
  std::promise<std::string> first;
  std::promise<std::string> back;
  std::atomic<int> tries{0};
  server_options options;
  options.recovers_runs = true;
  options.on_recovery = [&](const unfinished_run&, const result<void>& ended) {
    (tries++ == 0 ? first : back)
      .set_value(ended ? "ok" : std::string(to_string(ended.error().code())));
  };
  server_fixture on(troupe::runtime::open(shared.options()).value(),
                    {{"press", saying("root", "back")}},
                    std::move(options));
  BOOST_TEST(first.get_future().get() == "store_failed");
  BOOST_TEST(back.get_future().get() == "ok");
  BOOST_TEST(last_text(on.runtime, key) == "back");
}

// Each process loses the run to the other one while it gives no signs of life.
BOOST_AUTO_TEST_CASE(a_run_that_its_former_process_had_again_is_tried_again) {
  const auto place = make_memory_data();
  const auto stuck = [](const std::shared_ptr<tally>& begun) {
    return custom("root", [begun](invocation_context& context) -> agent_run {
      begun->add();
      co_await context.sleep(std::chrono::hours(1));
    });
  };
  const auto by_other = std::make_shared<tally>();
  const auto by_server = std::make_shared<tally>();
  const auto kept = make_memory_store(place);
  const auto silence_until_begun = [&](tally& begun, std::size_t times) {
    do
      for (const auto& each : kept->list_runs({}).value())
        kept->remove_holder(each.holder).value();
    while (!begun.reaches(times, std::chrono::milliseconds(10)));
  };
  auto other = on_place(place);
  const auto key = other.sessions().create({"press", "ann", "s"}).value().key();
  auto lost = other.run(stuck(by_other), key, "go");
  by_other->await(1);
  server_options options;
  options.recovers_runs = true;
  server_fixture on(
    on_place(place), {{"press", stuck(by_server)}}, std::move(options));
  silence_until_begun(*by_server, 1);
  BOOST_TEST(!lost.wait().get().has_value());
  std::vector<troupe::run> tries;
  while (by_other->count() < 2) {
    for (const auto& each : kept->list_runs({}).value())
      kept->remove_holder(each.holder).value();
    tries.push_back(other.recover(stuck(by_other), key, lost.invocation_id()));
    static_cast<void>(by_other->reaches(2, std::chrono::milliseconds(100)));
  }
  silence_until_begun(*by_server, 2);
}

// Otherwise they would stay open for ever.
BOOST_AUTO_TEST_CASE(a_stopped_server_without_recoveries_leaves_no_runs) {
  const auto place = make_memory_data();
  auto after = on_place(place);
  stop_in_a_run(place, false);
  BOOST_TEST(after.unfinished("press").value().empty());
}

// -- requests ----

namespace {

using tally_ptr = std::shared_ptr<tally>;

// An agent that waits for long. `begun` counts its runs.
agent waiting(const tally_ptr& begun) {
  return custom("root", [begun](invocation_context& context) -> agent_run {
    begun->add();
    co_await context.sleep(std::chrono::hours(1));
  });
}

// An agent that says one thing, and then waits for long.
agent saying_first(const tally_ptr& begun, const std::string& name = "root") {
  return custom(name, [begun](invocation_context& context) -> agent_run {
    co_await context.emit(text("{}", "first"));
    begun->add();
    co_await context.sleep(std::chrono::hours(1));
  });
}

// An agent that writes a `temp:` key, and waits then if `begun` is set.
agent noting(const tally_ptr& begun) {
  return custom("root", [begun](invocation_context& context) -> agent_run {
    context.state().set("temp:x", 1);
    co_await context.emit(text("{}", "first"));
    if (begun) {
      begun->add();
      co_await context.sleep(std::chrono::hours(1));
    }
    co_await context.emit(text("{}", "last"));
  });
}

struct begun_run {
  session_key key;
  std::string id;

  std::string path() const {
    return "/apps/press/users/" + key.user + "/sessions/s1/runs/" + id;
  }
};

// Starts a run of this agent on a new session of the user, and waits until it
// counts.
begun_run begin_run(troupe::runtime& on,
                    const std::string& user,
                    const agent& root,
                    const tally_ptr& begun) {
  const auto key = on.sessions().create({"press", user, "s1"}).value().key();
  auto started = on.run(root, key, "go");
  begun_run made{key, started.invocation_id()};
  started.detach();
  begun->await(1);
  return made;
}

// Leaves a run of ann in a store, whose process has ended.
begun_run leave_waiting(const std::shared_ptr<memory_data>& place) {
  auto ended = on_place(place);
  const auto begun = std::make_shared<tally>();
  return begin_run(ended, "ann", waiting(begun), begun);
}

const std::string list_path = "/apps/press/unfinished-runs";

json runs_in(http_client& client, const std::string& query = {}) {
  const auto answer = client.get(list_path + query);
  BOOST_TEST(answer.status == 200);
  return answer.data()["runs"];
}

bool lists(http_client& client, const std::string& id) {
  const auto runs = runs_in(client);
  return std::ranges::any_of(
    runs, [&id](const json& each) { return each["run"] == id; });
}

std::string code_of(const http_answer& answer) {
  return std::to_string(answer.status) + " " + answer.header("troupe-error");
}

} // namespace

BOOST_AUTO_TEST_CASE(open_runs_are_listed_with_the_state_of_their_processes) {
  const auto place = make_memory_data();
  const auto first = leave_waiting(place);
  auto other = on_place(place);
  const auto begun = std::make_shared<tally>();
  const auto second = begin_run(other, "bob", waiting(begun), begun);
  server_fixture on(on_place(place), {{"press", saying("root", "back")}});
  const auto told = on.client.get(list_path).data();
  BOOST_TEST(told["hasMore"] == false);
  const auto& runs = told["runs"];
  BOOST_TEST_REQUIRE(runs.size() == 2U);
  BOOST_TEST(runs[0]["run"] == first.id);
  BOOST_TEST(runs[0]["app"] == "press");
  BOOST_TEST(runs[0]["user"] == "ann");
  BOOST_TEST(runs[0]["session"] == "s1");
  BOOST_TEST(runs[0]["agent"] == "root");
  BOOST_TEST(runs[0]["began"].get<double>() > 0);
  BOOST_TEST(!runs[0]["holder"].get<std::string>().empty());
  BOOST_TEST(runs[0]["silentMs"].is_null());
  BOOST_TEST(runs[0]["free"] == true);
  BOOST_TEST(runs[0]["own"] == false);
  BOOST_TEST(runs[0]["active"] == false);
  BOOST_TEST(runs[1]["run"] == second.id);
  BOOST_TEST(runs[1]["silentMs"].is_number_integer());
  BOOST_TEST(runs[1]["free"] == false);
  BOOST_TEST(runs[1]["own"] == false);
  BOOST_TEST(runs[1]["active"] == false);
}

BOOST_AUTO_TEST_CASE(a_list_of_open_runs_has_a_limit) {
  const auto place = make_memory_data();
  const auto first = leave_waiting(place);
  auto other = on_place(place);
  const auto begun = std::make_shared<tally>();
  begin_run(other, "bob", waiting(begun), begun);
  server_fixture on(on_place(place), {});
  const auto part = on.client.get(list_path + "?limit=1").data();
  BOOST_TEST_REQUIRE(part["runs"].size() == 1U);
  BOOST_TEST(part["runs"][0]["run"] == first.id);
  BOOST_TEST(part["hasMore"] == true);
  const auto whole = on.client.get(list_path + "?limit=2").data();
  BOOST_TEST(whole["runs"].size() == 2U);
  BOOST_TEST(whole["hasMore"] == false);
  for (const auto* query : {"?limit=0", "?limit=x"})
    BOOST_TEST(code_of(on.client.get(list_path + query))
                 == "400 invalid_argument",
               query);
  BOOST_TEST(
    on.client.get("/apps/none/unfinished-runs").data()["runs"].empty());
}

// The store lists the runs of all users, a thousand at a time.
BOOST_AUTO_TEST_CASE(the_runs_of_a_user_are_found_behind_those_of_others) {
  constexpr std::size_t others = 1'000;
  const auto place = make_memory_data();
  auto busy = on_place(place);
  const auto begun = std::make_shared<tally>();
  const auto key = busy.sessions().create({"press", "bob", "s1"}).value().key();
  for (std::size_t count = 0; count < others; ++count)
    busy.run(waiting(begun), key, "go", {.policy = run_policy::interleave})
      .detach();
  begun->await(others);
  const auto last = leave_waiting(place);
  server_fixture on(on_place(place), {});
  const auto answer = on.client.get(list_path + "?user=ann").data();
  BOOST_TEST_REQUIRE(answer["runs"].size() == 1U);
  BOOST_TEST(answer["runs"][0]["run"] == last.id);
  BOOST_TEST(answer["hasMore"] == false);
  const auto part = on.client.get(list_path + "?user=bob&limit=3").data();
  BOOST_TEST(part["runs"].size() == 3U);
  BOOST_TEST(part["hasMore"] == true);
}

BOOST_AUTO_TEST_CASE(a_run_is_recovered_on_request) {
  const auto place = make_memory_data();
  const auto left = leave_waiting(place);
  const auto root = saying("root", "back");
  server_fixture on(on_place(place), {{"press", root}});
  const auto answer = on.client.post(left.path() + "/recover", json::object());
  BOOST_TEST(answer.status == 202);
  BOOST_TEST(answer.body == "null");
  // This run waits for the end of the recovered one.
  on.runtime.run(root, left.key, "again").wait().value();
  const auto events = on.runtime.sessions().get(left.key).value().events();
  BOOST_TEST(std::ranges::count_if(events,
                                   [&left](const event_ptr& each) {
                                     return each->text() == "back"
                                            && each->invocation_id == left.id;
                                   })
             == 1);
  BOOST_TEST(!lists(on.client, left.id));
  BOOST_TEST(code_of(on.client.post(left.path() + "/recover", json::object()))
             == "404 not_found");
}

BOOST_AUTO_TEST_CASE(a_run_under_way_is_not_recovered_a_second_time) {
  const auto place = make_memory_data();
  const auto left = leave_waiting(place);
  const auto begun = std::make_shared<tally>();
  server_fixture on(on_place(place), {{"press", saying_first(begun)}});
  BOOST_TEST(on.client.post(left.path() + "/recover", json::object()).status
             == 202);
  begun->await(1);
  const auto again = on.client.post(left.path() + "/recover", json::object());
  BOOST_TEST(code_of(again) == "503 busy");
  BOOST_TEST(again.header("retry-after") == "1");
  BOOST_TEST(code_of(on.client.erase(left.path())) == "503 busy");
  const auto runs = runs_in(on.client);
  BOOST_TEST_REQUIRE(runs.size() == 1U);
  BOOST_TEST(runs[0]["active"] == true);
  BOOST_TEST(runs[0]["own"] == true);
  BOOST_TEST(runs[0]["free"] == false);
  BOOST_TEST(on.client.post(left.path() + "/cancel", json::object()).status
             == 202);
}

BOOST_AUTO_TEST_CASE(a_recovery_without_an_event_is_answered_soon) {
  const auto place = make_memory_data();
  const auto left = leave_waiting(place);
  const auto begun = std::make_shared<tally>();
  server_fixture on(on_place(place), {{"press", waiting(begun)}});
  BOOST_TEST(on.client.post(left.path() + "/recover", json::object()).status
             == 202);
  begun->await(1);
}

BOOST_AUTO_TEST_CASE(a_run_that_the_server_recovers_by_itself_is_busy) {
  const auto place = make_memory_data();
  const auto left = leave_waiting(place);
  const auto begun = std::make_shared<tally>();
  server_options options;
  options.recovers_runs = true;
  server_fixture on(
    on_place(place), {{"press", waiting(begun)}}, std::move(options));
  begun->await(1);
  BOOST_TEST(code_of(on.client.post(left.path() + "/recover", json::object()))
             == "503 busy");
  BOOST_TEST(code_of(on.client.erase(left.path())) == "503 busy");
}

BOOST_AUTO_TEST_CASE(a_run_of_a_living_process_is_busy) {
  const auto place = make_memory_data();
  auto other = on_place(place);
  const auto begun = std::make_shared<tally>();
  const auto held = begin_run(other, "ann", waiting(begun), begun);
  server_fixture on(on_place(place), {{"press", saying("root", "back")}});
  BOOST_TEST(code_of(on.client.post(held.path() + "/recover", json::object()))
             == "503 busy");
  BOOST_TEST(code_of(on.client.erase(held.path())) == "503 busy");
  BOOST_TEST(last_text(on.runtime, held.key) == "go");
  BOOST_TEST(lists(on.client, held.id));
}

// A refused recovery leaves the run open.
BOOST_AUTO_TEST_CASE(a_run_with_lost_temp_keys_is_recovered_if_allowed) {
  const auto place = make_memory_data();
  const auto left = [&place] {
    auto ended = on_place(place);
    const auto begun = std::make_shared<tally>();
    return begin_run(ended, "ann", noting(begun), begun);
  }();
  server_fixture on(on_place(place), {{"press", noting(nullptr)}});
  const auto refused = on.client.post(left.path() + "/recover", json::object());
  BOOST_TEST(code_of(refused) == "409 conflict");
  BOOST_TEST(refused.body.find("temp:x") != std::string::npos, refused.body);
  const auto runs = runs_in(on.client);
  BOOST_TEST_REQUIRE(runs.size() == 1U);
  BOOST_TEST(runs[0]["active"] == false);
  BOOST_TEST(runs[0]["free"] == true);
  BOOST_TEST(
    on.client.post(left.path() + "/recover", {{"allowLostTemp", true}}).status
    == 202);
  on.runtime.run(saying("root", "again"), left.key, "next").wait().value();
  BOOST_TEST(!lists(on.client, left.id));
}

// The server has claimed the run before it has seen that the agents are others.
BOOST_AUTO_TEST_CASE(a_run_of_other_agents_can_be_given_up) {
  const auto place = make_memory_data();
  const auto left = [&place] {
    auto ended = on_place(place);
    const auto begun = std::make_shared<tally>();
    return begin_run(
      ended, "ann", sequential("root", {saying_first(begun, "old")}), begun);
  }();
  server_fixture on(on_place(place),
                    {{"press", sequential("root", {saying("new", "back")})}});
  const auto refused = on.client.post(left.path() + "/recover", json::object());
  BOOST_TEST(code_of(refused) == "409 conflict");
  BOOST_TEST(refused.body.find("'old'") != std::string::npos, refused.body);
  const auto runs = runs_in(on.client);
  BOOST_TEST_REQUIRE(runs.size() == 1U);
  BOOST_TEST(runs[0]["active"] == false);
  BOOST_TEST(runs[0]["free"] == true);
  BOOST_TEST(on.client.erase(left.path()).status == 200);
  BOOST_TEST(runs_in(on.client).empty());
}

// Makes the processes that have left runs ones that were killed.
namespace {

void kill_holders(const std::shared_ptr<memory_data>& place) {
  const auto kept = make_memory_store(place);
  for (const auto& each : kept->list_runs({}).value()) {
    store_change change;
    change.kind = change_kind::close_runs;
    change.owner = {each.key.app, each.key.user, each.key.id};
    change.runs = {{.invocation_id = each.invocation_id,
                    .agent = each.agent,
                    .holder = "killed"}};
    kept->commit({&change, 1}).value();
  }
  kept->remove_holder("killed").value();
}

} // namespace

BOOST_AUTO_TEST_CASE(a_run_of_another_root_agent_is_not_claimed) {
  const auto place = make_memory_data();
  const auto left = leave_waiting(place);
  kill_holders(place);
  {
    server_fixture other(on_place(place),
                         {{"press", saying("editor", "back")}});
    const auto refused
      = other.client.post(left.path() + "/recover", json::object());
    BOOST_TEST(code_of(refused) == "409 conflict");
    BOOST_TEST(refused.body.find("'root'") != std::string::npos, refused.body);
    BOOST_TEST(refused.body.find("'editor'") != std::string::npos,
               refused.body);
    BOOST_TEST(lists(other.client, left.id));
    BOOST_TEST(other.runtime.unfinished("press").value().at(0).holder
               == "killed");
    BOOST_TEST(last_text(other.runtime, left.key) == "go");
  }
  server_options options;
  options.runs.recoveries_max = 1;
  server_fixture on(
    on_place(place), {{"press", saying("root", "back")}}, std::move(options));
  BOOST_TEST(on.client.post(left.path() + "/recover", json::object()).status
             == 202);
}

BOOST_AUTO_TEST_CASE(a_run_is_not_recovered_without_end) {
  const auto place = make_memory_data();
  const auto left = leave_waiting(place);
  kill_holders(place);
  server_options options;
  options.runs.recoveries_max = 0;
  server_fixture on(
    on_place(place), {{"press", saying("root", "back")}}, std::move(options));
  BOOST_TEST(code_of(on.client.post(left.path() + "/recover", json::object()))
             == "500 limit_exceeded");
  BOOST_TEST(lists(on.client, left.id));
}

BOOST_AUTO_TEST_CASE(a_run_is_given_up_on_request) {
  const auto place = make_memory_data();
  const auto left = leave_waiting(place);
  server_fixture on(on_place(place), {{"press", saying("root", "back")}});
  const auto answer = on.client.erase(left.path());
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.body == "null");
  BOOST_TEST(runs_in(on.client).empty());
  BOOST_TEST(last_text(on.runtime, left.key) == "go");
  BOOST_TEST(code_of(on.client.erase(left.path())) == "404 not_found");
  BOOST_TEST(code_of(on.client.post(left.path() + "/recover", json::object()))
             == "404 not_found");
}

BOOST_AUTO_TEST_CASE(unknown_runs_and_bad_bodies_are_refused) {
  const auto place = make_memory_data();
  const auto left = leave_waiting(place);
  server_fixture on(on_place(place), {{"press", saying("root", "back")}});
  const auto none = one_path + "/runs/none";
  BOOST_TEST(code_of(on.client.post(none + "/recover", json::object()))
             == "404 not_found");
  BOOST_TEST(code_of(on.client.erase(none)) == "404 not_found");
  const auto app = on.client.post(
    "/apps/none/users/ann/sessions/s1/runs/none/recover", json::object());
  BOOST_TEST(code_of(app) == "404 not_found");
  BOOST_TEST(app.data()["detail"] == "App not found: none");
  for (const auto* body : {R"({"allowLostTemp": 1})", "[]", "{"})
    BOOST_TEST(on.client.ask("POST", left.path() + "/recover", body).status
                 == 422,
               body);
  BOOST_TEST(on.client.ask("PUT", left.path()).status == 405);
  BOOST_TEST(lists(on.client, left.id));
}

BOOST_AUTO_TEST_CASE(a_token_sees_and_recovers_the_runs_of_its_user) {
  const auto place = make_memory_data();
  const auto left = leave_waiting(place);
  server_options options;
  options.tokens = "ann-0123456789abcdef ann reader\n"
                   "bob-0123456789abcdef bob user\n"
                   "eve-0123456789abcdef eve admin\n";
  server_fixture on(
    on_place(place), {{"press", saying("root", "back")}}, std::move(options));
  BOOST_TEST(code_of(on.client.get(list_path)) == "401 unauthorized");
  const auto be = [&on](const std::string& name) -> http_client& {
    on.client.headers = {"authorization: Bearer " + name + "-0123456789abcdef"};
    return on.client;
  };
  BOOST_TEST(runs_in(be("ann")).size() == 1U);
  BOOST_TEST(runs_in(be("ann"), "?user=ann").size() == 1U);
  BOOST_TEST(runs_in(be("bob")).empty());
  BOOST_TEST(code_of(be("bob").get(list_path + "?user=ann"))
             == "403 forbidden");
  BOOST_TEST(runs_in(be("eve")).size() == 1U);
  BOOST_TEST(runs_in(be("eve"), "?user=bob").empty());
  for (const auto* name : {"ann", "bob"}) {
    BOOST_TEST(code_of(be(name).post(left.path() + "/recover", json::object()))
                 == "403 forbidden",
               name);
    BOOST_TEST(code_of(be(name).erase(left.path())) == "403 forbidden", name);
  }
  BOOST_TEST(be("eve").erase(left.path()).status == 200);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
