// Runs over HTTP: whole answers and streams, answers to open calls, clients
// that leave, and clients that are slow.

#include "troupe/agents/workflow.hpp"

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(runs)

namespace {

json message(const std::string& words = "go") {
  return {{"role", "user"}, {"parts", {{{"text", words}}}}};
}

json start(const std::string& words = "go") {
  return {{"appName", "press"},
          {"userId", "ann"},
          {"sessionId", "s1"},
          {"newMessage", message(words)}};
}

// A model that streams its words, then says all of them.
model_ptr streaming(std::vector<std::string> words) {
  return std::make_shared<made_model>(
    [words = std::move(words)](const model_request&, const model_reply& reply) {
      std::string whole;
      for (const auto& each : words) {
        model_response piece(text("{}", each));
        piece.partial = true;
        reply(piece);
        whole += each;
      }
      reply(model_response(text("{}", whole)));
    });
}

std::string text_in(const json& event) {
  return event["content"]["parts"][0].value("text", "");
}

// An agent that waits until the test lets it go on.
struct held_agent {
  std::shared_ptr<held_model> model = std::make_shared<held_model>();
  agent root = asks("root", model);
};

// Lets a waiting thread go on, also when a case fails.
struct opened_at_end {
  std::latch& held;

  ~opened_at_end() { held.count_down(); }
};

tool refund(confirmation_rule rule) {
  return tool({.name = "refund",
               .run = [](const json&, tool_context&) { return json("paid"); },
               .require_confirmation = std::move(rule)});
}

} // namespace

// The headers of the request, and the context that the model gets.
BOOST_AUTO_TEST_CASE(a_run_has_the_trace_of_its_request) {
  const std::string parent
    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
  const auto seen = std::make_shared<trace_context>();
  const auto model = std::make_shared<made_model>(
    [seen](const model_request& request, const model_reply& reply) {
      *seen = request.trace;
      reply(model_response(text("{}", "words")));
    });
  server_fixture on({{"press", asks("root", model)}});
  on.create();
  const auto trace_after
    = [&](std::vector<std::string> headers, const std::string& path) {
        auto client = on.connect();
        client.headers = std::move(headers);
        client.send_request("POST", path, to_text(start()));
        BOOST_TEST(client.read().status == 200);
        return seen->parent + " " + seen->state;
      };
  const auto named = "traceparent: " + parent;
  BOOST_TEST(trace_after({}, "/run") == " ");
  BOOST_TEST(trace_after({named}, "/run") == parent + " ");
  BOOST_TEST(
    trace_after({named, "tracestate: a=1", "TraceState: b=2"}, "/run_sse")
    == parent + " a=1,b=2");
  // Invalid ones are ignored.
  BOOST_TEST(trace_after({named, "tracestate: a"}, "/run") == parent + " ");
  BOOST_TEST(trace_after({"traceparent: 00-1-2-00", "tracestate: a=1"}, "/run")
             == " ");
  BOOST_TEST(trace_after({named, named}, "/run") == " ");
  BOOST_TEST(trace_after({"tracestate: a=1"}, "/run") == " ");
}

