// Events of a session over HTTP: pages, streams and appends.

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(events)

namespace {

const std::string events_path = one_path + "/events";

json said(const std::string& words) {
  return {{"author", "user"},
          {"content", {{"role", "user"}, {"parts", {{{"text", words}}}}}}};
}

struct fixture : server_fixture {
  fixture() { create(); }

  // Appends events whose texts are numbers from 1.
  void fill(int count) {
    for (int number = 1; number <= count; ++number)
      client.post(events_path, said(std::to_string(number)));
  }

  std::string page(const std::string& query) {
    const auto answer = client.get(events_path + query);
    if (answer.status != 200)
      return std::to_string(answer.status);
    std::string texts;
    const auto page = answer.data();
    for (const auto& each : page["events"])
      texts += each["content"]["parts"][0]["text"].get<std::string>() + ' ';
    return texts + "after " + page["after"].dump() + " of "
           + page["revision"].dump();
  }

  http_client follow(const std::string& query = "?follow") {
    auto reader = connect();
    reader.send_request("GET", events_path + query);
    BOOST_TEST(reader.read_head().header("content-type")
               == "text/event-stream; charset=utf-8");
    return reader;
  }
};

std::string next_text(http_client& reader) {
  const auto event = reader.next_event();
  return event.is_null()
           ? "end"
           : event["content"]["parts"][0].value("text", std::string("?"));
}

} // namespace

BOOST_AUTO_TEST_CASE(an_append_answers_with_the_event_alone) {
  fixture on;
  auto event = said("Hi");
  event["id"] = "e1";
  event["actions"] = {
    {"stateDelta", {{"topic", "owls"}}},
    {"stateOps", json::array({{{"op", "add"}, {"key", "n"}, {"value", 2}}})}};
  const auto stored = on.client.post(events_path, event);
  BOOST_TEST(stored.status == 200);
  BOOST_TEST(stored.data()["id"] == "e1");
  BOOST_TEST(stored.data()["actions"]["stateDelta"]
             == json({{"topic", "owls"}, {"n", 2}}));
  // A retry gets the stored event; other content is a conflict.
  BOOST_TEST(on.client.post(events_path, event).data() == stored.data());
  event["content"]["parts"][0]["text"] = "other";
  BOOST_TEST(on.client.post(events_path, event).status == 409);
  BOOST_TEST(on.client.get(one_path).header("etag") == "\"1\"");
}

BOOST_AUTO_TEST_CASE(an_append_may_expect_a_revision) {
  fixture on;
  on.client.headers = {"if-match: \"0\""};
  BOOST_TEST(on.client.post(events_path, said("1")).status == 200);
  BOOST_TEST(on.client.post(events_path, said("2")).status == 412);
}

BOOST_AUTO_TEST_CASE(a_conflict_of_ids_is_none_of_revisions) {
  fixture on;
  auto event = said("1");
  event["id"] = "e1";
  on.client.post(events_path, event);
  event["content"]["parts"][0]["text"] = "2";
  on.client.headers = {"if-match: \"1\""};
  BOOST_TEST(on.client.post(events_path, event).status == 409);
  on.client.headers = {"if-match: \"0\""};
  BOOST_TEST(on.client.post(events_path, event).status == 412);
}

BOOST_AUTO_TEST_CASE(bad_events_are_refused) {
  fixture on;
  BOOST_TEST(on.client.ask("POST", events_path, "{").status == 400);
  BOOST_TEST(on.client.post(events_path, {{"author", 1}}).status == 400);
  BOOST_TEST(on.client.ask("POST", events_path, "[\"\xff\"]").status == 400);
  BOOST_TEST(
    on.client.post("/apps/press/users/ann/sessions/none/events", said("1"))
      .status
    == 404);
}

