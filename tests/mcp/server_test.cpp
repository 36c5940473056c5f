// An agent as the tool of an MCP server: the messages of a client over pipes,
// and the answers.

#include "troupe/mcp/mcp_server.hpp"
#include "troupe/stores/artifact_store.hpp"

#include "../outcome.hpp"
#include "../runtime/agent_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(mcp_server, *boost::unit_test::timeout(60))

namespace {

namespace data = boost::unit_test::data;

struct pipe_ends {
  pipe_ends() {
    std::array<int, 2> made{};
    BOOST_REQUIRE(::pipe2(made.data(), O_CLOEXEC) == 0);
    read_end = made[0];
    write_end = made[1];
  }

  ~pipe_ends() {
    close_end(read_end);
    close_end(write_end);
  }

  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;

  static void close_end(int& end) {
    if (end >= 0)
      ::close(end);
    end = -1;
  }

  int read_end = -1;
  int write_end = -1;
};

// A server on its own thread, and its client.
class served {
public:
  explicit served(const agent& root, mcp_server_options options = {})
    : on(runtime::open().value()) {
    options.input = to_server_.read_end;
    options.output = from_server_.write_end;
    ended_ = std::async(std::launch::async, [this, root, options] {
      return serve_agent(on, root, options, stop.get_token());
    });
  }

  ~served() {
    stop.request_stop();
    close_input();
    close_output();
  }

  served(const served&) = delete;
  served& operator=(const served&) = delete;