BOOST_AUTO_TEST_CASE(a_run_answers_with_its_events) {
  server_fixture on(
    {{"press", sequential("all", {says("a", "1"), says("b", "2")})}});
  on.create();
  const auto ran = on.client.post("/run", start());
  BOOST_TEST(ran.status == 200);
  const auto events = ran.data();
  BOOST_TEST_REQUIRE(events.size() == 2U);
  BOOST_TEST(text_in(events[0]) == "1");
  BOOST_TEST(events[1]["author"] == "b");
  BOOST_TEST(events[1]["invocationId"] == ran.header("troupe-invocation-id"));
  BOOST_TEST(on.client.get(one_path).data()["events"].size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_stream_has_a_line_for_each_event_but_the_message) {
  server_fixture on(
    {{"press", sequential("all", {says("a", "1"), says("b", "2")})}});
  on.create();
  on.client.send_request("POST", "/run_sse", to_text(start()));
  const auto head = on.client.read_head();
  BOOST_TEST(head.status == 200);
  BOOST_TEST(head.header("content-type") == "text/event-stream; charset=utf-8");
  BOOST_TEST(text_in(on.client.next_event()) == "1");
  BOOST_TEST(text_in(on.client.next_event()) == "2");
  BOOST_TEST(on.client.next_event() == nullptr);
  BOOST_TEST(on.client.get("/health").status == 200);
}

BOOST_AUTO_TEST_CASE(pieces_are_streamed_only_to_clients_that_want_them) {
  server_fixture on({{"press", asks("root", streaming({"a", "b"}))}});
  on.create();
  auto wanted = start();
  BOOST_TEST(on.client.post("/run_sse", wanted).body.find("partial")
             == std::string::npos);
  wanted["streaming"] = true;
  on.client.send_request("POST", "/run_sse", to_text(wanted));
  on.client.read_head();
  std::set<std::string> ids;
  for (const auto* words : {"a", "b"}) {
    const auto piece = on.client.next_event();
    BOOST_TEST(text_in(piece) == words);
    BOOST_TEST(piece["partial"] == true);
    ids.insert(piece["id"].get<std::string>());
  }
  BOOST_TEST(ids.size() == 1U); // As in ADK.
  BOOST_TEST(!ids.begin()->empty());
  const auto whole = on.client.next_event();
  BOOST_TEST(text_in(whole) == "ab");
  BOOST_TEST(!whole.contains("partial"));
  BOOST_TEST(on.client.next_event() == nullptr);
}

// A plugin sees the message on the thread that handles the request.
BOOST_AUTO_TEST_CASE(a_large_body_does_not_hold_up_other_connections) {
  std::latch entered(1);
  std::latch left(1);
  runtime_options options;
  options.plugins.push_back(
    {.name = "waits",
     .on_user_message = [&](const session_key&, const content&) {
       entered.count_down();
       left.wait();
       return std::optional<content>();
     }});
  server_fixture on(runtime::open(std::move(options)).value(),
                    {{"press", says("a", "1")}});
  on.create();
  auto large = on.connect();
  large.send_request("POST", "/run", to_text(start(std::string(70'000, 'x'))));
  {
    const opened_at_end end{left};
    entered.wait();
    BOOST_TEST(on.client.get("/health").status == 200);
  }
  BOOST_TEST(large.read().status == 200);
}

BOOST_AUTO_TEST_CASE(the_message_may_bring_changes_of_state) {
  server_fixture on({{"press", tells("root", "topic")}});
  on.create();
  auto wanted = start();
  wanted["state_delta"] = {{"topic", "owls"}};
  BOOST_TEST(text_in(on.client.post("/run", wanted).data()[0]) == "\"owls\"");
  wanted["state_delta"] = nullptr;
  BOOST_TEST(on.client.post("/run", wanted).status == 200);
}

BOOST_AUTO_TEST_CASE(a_run_that_cannot_start_is_refused_with_a_status) {
  server_fixture on({{"press", says("a", "1")}, {"other", says("b", "2")}});
  for (const auto* path : {"/run", "/run_sse"}) {
    const auto missing = on.client.post(path, start());
    BOOST_TEST(missing.status == 404);
    BOOST_TEST(missing.data() == json({{"detail", "Session not found: s1"}}));
    auto unknown = start();
    unknown["appName"] = "none";
    BOOST_TEST(on.client.post(path, unknown).status == 404);
    auto incomplete = start();
    incomplete.erase("newMessage");
    incomplete.erase("userId");
    const auto refused = on.client.post(path, incomplete);
    BOOST_TEST(refused.status == 422);
    BOOST_TEST(refused.data()["detail"].size() == 2U);
    auto empty = start();
    empty["newMessage"] = {{"parts", json::array()}};
    on.create();
    BOOST_TEST(on.client.post(path, empty).status == 400);
    on.client.erase(one_path);
  }
}

BOOST_AUTO_TEST_CASE(a_failed_run_ends_with_a_line_that_tells_the_error) {
  server_fixture on(
    {{"press", sequential("all", {says("a", "1"), fails("broken")})}});
  on.create();
  on.client.send_request("POST", "/run_sse", to_text(start()));
  on.client.read_head();
  BOOST_TEST(text_in(on.client.next_event()) == "1");
  const auto last = on.client.next_event();
  BOOST_TEST(last["error"].get<std::string>().starts_with("callback_failed: "));
  BOOST_TEST(last["error_details"]["error_type"] == "callback_failed");
  BOOST_TEST(on.client.next_event() == nullptr);
  const auto whole = on.client.post("/run", start());
  BOOST_TEST(whole.status == 500);
  BOOST_TEST(whole.header("troupe-error") == "callback_failed");
}

BOOST_AUTO_TEST_CASE(a_question_is_answered_as_adks_page_does) {
  const auto model
    = scripted({{"root", {calling("refund"), {.text = "done"}}}});
  server_fixture on({{"press", asks("root", model, {refund(true)})}});
  on.create();
  const auto asked = on.client.post("/run", start()).data();
  json question;
  json holder;
  for (const auto& each : asked)
    for (const auto& part :
         each.value("content", json::object()).value("parts", json::array()))
      if (part.contains("functionCall")
          && part.at("functionCall")["name"] == "adk_request_confirmation") {
        question = part.at("functionCall");
        holder = each;
      }
  BOOST_TEST_REQUIRE(question.is_object());
  BOOST_TEST(holder["longRunningToolIds"] == json::array({question["id"]}));
  const auto open = on.client.get(one_path + "/open-calls").data()["openCalls"];
  BOOST_TEST_REQUIRE(open.size() == 1U);
  BOOST_TEST(open[0]["id"] == question["id"]);
  BOOST_TEST(open[0]["tool"] == "refund");

  auto answer = start();
  answer["newMessage"]["parts"]
    = {{{"functionResponse",
         {{"id", question["id"]},
          {"name", "adk_request_confirmation"},
          {"response", {{"confirmed", true}, {"payload", {{"euros", 5}}}}}}}}};
  answer["functionCallEventId"] = holder["id"];
  answer["streaming"] = false;
  answer["stateDelta"] = nullptr;
  const auto events = on.client.post("/run", answer).data();
  BOOST_TEST(text_in(events.back()) == "done");
  BOOST_TEST(on.client.get(one_path + "/open-calls").data()["openCalls"]
             == json::array());
}

BOOST_AUTO_TEST_CASE(a_node_of_a_workflow_asks) {
  auto schema = json::object();
  schema["type"] = "integer";
  const json_schema number(std::move(schema));
  server_fixture on({{"press",
                      workflow({.name = "press",
                                .nodes = {{.name = "a",
                                           .work =
                                             [number](node_context& context) {
                                               return context.ask("How many?",
                                                                  number);
                                             }}},
                                .edges = {{"START", "a"}}})}});
  on.create();
  const auto asked = on.client.post("/run", start()).data();
  const auto open = on.client.get(one_path + "/open-calls").data()["openCalls"];
  BOOST_TEST_REQUIRE(open.size() == 1U);
  BOOST_TEST(open[0]["tool"] == "adk_request_input");
  BOOST_TEST(open[0]["args"]["message"] == "How many?");
  const auto ids = json::array({open[0]["id"]});
  BOOST_TEST(std::ranges::any_of(asked, [&ids](const json& each) {
    return each.value("longRunningToolIds", json()) == ids
           && each["content"]["parts"][0]["functionCall"]["name"]
                == "adk_request_input";
  }));
  const auto give = [&](const json& response) {
    auto answer = start();
    answer["newMessage"]["parts"] = {{{"functionResponse",
                                       {{"id", open[0]["id"]},
                                        {"name", "adk_request_input"},
                                        {"response", response}}}}};
    return on.client.post("/run", answer);
  };
  BOOST_TEST(give({{"result", "many"}}).status == 400);
  const auto events = give({{"response", "3"}}).data();
  BOOST_TEST(events.back().at("output") == 3);
}

BOOST_AUTO_TEST_CASE(an_event_with_text_and_a_file_is_sent_in_two_lines) {
  const auto saves
    = custom("root", [](invocation_context& context) -> agent_run {
        std::string name = "a.txt";
        part file("owls");
        (co_await context.artifacts().save(name, file)).value();
        co_await context.emit(text("saved"));
      });
  server_fixture on({{"press", saves}});
  on.create();
  on.client.send_request("POST", "/run_sse", to_text(start()));
  on.client.read_head();
  const auto said = on.client.next_event();
  const auto files = on.client.next_event();
  BOOST_TEST(text_in(said) == "saved");
  BOOST_TEST(said["actions"]["artifactDelta"] == json::object());
  BOOST_TEST(files["id"] == said["id"]);
  BOOST_TEST(!files.contains("content"));
  BOOST_TEST(files["actions"]["artifactDelta"] == json({{"a.txt", 0}}));
  BOOST_TEST(on.client.next_event() == nullptr);
  auto once = start();
  once["functionCallEventId"] = "e";
  on.client.send_request("POST", "/run_sse", to_text(once));
  on.client.read_head();
  BOOST_TEST(on.client.next_event()["actions"]["artifactDelta"]
             == json({{"a.txt", 1}}));
  BOOST_TEST(on.client.next_event() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_run_goes_on_when_its_client_leaves) {
  const held_agent held;
  server_fixture on({{"press", held.root}});
  on.create();
  std::size_t count = 0;
  for (const auto* path : {"/run", "/run_sse"}) {
    auto client = on.connect();
    client.send_request("POST", path, to_text(start()));
    held.model->asked.await(++count);
    client.close();
    // Gives the server time to see the end of the connection; the run must go
    // on in either order.
    on.client.get("/health");
    held.model->answer("done");
  }
  auto news = on.runtime.sessions().follow({"press", "ann", "s1"}, {.from = 0});
  std::vector<std::string> texts;
  while (texts.size() < 4)
    texts.push_back(news.next().value()->text());
  BOOST_TEST(texts == std::vector<std::string>({"go", "done", "go", "done"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_client_that_sends_no_more_still_gets_its_answer) {
  const held_agent held;
  server_fixture on({{"press", held.root}});
  on.create();
  std::size_t count = 0;
  for (const auto* path : {"/run", "/run_sse"}) {
    auto client = on.connect();
    client.send_request("POST", path, to_text(start()));
    held.model->asked.await(++count);
    client.finish_sending();
    // The server sees the end of that half before the answer.
    for (int round = 0; round < 3; ++round)
      on.client.get("/health");
    held.model->answer("done");
    const auto answer = client.read();
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(answer.body.find("done") != std::string::npos);
    BOOST_TEST(client.is_closed_within(10s));
  }
}

BOOST_AUTO_TEST_CASE(a_run_ends_with_its_client_if_the_request_says_so) {
  std::atomic<int> cancelled = 0;
  for (const auto* path : {"/run", "/run_sse"}) {
    const held_agent held;
    server_fixture on({{"press", held.root}});
    on.create();
    auto wanted = start();
    wanted["onDisconnect"] = "cancel";
    auto client = on.connect();
    client.send_request("POST", path, to_text(wanted));
    held.model->asked.await(1);
    client.close();
    while (!on.client.get(one_path + "/runs").data()["runs"].empty())
      std::this_thread::yield();
    ++cancelled;
  }
  BOOST_TEST(cancelled == 2);
  server_fixture on({{"press", says("a", "1")}});
  auto wrong = start();
  wrong["onDisconnect"] = "stay";
  BOOST_TEST(on.client.post("/run", wrong).status == 422);
}

BOOST_AUTO_TEST_CASE(a_run_is_cancelled_by_its_id) {
  const held_agent held;
  server_fixture on({{"press", held.root}});
  on.create();
  auto client = on.connect();
  client.send_request("POST", "/run_sse", to_text(start()));
  held.model->asked.await(1);
  const auto head = client.read_head();
  const auto id = head.header("troupe-invocation-id");
  BOOST_TEST(on.client.get(one_path + "/runs").data()
             == json({{"runs", json::array({id})}}));
  const auto path = one_path + "/runs/" + id + "/cancel";
  BOOST_TEST(on.client.ask("POST", path).status == 202);
  BOOST_TEST(client.next_event()["error_details"]["error_type"] == "cancelled");
  BOOST_TEST(client.next_event() == nullptr);
  BOOST_TEST(on.client.ask("POST", path).status == 404);
}

BOOST_AUTO_TEST_CASE(a_rewind_cancels_runs_if_it_is_told_to) {
  const held_agent held;
  server_fixture on({{"press", held.root}});
  on.create();
  auto client = on.connect();
  client.send_request("POST", "/run_sse", to_text(start()));
  held.model->asked.await(1);
  client.read_head();
  const auto path = one_path + "/rewind";
  BOOST_TEST(on.client.post(path, {{"to", 0}}).status == 409);
  const auto done = on.client.post(path, {{"to", 0}, {"cancelRuns", true}});
  BOOST_TEST(done.status == 200);
  BOOST_TEST(done.data()["to"] == 0);
  BOOST_TEST(client.next_event()["error_details"]["error_type"] == "cancelled");
}

BOOST_AUTO_TEST_CASE(blanks_around_ids_name_the_same_session) {
  const held_agent held;
  server_fixture on({{"press", held.root}});
  on.create();
  auto wanted = start();
  wanted["appName"] = " press";
  wanted["userId"] = "ann ";
  wanted["sessionId"] = "\ts1";
  auto client = on.connect();
  client.send_request("POST", "/run_sse", to_text(wanted));
  held.model->asked.await(1);
  const auto id = client.read_head().header("troupe-invocation-id");
  const json runs{{"runs", json::array({id})}};
  BOOST_TEST(on.client.get(one_path + "/runs").data() == runs);
  BOOST_TEST(
    on.client.get("/apps/press%20/users/%20ann/sessions/s1%20/runs").data()
    == runs);
  held.model->answer("done");
}

BOOST_AUTO_TEST_CASE(a_client_that_reads_nothing_does_not_hold_up_its_run) {
  const auto much = custom(
    "root", [](invocation_context& context) -> agent_run {
      for (int count = 0; count < 100; ++count)
        co_await context.emit(text("{} {}", count, std::string(200'000, 'x')));
      co_await context.emit(text("100 end"));
    });
  server_options options;
  options.limits.stream_bytes_max = 300'000;
  server_fixture on({{"press", much}}, options);
  on.create();
  auto slow = on.connect();
  slow.send_request("POST", "/run_sse", to_text(start()));
  auto news = on.runtime.sessions().follow({"press", "ann", "s1"}, {.from = 0});
  while (news.next().value()->text() != "100 end")
    continue;
  slow.read_head();
  // Events that did not fit were read from the session.
  for (int count = 0; count <= 100; ++count)
    BOOST_TEST(
      text_in(slow.next_event()).starts_with(fmt::format("{} ", count)));
  BOOST_TEST(slow.next_event() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_slow_client_loses_pieces_and_no_stored_event) {
  const auto model = std::make_shared<made_model>(
    [](const model_request&, const model_reply& reply) {
      model_response piece(text("{}", std::string(20'000, 'x')));
      piece.partial = true;
      for (int count = 0; count < 1'000; ++count)
        reply(piece);
      reply(model_response(text("whole")));
    });
  server_fixture on({{"press", asks("root", model)}});
  on.create();
  auto wanted = start();
  wanted["streaming"] = true;
  auto slow = on.connect();
  slow.send_request("POST", "/run_sse", to_text(wanted));
  auto news = on.runtime.sessions().follow({"press", "ann", "s1"}, {.from = 0});
  while (news.next().value()->text() != "whole")
    continue;
  slow.read_head();
  int count = 0;
  auto said = slow.next_event();
  for (; said.contains("partial"); said = slow.next_event())
    ++count;
  BOOST_TEST(count < 1'000);
  BOOST_TEST(text_in(said) == "whole");
  BOOST_TEST(slow.next_event() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_slow_client_is_told_that_its_events_were_removed) {
  // The server reads up to 256 events at once, which it sends also after the
  // removal. There are more, and sockets keep some MiB of them.
  const auto much
    = custom("root", [](invocation_context& context) -> agent_run {
        for (int count = 0; count < 1'000; ++count)
          co_await context.emit(text("{}", std::string(40'000, 'x')));
        co_await context.emit(text("end"));
      });
  server_fixture on({{"press", much}});
  on.create();
  auto slow = on.connect();
  slow.send_request("POST", "/run_sse", to_text(start()));
  auto news = on.runtime.sessions().follow({"press", "ann", "s1"}, {.from = 0});
  while (news.next().value()->text() != "end")
    continue;
  on.client.erase(one_path);
  slow.read_head();
  auto last = slow.next_event();
  while (last.contains("content"))
    last = slow.next_event();
  BOOST_TEST(last["error_details"]["error_type"] == "not_found");
  BOOST_TEST(slow.next_event() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_client_that_accepts_nothing_is_closed) {
  const auto much
    = custom("root", [](invocation_context& context) -> agent_run {
        for (int count = 0; count < 100; ++count)
          co_await context.emit(text("{}", std::string(200'000, 'x')));
        co_await context.sleep(1h);
      });
  server_options options;
  options.limits.write_time = 100ms;
  server_fixture on({{"press", much}}, options);
  on.create();
  auto slow = on.connect();
  auto wanted = start();
  wanted["onDisconnect"] = "cancel";
  slow.send_request("POST", "/run_sse", to_text(wanted));
  slow.read_head();
  // The run ends when the server has closed the connection.
  while (!on.client.get(one_path + "/runs").data()["runs"].empty())
    std::this_thread::yield();
  // Its bytes on the way are still there, but not the whole answer.
  BOOST_CHECK_THROW(while (!slow.next_event().is_null()) continue,
                    std::runtime_error);
}

BOOST_AUTO_TEST_CASE(a_stopped_server_ends_runs_as_cancelled_after_the_grace) {
  const held_agent held;
  server_fixture on(
    {{"press", sequential("all", {says("a", "1"), held.root})}});
  on.create();
  on.client.send_request("POST", "/run_sse", to_text(start()));
  on.client.read_head();
  BOOST_TEST(text_in(on.client.next_event()) == "1");
  held.model->asked.await(1);
  on.server.stop(50ms);
  BOOST_TEST(on.client.next_event()["error_details"]["error_type"]
             == "cancelled");
  BOOST_TEST(on.client.next_event() == nullptr);
  BOOST_TEST(on.client.is_closed_within(10s));
}

BOOST_AUTO_TEST_SUITE_END()