BOOST_AUTO_TEST_CASE(events_are_read_in_pages_from_both_ends) {
  fixture on;
  on.fill(5);
  BOOST_TEST(on.page("") == "1 2 3 4 5 after 0 of 5");
  BOOST_TEST(on.page("?limit=2") == "1 2 after 0 of 5");
  BOOST_TEST(on.page("?after=2&limit=2") == "3 4 after 2 of 5");
  BOOST_TEST(on.page("?after=4&limit=2") == "5 after 4 of 5");
  BOOST_TEST(on.page("?after=9") == "after 5 of 5");
  BOOST_TEST(on.page("?before=6&limit=2") == "4 5 after 3 of 5");
  BOOST_TEST(on.page("?before=4&limit=2") == "2 3 after 1 of 5");
  BOOST_TEST(on.page("?before=2&limit=2") == "1 after 0 of 5");
  BOOST_TEST(on.page("?before=0") == "after 0 of 5");
  BOOST_TEST(on.page("?limit=0") == "after 0 of 5");
  BOOST_TEST(on.page("?limit=-1") == "400");
  BOOST_TEST(on.page("?after=1&before=3") == "400");
}

BOOST_AUTO_TEST_CASE(a_follower_gets_stored_and_new_events) {
  fixture on;
  on.fill(2);
  auto reader = on.follow("?follow&after=1");
  BOOST_TEST(next_text(reader) == "2");
  BOOST_TEST(reader.last_id == "2");
  on.client.post(events_path, said("new"));
  BOOST_TEST(next_text(reader) == "new");
  BOOST_TEST(reader.last_id == "3");
}

BOOST_AUTO_TEST_CASE(a_follower_without_a_place_gets_new_events_only) {
  fixture on;
  on.fill(2);
  on.client.headers = {"accept: text/event-stream"};
  on.client.send_request("GET", events_path);
  BOOST_TEST(on.client.read_head().status == 200);
  auto writer = on.connect();
  writer.post(events_path, said("new"));
  BOOST_TEST(next_text(on.client) == "new");
}

BOOST_AUTO_TEST_CASE(a_follower_that_connects_again_misses_nothing) {
  fixture on;
  on.fill(3);
  on.client.headers = {"last-event-id: 1"};
  on.client.send_request("GET", events_path + "?follow&after=0");
  on.client.read_head();
  BOOST_TEST(next_text(on.client) == "2");
  BOOST_TEST(next_text(on.client) == "3");
}

BOOST_AUTO_TEST_CASE(a_follower_of_nothing_is_refused) {
  fixture on;
  BOOST_TEST(on.client.get(events_path + "?follow&after=1").status == 404);
  BOOST_TEST(
    on.client.get("/apps/press/users/ann/sessions/none/events?follow").status
    == 404);
  on.client.headers = {"last-event-id: x"};
  BOOST_TEST(on.client.get(events_path + "?follow").status == 400);
}

BOOST_AUTO_TEST_CASE(a_follower_is_told_that_its_session_was_removed) {
  fixture on;
  auto reader = on.follow();
  on.client.erase(one_path);
  BOOST_TEST(reader.next_event()["error_details"]["error_type"] == "not_found");
  BOOST_TEST(reader.next_event() == nullptr);
}

BOOST_AUTO_TEST_CASE(followers_end_when_the_server_stops) {
  fixture on;
  auto reader = on.follow();
  on.server.stop();
  BOOST_TEST(reader.next_event() == nullptr);
  BOOST_TEST(reader.is_closed_within(10s));
}

BOOST_AUTO_TEST_CASE(a_quiet_stream_sends_comments) {
  server_options options;
  options.limits.heartbeat = 50ms;
  server_fixture on({}, options);
  on.create();
  on.client.send_request("GET", events_path + "?follow");
  on.client.read_head();
  BOOST_TEST(on.client.read_chunk() == ": \n\n");
  BOOST_TEST(on.client.read_chunk() == ": \n\n");
}

BOOST_AUTO_TEST_CASE(many_followers_get_each_event) {
  fixture on;
  std::vector<http_client> readers;
  for (int count = 0; count < 200; ++count)
    readers.push_back(on.follow());
  on.client.post(events_path, said("new"));
  for (auto& each : readers)
    BOOST_TEST(next_text(each) == "new");
}

// More events than lines are kept.
BOOST_AUTO_TEST_CASE(each_of_many_events_reaches_all_followers) {
  fixture on;
  std::vector<http_client> readers;
  for (int count = 0; count < 3; ++count)
    readers.push_back(on.follow());
  for (int number = 0; number < 100; ++number)
    on.client.post(events_path, said(std::to_string(number)));
  for (auto& each : readers)
    for (int number = 0; number < 100; ++number)
      BOOST_TEST(next_text(each) == std::to_string(number));
}