  void send_line(std::string line) const {
    line += '\n';
    std::string_view left = line;
    while (!left.empty()) {
      const auto count
        = ::write(to_server_.write_end, left.data(), left.size());
      BOOST_REQUIRE(count > 0);
      left.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void send(const json& id, const std::string& method, json params = {}) const {
    json message{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}};
    if (!params.is_null())
      message["params"] = std::move(params);
    send_line(to_text(message));
  }

  // The next message of the server; null at the end.
  json receive() {
    for (;;) {
      const auto end = buffer_.find('\n');
      if (end != std::string::npos) {
        auto line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return parse_json(line).value();
      }
      std::array<char, 4'096> piece;
      const auto count
        = ::read(from_server_.read_end, piece.data(), piece.size());
      if (count <= 0)
        return nullptr;
      buffer_.append(piece.data(), static_cast<std::size_t>(count));
    }
  }

  json ask(const json& id, const std::string& method, json params = {}) {
    send(id, method, std::move(params));
    return receive();
  }

  void initialize() {
    BOOST_REQUIRE(
      ask("init",
          "initialize",
          {{"protocolVersion", "2025-11-25"}, {"capabilities", json::object()}})
        .contains("result"));
    send_line(R"({"jsonrpc": "2.0", "method": "notifications/initialized"})");
  }

  void send_call(const json& id, json args, json meta = {}) const {
    json params{{"name", "writer"}, {"arguments", std::move(args)}};
    if (!meta.is_null())
      params["_meta"] = std::move(meta);
    send(id, "tools/call", std::move(params));
  }

  json call(json args) {
    send_call("call", std::move(args));
    return receive()["result"];
  }

  void close_input() { pipe_ends::close_end(to_server_.write_end); }

  void close_output() { pipe_ends::close_end(from_server_.read_end); }

  // Waits for the server's end. `receive` then returns what is left.
  result<void> end() {
    auto outcome = ended_.get();
    pipe_ends::close_end(from_server_.write_end);
    return outcome;
  }

  int input() const noexcept { return to_server_.write_end; }

  runtime on;
  std::stop_source stop;

private:
  pipe_ends to_server_;
  pipe_ends from_server_;
  std::string buffer_;
  std::future<result<void>> ended_;
};

agent writer(model_ptr model, std::vector<tool> tools = {}) {
  return llm({.name = "writer",
              .description = "Writes.",
              .model = std::move(model),
              .tools = std::move(tools)});
}

agent saying_back() {
  return writer(scripted({{"writer", {{.text = "You said ${input}."}}}}));
}

json stateless(json more = json::object()) {
  more["io.modelcontextprotocol/protocolVersion"] = "2026-07-28";
  more["io.modelcontextprotocol/clientCapabilities"] = json::object();
  return {{"_meta", std::move(more)}};
}

std::string text_in(const json& result) {
  return result["content"][0]["text"];
}

bool has_failed(const json& result) {
  return result.value("isError", false);
}

int code_in(const json& message) {
  return message["error"]["code"];
}

} // namespace

BOOST_DATA_TEST_CASE(
  each_handshake_version_is_spoken,
  data::make({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}),
  version) {
  served by(saying_back());
  const auto answer
    = by.ask(0,
             "initialize",
             {{"protocolVersion", version}, {"capabilities", json::object()}});
  BOOST_TEST(answer["id"] == 0);
  BOOST_TEST(answer["result"]["protocolVersion"] == version);
  BOOST_TEST(answer["result"]["serverInfo"]["name"] == "writer");
  BOOST_TEST(answer["result"]["capabilities"].contains("tools"));
}

BOOST_AUTO_TEST_CASE(an_unknown_version_is_answered_with_the_newest_one) {
  served by(saying_back());
  const auto answer
    = by.ask(0, "initialize", {{"protocolVersion", "1999-01-01"}});
  BOOST_TEST(answer["result"]["protocolVersion"] == "2025-11-25");
}

BOOST_AUTO_TEST_CASE(the_tool_has_the_name_and_the_words_of_the_agent) {
  served by(saying_back());
  by.initialize();
  const auto tools = by.ask(1, "tools/list")["result"]["tools"];
  BOOST_REQUIRE(tools.size() == 1U);
  BOOST_TEST(tools[0]["name"] == "writer");
  BOOST_TEST(tools[0]["description"] == "Writes.");
  const auto& schema = tools[0]["inputSchema"];
  BOOST_TEST(schema["required"] == json::array({"request"}));
  BOOST_TEST(schema["properties"].contains("session"));
  BOOST_TEST(!tools[0].contains("outputSchema"));
  BOOST_TEST(code_in(by.ask(2, "tools/list", {{"cursor", "x"}})) == -32602);
}

BOOST_AUTO_TEST_CASE(a_call_runs_the_agent) {
  served by(saying_back());
  by.initialize();
  const auto result = by.call({{"request", "owls"}});
  BOOST_TEST(text_in(result) == "You said owls.");
  BOOST_TEST(result["content"].size() == 1U);
  BOOST_TEST(!has_failed(result));
  const auto session = result["_meta"]["troupe/session"];
  auto seen
    = by.on.sessions().get({"writer", "user", session.get<std::string>()});
  BOOST_TEST(seen.value().events().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_workflow_answers_with_its_last_words) {
  served by(sequential("writer", {says("first", "a"), says("last", "b")}));
  by.initialize();
  BOOST_TEST(text_in(by.call({{"request", "go"}})) == "b");
}

BOOST_AUTO_TEST_CASE(the_stateless_version_needs_no_handshake) {
  served by(saying_back());
  const auto found = by.ask("d", "server/discover", stateless())["result"];
  BOOST_TEST(found["supportedVersions"] == json::array({"2026-07-28"}));
  BOOST_TEST(found["resultType"] == "complete");
  BOOST_TEST(found["capabilities"].contains("tools"));
  const auto listed = by.ask(1, "tools/list", stateless())["result"];
  BOOST_TEST(listed["tools"][0]["name"] == "writer");
  BOOST_TEST(listed["resultType"] == "complete");
  BOOST_TEST(listed.contains("ttlMs"));
  auto params = stateless();
  params["name"] = "writer";
  params["arguments"] = {{"request", "owls"}};
  const auto result = by.ask(2, "tools/call", params)["result"];
  BOOST_TEST(text_in(result) == "You said owls.");
  BOOST_TEST(result["resultType"] == "complete");
  BOOST_TEST(code_in(by.ask(3, "ping", stateless())) == -32601);
}

BOOST_AUTO_TEST_CASE(another_version_is_refused_with_the_supported_ones) {
  served by(saying_back());
  auto params = stateless();
  params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2030-01-01";
  const auto answer = by.ask(1, "tools/list", params);
  BOOST_TEST(code_in(answer) == -32022);
  BOOST_TEST(answer["error"]["data"]["supported"]
             == json::array({"2026-07-28"}));
  BOOST_TEST(answer["error"]["data"]["requested"] == "2030-01-01");
  params = stateless();
  params["_meta"].erase("io.modelcontextprotocol/clientCapabilities");
  BOOST_TEST(code_in(by.ask(2, "tools/list", params)) == -32602);
}

BOOST_AUTO_TEST_CASE(a_request_before_initialize_is_refused) {
  served by(saying_back());
  BOOST_TEST(code_in(by.ask(1, "tools/list")) == -32602);
  BOOST_TEST(code_in(by.ask(2, "server/discover")) == -32602);
  BOOST_TEST(by.ask(3, "ping")["result"] == json::object());
  BOOST_TEST(code_in(by.ask(4, "initialize")) == -32602);
  by.initialize();
  BOOST_TEST(by.ask(5, "ping")["result"] == json::object());
  BOOST_TEST(
    code_in(by.ask(6, "initialize", {{"protocolVersion", "2025-11-25"}}))
    == -32600);
}

BOOST_AUTO_TEST_CASE(wrong_messages_are_refused_by_code) {
  served by(saying_back());
  by.initialize();
  const auto refused = [&by](const std::string& line) {
    by.send_line(line);
    const auto answer = by.receive();
    BOOST_TEST(answer["id"].is_null());
    return code_in(answer);
  };
  BOOST_TEST(refused("{\"jsonrpc\"") == -32700);
  BOOST_TEST(refused("\xff") == -32700);
  BOOST_TEST(refused("[]") == -32600);
  BOOST_TEST(refused("7") == -32600);
  BOOST_TEST(refused("{}") == -32600);
  BOOST_TEST(refused(R"({"jsonrpc": "2.0", "id": null, "method": "ping"})")
             == -32600);
  BOOST_TEST(refused(R"({"jsonrpc": "2.0", "id": 1.5, "method": "ping"})")
             == -32600);
  by.send_line(R"({"id": 1, "method": "ping"})");
  BOOST_TEST(code_in(by.receive()) == -32600);
  BOOST_TEST(code_in(by.ask(2, "ping", json::array())) == -32602);
  BOOST_TEST(code_in(by.ask(3, "resources/list")) == -32601);
  BOOST_TEST(code_in(by.ask(4, "server/discover")) == -32601);
  // Answers, unknown notifications and blank lines are dropped.
  by.send_line(R"({"jsonrpc": "2.0", "id": 9, "result": {}})");
  by.send_line(R"({"jsonrpc": "2.0", "method": "notifications/none"})");
  by.send_line(R"({"jsonrpc": "2.0", "method": "notifications/cancelled",)"
               R"( "params": {"requestId": 77}})");
  by.send_line(" ");
  BOOST_TEST(by.ask(5, "ping")["id"] == 5);
}

BOOST_AUTO_TEST_CASE(wrong_calls_are_refused) {
  served by(saying_back());
  by.initialize();
  const auto code = [&by](json params) {
    return code_in(by.ask(1, "tools/call", std::move(params)));
  };
  BOOST_TEST(code(json::object()) == -32602);
  BOOST_TEST(code({{"name", "reader"}}) == -32602);
  BOOST_TEST(code({{"name", "writer"}, {"arguments", 7}}) == -32602);
  BOOST_TEST(code({{"name", "writer"},
                   {"arguments", {{"request", "x"}}},
                   {"_meta", {{"progressToken", 1.5}}}})
             == -32602);
  // The model of the client sees these.
  for (const auto& args : {json::object(),
                           json{{"request", 7}},
                           json{{"request", "x"}, {"other", 1}}}) {
    const auto result = by.call(args);
    BOOST_TEST(has_failed(result));
    BOOST_TEST(text_in(result).starts_with("invalid_argument: "));
  }
  const auto named
    = by.call({{"request", "x"}, {"session", std::string(1'000, 's')}});
  BOOST_TEST(has_failed(named));
}

BOOST_AUTO_TEST_CASE(a_long_message_is_skipped) {
  served by(saying_back(), {.message_bytes_max = 1'000});
  by.initialize();
  by.send_line(std::string(300'000, ' ') + "7");
  BOOST_TEST(code_in(by.receive()) == -32600);
  by.send_line(std::string(1'001, '1'));
  BOOST_TEST(code_in(by.receive()) == -32600);
  BOOST_TEST(by.ask(1, "ping")["id"] == 1);
}

namespace {

// An agent whose tool notes the trace of each call.
agent noting_traces(std::vector<trace_context>& seen) {
  return writer(
    scripted({{"writer", {calling("look", {{"at", "owls"}}), {.text = "ok"}}}}),
    {tool_of("look", [&seen](const json&, tool_context& context) {
      seen.push_back(context.trace());
      return json(1);
    })});
}

} // namespace

BOOST_AUTO_TEST_CASE(a_call_belongs_to_the_trace_of_its_client) {
  const std::string parent
    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  std::vector<trace_context> seen;
  served by(noting_traces(seen));
  by.initialize();
  by.send_call(
    1, {{"request", "go"}}, {{"traceparent", parent}, {"tracestate", "v=1"}});
  BOOST_TEST(by.receive()["id"] == 1);
  BOOST_REQUIRE(seen.size() == 1);
  BOOST_TEST(seen.front().parent == parent);
  BOOST_TEST(seen.front().state == "v=1");
}

BOOST_AUTO_TEST_CASE(a_malformed_trace_of_a_client_is_ignored) {
  std::vector<trace_context> seen;
  served by(noting_traces(seen));
  by.initialize();
  by.send_call(1, {{"request", "go"}}, {{"traceparent", 7}});
  const auto answer = by.receive();
  BOOST_TEST(answer["id"] == 1);
  BOOST_TEST(!answer["result"].contains("isError"));
  BOOST_REQUIRE(seen.size() == 1);
  BOOST_TEST((seen.front() == trace_context()));
}

BOOST_AUTO_TEST_CASE(progress_names_agents_and_tools) {
  served by(writer(
    scripted({{"writer", {calling("look", {{"at", "owls"}}), {.text = "ok"}}}}),
    {tool_of("look", [](const json&, tool_context&) { return json(1); })}));
  by.initialize();
  by.send_call(1, {{"request", "go"}}, {{"progressToken", "t"}});
  std::vector<std::string> told;
  json message;
  for (message = by.receive(); message.contains("method");
       message = by.receive()) {
    BOOST_TEST(message["method"] == "notifications/progress");
    BOOST_TEST(message["params"]["progressToken"] == "t");
    told.push_back(message["params"]["message"]);
    BOOST_TEST(message["params"]["progress"] == told.size());
  }
  BOOST_TEST(told
               == (std::vector<std::string>{"writer calls look",
                                            "writer has the result of look",
                                            "writer answers"}),
             boost::test_tools::per_element());
  BOOST_TEST(text_in(message["result"]) == "ok");
}

BOOST_AUTO_TEST_CASE(calls_run_at_the_same_time) {
  const auto model = std::make_shared<held_model>();
  served by(writer(model), {.calls_max = 2});
  by.initialize();
  by.send_call(1, {{"request", "a"}});
  by.send_call(2, {{"request", "b"}});
  model->asked.await(2);
  // Both are under way.
  BOOST_TEST(code_in(by.ask(1, "ping")) == -32600);
  BOOST_TEST(by.ask(4, "ping")["id"] == 4);
  by.send_call(5, {{"request", "c"}});
  const auto refused = by.receive();
  BOOST_TEST(refused["id"] == 5);
  BOOST_TEST(has_failed(refused["result"]));
  BOOST_TEST(text_in(refused["result"]).starts_with("busy: "));
  model->answer("done");
  for (int count = 0; count < 2; ++count)
    BOOST_TEST(text_in(by.receive()["result"]) == "done");
  by.send_call(6, {{"request", "c"}});
  model->asked.await(3);
  model->answer("again");
  BOOST_TEST(text_in(by.receive()["result"]) == "again");
}

BOOST_AUTO_TEST_CASE(a_cancelled_call_is_not_answered) {
  const auto model = std::make_shared<held_model>();
  served by(writer(model));
  by.initialize();
  by.send_call("long", {{"request", "a"}});
  model->asked.await(1);
  by.send_line(R"({"jsonrpc": "2.0", "method": "notifications/cancelled",)"
               R"( "params": {"requestId": "long"}})");
  by.close_input();
  BOOST_TEST(reason_of(by.end()) == "");
  BOOST_TEST(model->requests().front().stop.stop_requested());
  BOOST_TEST(by.receive().is_null());
}

BOOST_AUTO_TEST_CASE(the_end_of_the_input_lets_calls_finish) {
  const auto model = std::make_shared<held_model>();
  served by(writer(model));
  by.initialize();
  by.send_call(1, {{"request", "a"}});
  by.close_input();
  model->asked.await(1);
  model->answer("done");
  BOOST_TEST(text_in(by.receive()["result"]) == "done");
  BOOST_TEST(reason_of(by.end()) == "");
}

BOOST_AUTO_TEST_CASE(calls_are_cancelled_after_the_grace_period) {
  const auto model = std::make_shared<held_model>();
  served by(writer(model), {.grace = std::chrono::milliseconds(0)});
  by.initialize();
  by.send_call(1, {{"request", "a"}});
  model->asked.await(1);
  by.close_input();
  const auto result = by.receive()["result"];
  BOOST_TEST(has_failed(result));
  BOOST_TEST(text_in(result).find("the server ends") != std::string::npos);
  BOOST_TEST(reason_of(by.end()) == "");
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_server) {
  served by(saying_back());
  by.initialize();
  by.stop.request_stop();
  BOOST_TEST(reason_of(by.end()) == "");
}

BOOST_AUTO_TEST_CASE(a_stop_after_the_input_cancels_calls_at_once) {
  const auto model = std::make_shared<held_model>();
  served by(writer(model), {.grace = std::chrono::hours(1)});
  by.initialize();
  by.send_call(1, {{"request", "a"}});
  by.close_input();
  model->asked.await(1);
  by.stop.request_stop();
  // Either the stop came first, and the grace period begins with it, or it has
  // shortened that of the input's end.
  model->answer("late");
  BOOST_TEST(by.receive().contains("result"));
  BOOST_TEST(reason_of(by.end()) == "");
}

BOOST_AUTO_TEST_CASE(a_client_that_closes_the_output_ends_the_server) {
  const auto model = std::make_shared<held_model>();
  served by(writer(model));
  by.initialize();
  by.send_call(1, {{"request", "a"}});
  model->asked.await(1);
  by.close_output();
  by.send(2, "ping");
  BOOST_TEST(code_of(by.end()) == "cancelled");
  BOOST_TEST(model->requests().front().stop.stop_requested());
}

BOOST_AUTO_TEST_CASE(a_client_that_does_not_read_is_not_read) {
  served by(saying_back());
  BOOST_REQUIRE(::fcntl(by.input(), F_SETFL, O_NONBLOCK) == 0);
  const std::string line = R"({"jsonrpc": "2.0", "id": 1, "method": "ping"})"
                           "\n";
  // The answers are about as long as the requests, and the queue holds 1 MiB.
  constexpr std::size_t bytes_max = std::size_t{8} << 20U;
  std::size_t sent = 0;
  while (sent < bytes_max) {
    pollfd waiting{by.input(), POLLOUT, 0};
    if (::poll(&waiting, 1, 2'000) == 0)
      break;
    const auto count = ::write(by.input(), line.data(), line.size());
    if (count > 0)
      sent += static_cast<std::size_t>(count);
  }
  BOOST_TEST(sent < bytes_max);
}

BOOST_AUTO_TEST_CASE(a_failed_run_is_a_failed_result) {
  scripted_reply broken;
  broken.failure = "no such luck";
  served by(writer(scripted({{"writer", {broken}}})));
  by.initialize();
  const auto result = by.call({{"request", "go"}});
  BOOST_TEST(has_failed(result));
  BOOST_TEST(text_in(result).starts_with("model_failed: "));
  BOOST_TEST(text_in(result).find("no such luck") != std::string::npos);
}

// A server of the library may fail with any bytes.
BOOST_AUTO_TEST_CASE(a_failure_that_is_no_utf_8_is_shown) {
  scripted_reply broken;
  broken.failure = "no \xff luck";
  served by(writer(scripted({{"writer", {broken}}})));
  by.initialize();
  const auto result = by.call({{"request", "go"}});
  BOOST_TEST(has_failed(result));
  BOOST_TEST(text_in(result).find("no \xEF\xBF\xBD luck") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_blocked_answer_is_a_failed_result) {
  scripted_reply blocked;
  blocked.content = content("model", {});
  blocked.extra = json{{"errorCode", "SAFETY"}, {"errorMessage", "too rude"}};
  served by(writer(scripted({{"writer", {blocked}}})));
  by.initialize();
  const auto result = by.call({{"request", "go"}});
  BOOST_TEST(has_failed(result));
  BOOST_TEST(text_in(result).find("SAFETY: too rude") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_output_schema_makes_the_answer_structured) {
  const json schema{{"type", "object"},
                    {"properties", {{"n", {{"type", "integer"}}}}},
                    {"required", json::array({"n"})}};
  served by(llm(
    {.name = "writer",
     .model
     = scripted({{"writer",
                  {{.text = R"({"n": 7})"}, {.text = ""}, {.text = "seven"}}}}),
     .output_schema = json_schema(schema)}));
  by.initialize();
  BOOST_TEST(by.ask(1, "tools/list")["result"]["tools"][0]["outputSchema"]
             == schema);
  const auto result = by.call({{"request", "go"}});
  BOOST_TEST(result["structuredContent"] == json({{"n", 7}}));
  BOOST_TEST(text_in(result) == R"({"n": 7})");
  BOOST_TEST(has_failed(by.call({{"request", "go"}})));
  BOOST_TEST(has_failed(by.call({{"request", "go"}})));
}

BOOST_AUTO_TEST_CASE(an_input_schema_is_that_of_the_tool) {
  const json schema{{"type", "object"},
                    {"properties", {{"city", {{"type", "string"}}}}},
                    {"required", json::array({"city"})}};
  served by(llm({.name = "writer",
                 .model = scripted({{"writer", {{.text = "${input}"}}}}),
                 .input_schema = json_schema(schema)}));
  by.initialize();
  BOOST_TEST(by.ask(1, "tools/list")["result"]["tools"][0]["inputSchema"]
             == schema);
  BOOST_TEST(text_in(by.call({{"city", "Köln"}})) == R"({"city":"Köln"})");
  BOOST_TEST(has_failed(by.call({{"town", "Köln"}})));
}

BOOST_AUTO_TEST_CASE(a_named_session_goes_on) {
  const auto count = std::make_shared<made_model>(
    [](model_request request, model_reply reply) {
      reply(model_response(text("{}", request.contents.size())));
    });
  served by(writer(count));
  by.initialize();
  const auto said = [&by](json args) { return text_in(by.call(args)); };
  BOOST_TEST(said({{"request", "a"}, {"session", "s1"}}) == "1");
  BOOST_TEST(said({{"request", "b"}, {"session", "s1"}}) == "3");
  BOOST_TEST(said({{"request", "c"}}) == "1");
  BOOST_TEST(said({{"request", "d"}}) == "1");
}

BOOST_AUTO_TEST_CASE(sessions_without_a_name_are_removed_if_wanted) {
  served by(saying_back(),
            {.app = "press", .user = "ann", .keeps_sessions = false});
  by.initialize();
  const auto result = by.call({{"request", "a"}});
  BOOST_TEST(!result.contains("_meta"));
  by.call({{"request", "a"}, {"session", "s1"}});
  auto left = by.on.sessions().list({"press", "ann"});
  const auto page = left.value();
  BOOST_REQUIRE(page.sessions.size() == 1U);
  BOOST_TEST(page.sessions.front().key().id == "s1");
}

BOOST_AUTO_TEST_CASE(a_question_to_the_user_is_a_failed_result) {
  served by(writer(scripted({{"writer", {calling("pay", {{"sum", 3}})}}}),
                   {tool({.name = "pay",
                          .run = [](const json&, tool_context&) -> json {
                            return {{"paid", true}};
                          },
                          .require_confirmation = true})}));
  by.initialize();
  const auto result = by.call({{"request", "go"}, {"session", "s1"}});
  BOOST_TEST(has_failed(result));
  const auto why = text_in(result);
  BOOST_TEST(why.find(R"(asks if it may call pay({"sum":3}))")
             != std::string::npos);
  BOOST_TEST(why.find("'s1'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_long_running_call_is_a_failed_result) {
  served by(writer(
    scripted({{"writer", {calling("order")}}}),
    {tool({.name = "order",
           .run = [](const json&, tool_context&) -> json { return nullptr; },
           .long_running = true})}));
  by.initialize();
  const auto result = by.call({{"request", "go"}});
  BOOST_TEST(has_failed(result));
  BOOST_TEST(text_in(result).find("waits for the result of order({})")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(media_and_files_are_blocks) {
  const std::string png("\x89PNG\0", 5);
  scripted_reply drawn;
  drawn.content = content("model",
                          {part("Here: "),
                           inline_data(png, "image/png"),
                           inline_data("abc", "application/pdf")});
  served by(
    writer(scripted({{"writer", {calling("save"), drawn}}}),
           {tool_of("save",
                    [](const json&, tool_context& context) -> json {
                      auto files = context.artifacts();
                      files.save("notes.txt", part("words")).value();
                      files
                        .save("big.bin",
                              inline_data(std::string(2'000, 'x'), "audio/wav"))
                        .value();
                      return {{"saved", 2}};
                    })}),
    {.media_bytes_max = 1'000});
  by.initialize();
  const auto blocks = by.call({{"request", "go"}})["content"];
  BOOST_REQUIRE(blocks.size() == 5U);
  BOOST_TEST(blocks[0]["text"] == "Here: ");
  BOOST_TEST(
    blocks[1]
    == json(
      {{"type", "image"}, {"data", "iVBORwA="}, {"mimeType", "image/png"}}));
  BOOST_TEST(blocks[2]["resource"]["blob"] == "YWJj");
  BOOST_TEST(blocks[2]["resource"]["mimeType"] == "application/pdf");
  BOOST_TEST(blocks[3]["type"] == "text");
  BOOST_TEST(blocks[3]["text"].get<std::string>().starts_with(
    "artifact 'big.bin' (version 0) is left out: it has 2000 bytes"));
  BOOST_TEST(blocks[4]["resource"]["text"] == "words");
  BOOST_TEST(blocks[4]["resource"]["uri"].get<std::string>().ends_with(
    "/notes.txt?version=0"));
}

BOOST_AUTO_TEST_CASE(bad_options_are_refused) {
  auto on = runtime::open().value();
  const auto refused = [&on](mcp_server_options options) {
    return code_of(serve_agent(on, saying_back(), std::move(options)));
  };
  BOOST_TEST(refused({.user = " "}) == "invalid_argument");
  BOOST_TEST(refused({.calls_max = 0}) == "invalid_argument");
  BOOST_TEST(refused({.message_bytes_max = 0}) == "invalid_argument");
  BOOST_TEST(refused({.grace = std::chrono::milliseconds(-1)})
             == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