// -- state of an app or a user ----

namespace {

const std::string app_state = "/apps/press/state";
const std::string user_state = "/apps/press/users/ann/state";

http_client follow_state(server_fixture& on, const std::string& path) {
  auto reader = on.connect();
  reader.send_request("GET", path);
  BOOST_TEST(reader.read_head().header("content-type")
             == "text/event-stream; charset=utf-8");
  return reader;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(states_are_read_with_their_revisions, fixture) {
  client.patch(one_path, {{"stateDelta", {{"app:n", 1}, {"user:x", 2}}}});
  client.patch(one_path, {{"stateDelta", {{"app:n", 2}}}});
  const auto app = client.get(app_state);
  BOOST_TEST(app.status == 200);
  BOOST_TEST(app.header("etag") == "\"2\"");
  BOOST_TEST(app.data() == json({{"revision", 2}, {"state", {{"app:n", 2}}}}));
  BOOST_TEST(client.get(user_state).data()
             == json({{"revision", 1}, {"state", {{"user:x", 2}}}}));
  BOOST_TEST(client.get("/apps/press/users/bob/state").data()
             == json({{"revision", 0}, {"state", json::object()}}));
}

BOOST_FIXTURE_TEST_CASE(states_come_as_they_change, fixture) {
  client.patch(one_path, {{"stateDelta", {{"app:n", 1}, {"user:n", 1}}}});
  auto app = follow_state(*this, app_state + "?follow");
  auto user = follow_state(*this, user_state + "?follow&after=0");
  auto first = user.next_event();
  BOOST_TEST(first["revision"] == 1);
  BOOST_TEST(first["listsAll"] == true);
  client.patch(one_path, {{"stateDelta", {{"app:n", 2}, {"user:n", 2}}}});
  for (auto* reader : {&app, &user}) {
    const auto next = reader->next_event();
    const std::string key = reader == &app ? "app:n" : "user:n";
    BOOST_TEST(next["revision"] == 2);
    BOOST_TEST(next["state"] == json({{key, 2}}));
    BOOST_TEST(next["keys"]
               == json::array({{{"key", key}, {"before", 1}, {"after", 2}}}));
    BOOST_TEST(next["listsAll"] == false);
  }
}

BOOST_FIXTURE_TEST_CASE(a_stream_of_states_goes_on_at_its_last_id, fixture) {
  client.patch(one_path, {{"stateDelta", {{"app:n", 1}}}});
  client.patch(one_path, {{"stateDelta", {{"app:n", 2}}}});
  auto reader = connect();
  reader.headers = {"last-event-id: 1"};
  reader.send_request("GET", app_state + "?follow&after=2");
  reader.read_head();
  BOOST_TEST(reader.next_event()["revision"] == 2);
  client.headers = {"last-event-id: x"};
  BOOST_TEST(client.get(app_state + "?follow").status == 400);
  client.headers = {"last-event-id: 3"};
  BOOST_TEST(client.get(app_state + "?follow").status == 404);
}

BOOST_FIXTURE_TEST_CASE(a_stream_of_states_ends_with_the_user, fixture) {
  client.patch(one_path, {{"stateDelta", {{"user:n", 1}}}});
  auto reader = follow_state(*this, user_state + "?follow&after=0");
  BOOST_TEST(reader.next_event()["revision"] == 1);
  runtime.sessions().remove_user("press", "ann").value();
  BOOST_TEST(reader.next_event()["error_details"]["error_type"] == "not_found");
  BOOST_TEST(reader.next_event() == nullptr);
}

BOOST_FIXTURE_TEST_CASE(a_stopped_server_ends_streams_of_states, fixture) {
  auto reader = follow_state(*this, app_state + "?follow");
  server.stop();
  BOOST_TEST(reader.next_event() == nullptr);
}

// -- time travel ----

BOOST_FIXTURE_TEST_CASE(a_trimmed_session_says_what_is_gone, fixture) {
  fill(10);
  BOOST_TEST(client.get(one_path).header("troupe-first-revision").empty());
  runtime.sessions().trim({"press", "ann", "s1"}, 6).value();
  const auto held = client.get(one_path);
  BOOST_TEST(held.header("troupe-first-revision") == "6");
  BOOST_TEST(held.data()["events"].size() == 4U);
  BOOST_TEST(!held.data().contains("firstRevision"));
  BOOST_TEST(client.get(one_path + "?at=5").status == 410);
  BOOST_TEST(client.get(one_path + "?at=6").status == 200);
  BOOST_TEST(page("") == "7 8 9 10 after 6 of 10");
  BOOST_TEST(page("?after=8") == "9 10 after 8 of 10");
  BOOST_TEST(page("?after=5") == "410");
  BOOST_TEST(page("?before=9&limit=5") == "7 8 after 6 of 10");
  BOOST_TEST(page("?before=3") == "after 6 of 10");
  BOOST_TEST(client.get(events_path).data()["firstRevision"] == 6);
  BOOST_TEST(client.get(events_path + "?follow&after=2").status == 410);
  auto reader = follow("?follow&after=6");
  BOOST_TEST(next_text(reader) == "7");
  BOOST_TEST(client.post(one_path + "/rewind", {{"to", 3}}).status == 410);
  BOOST_TEST(client.post(one_path + "/fork", {{"at", 3}}).status == 410);
}

BOOST_FIXTURE_TEST_CASE(a_session_goes_back, fixture) {
  client.patch(one_path, {{"stateDelta", {{"n", 1}}}});
  client.patch(one_path, {{"stateDelta", {{"n", 2}, {"user:x", 1}}}});
  const auto path = one_path + "/rewind";
  BOOST_TEST(client.post(path, {{"to", -1}}).status == 422);
  BOOST_TEST(client.post(path, {{"to", 0}, {"cancelRuns", "yes"}}).status
             == 422);
  BOOST_TEST(client.post(path, json::object()).status == 400);
  BOOST_TEST(client.post(path, {{"to", 1}, {"beforeInvocationId", "i"}}).status
             == 400);
  BOOST_TEST(client.post(path, {{"to", 7}}).status == 404);
  const auto done = client.post(path, {{"to", 1}});
  BOOST_TEST(done.status == 200);
  BOOST_TEST(done.data()["revision"] == 3);
  BOOST_TEST(done.data()["keptKeys"] == json({"user:x"}));
  const auto held = client.get(one_path).data();
  BOOST_TEST(held["state"] == json({{"n", 1}, {"user:x", 1}}));
  BOOST_TEST(held["events"].size() == 3U);
}

BOOST_FIXTURE_TEST_CASE(operations_are_undone_on_request, fixture) {
  const auto add = [](const std::string& key) {
    return json{
      {"stateOps", json::array({{{"op", "add"}, {"key", key}, {"value", 2}}})}};
  };
  client.patch(one_path, add("user:n"));
  client.patch(one_path, {{"stateDelta", {{"user:x", 1}}}});
  const auto path = one_path + "/rewind";
  BOOST_TEST(client.post(path, {{"to", 0}, {"compensate", 1}}).status == 422);
  const auto done = client.post(path, {{"to", 0}, {"compensate", true}});
  BOOST_TEST(done.status == 200);
  BOOST_TEST(done.data()["keptKeys"] == json({"user:x"}));
  BOOST_TEST(done.data()["compensatedKeys"] == json({"user:n"}));
  const auto held = client.get(one_path).data();
  BOOST_TEST(held["state"] == json({{"user:n", 0}, {"user:x", 1}}));
  // Clients of ADK refuse actions that they do not know.
  for (const auto& each : held["events"])
    BOOST_TEST(!each["actions"].contains("appliedOps"));
}

BOOST_FIXTURE_TEST_CASE(a_session_is_forked, fixture) {
  fill(3);
  const auto path = one_path + "/fork";
  const auto made = client.post(path, {{"at", 2}, {"session_id", "s2"}});
  BOOST_TEST(made.status == 200);
  BOOST_TEST(made.data()["id"] == "s2");
  BOOST_TEST(client.post(path, {{"sessionId", "s2"}}).status == 409);
  BOOST_TEST(client.post(path, {{"at", 9}}).status == 404);
  const auto events = client.get(all_path + "/s2/events").data()["events"];
  BOOST_TEST_REQUIRE(events.size() == 3U); // The last one names the origin.
  BOOST_TEST(events[1]["content"]["parts"][0]["text"] == "2");
}

BOOST_AUTO_TEST_SUITE_END()
