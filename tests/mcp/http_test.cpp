// Servers behind an address: sessions, streams, headers and refusals.

#include "../models/http_server.hpp"
#include "../models/tls_server.hpp"
#include "called_tools.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <mutex>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(mcp_over_http)

namespace {

std::string answer_text(const json& id, const json& outcome) {
  return json{{"jsonrpc", "2.0"}, {"id", id}, {"result", outcome}}.dump();
}

std::string error_text(const json& id, int code, const std::string& why) {
  return json{{"jsonrpc", "2.0"},
              {"id", id},
              {"error", {{"code", code}, {"message", why}}}}
    .dump();
}

const json tool_page{
  {"tools",
   json::array(
     {json{{"name", "echo"}, {"inputSchema", {{"type", "object"}}}},
      json{{"name", "städte"},
           {"inputSchema",
            {{"type", "object"},
             {"properties",
              {{"region",
                {{"type", "string"}, {"x-mcp-header", "Region"}}}}}}}}})}};

json said(const std::string& words) {
  return {{"content", json::array({json{{"type", "text"}, {"text", words}}})}};
}

std::string json_answer(const std::string& body,
                        const std::string& headers = {}) {
  return whole(body, 200, "Content-Type: application/json\r\n" + headers);
}

std::string refused(int status, const std::string& body = "{}") {
  return whole(body, status, "Content-Type: application/json\r\n");
}

/// A server of the handshake era. `on_call` answers calls.
class small_http_server {
public:
  using call_answer
    = std::function<server_script(const served_request&, const json& message)>;

  explicit small_http_server(call_answer on_call)
    : on_call_(std::move(on_call)),
      server_([this](const served_request& got) { return answer(got); }) {}

  mcp_source source() const {
    mcp_source made;
    made.url = server_.url("/mcp");
    return made;
  }

  /// Forgets the session: a new handshake is needed.
  void forget() { ++session_; }

  std::string session() const {
    return "session-" + std::to_string(session_.load());
  }

  http_server& server() noexcept { return server_; }

  std::atomic<int> handshakes{0};

private:
  server_script answer(const served_request& got) {
    if (!got.line.starts_with("POST"))
      return {
        say(refused(got.header("mcp-session-id") == session() ? 405 : 404))};
    const auto message = json::parse(got.body);
    const auto method = message.value("method", "");
    const auto id = message.value("id", json());
    if (method == "server/discover")
      return {say(refused(400, error_text(nullptr, -32000, "no session")))};
    if (method == "initialize") {
      ++handshakes;
      return {say(json_answer(answer_text(id,
                                          {{"protocolVersion", "2025-06-18"},
                                           {"capabilities", json::object()}}),
                              "Mcp-Session-Id: " + session() + "\r\n"))};
    }
    if (got.header("mcp-session-id") != session()
        || got.header("mcp-protocol-version") != "2025-06-18")
      return {say(refused(404, error_text(nullptr, -32001, "no session")))};
    if (method.starts_with("notifications/"))
      return {say(whole("", 202))};
    if (method == "tools/list")
      return {say(json_answer(answer_text(id, tool_page)))};
    return on_call_(got, message);
  }

  const call_answer on_call_;
  std::atomic<int> session_{1};
  http_server server_;
};

server_script echo(const served_request&, const json& message) {
  return {say(json_answer(answer_text(
    message["id"], said(message["params"]["arguments"].value("text", "")))))};
}

std::string event(const std::string& data, const std::string& id = {}) {
  return (id.empty() ? "" : "id: " + id + "\n")
         + "event: message\ndata: " + data + "\n\n";
}

const std::string stream_begin = "HTTP/1.1 200 OK\r\nContent-Type: "
                                 "text/event-stream\r\nTransfer-Encoding: "
                                 "chunked\r\n\r\n";
const std::string stream_end = "0\r\n\r\n";

} // namespace

BOOST_AUTO_TEST_CASE(a_session_is_begun_used_and_ended) {
  small_http_server there(echo);
  {
    const auto set = mcp_tools(there.source(), fast());
    BOOST_TEST(names_of(set->tools({}).value())
                 == std::vector<std::string>({"echo", "st__dte"}),
               boost::test_tools::per_element());
    caller by(set);
    BOOST_TEST(text_in(by.call("echo", {{"text", "a"}})) == "a");
    BOOST_TEST(text_in(by.call("echo", {{"text", "b"}})) == "b");
  }
  const auto requests = there.server().requests();
  BOOST_TEST(there.handshakes == 1);
  BOOST_TEST(requests.front().header("accept")
             == "application/json, text/event-stream");
  BOOST_TEST(requests.back().line == "DELETE /mcp HTTP/1.1");
  BOOST_TEST(requests.back().header("mcp-session-id") == "session-1");
}

BOOST_AUTO_TEST_CASE(the_span_of_a_call_is_sent_with_it) {
  small_http_server there(echo);
  caller by(mcp_tools(there.source(), fast()));
  by.trace().parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  by.trace().state = "vendor=x";
  BOOST_TEST(text_in(by.call("echo", {{"text", "a"}})) == "a");
  std::size_t calls = 0;
  for (const auto& each : there.server().requests()) {
    const bool is_call = each.body.find("tools/call") != std::string::npos;
    calls += is_call ? 1 : 0;
    const auto sent = parse_json(each.body).value_or(json::object());
    const auto meta
      = sent.value("params", json::object()).value("_meta", json::object());
    BOOST_TEST(meta.contains("traceparent") == is_call);
    if (is_call) {
      BOOST_TEST(meta["traceparent"] == by.trace().parent);
      BOOST_TEST(meta["tracestate"] == "vendor=x");
    }
    BOOST_TEST(each.header("traceparent")
               == (is_call ? by.trace().parent : std::string()));
    BOOST_TEST(each.header("tracestate")
               == (is_call ? "vendor=x" : std::string()));
  }
  BOOST_TEST(calls == 1U);
}

BOOST_AUTO_TEST_CASE(a_stream_may_hold_other_messages_before_the_answer) {
  small_http_server there([](const served_request&, const json& message) {
    return server_script{say(
      stream_begin + chunk("id: 1\ndata:\n\n")
      + chunk(event(R"({"jsonrpc":"2.0","method":"notifications/message"})"))
      + chunk("event: other\ndata: {}\n\n")
      + chunk(event(answer_text(message["id"], said("streamed")), "2"))
      + stream_end)};
  });
  caller by(mcp_tools(there.source(), fast()));
  BOOST_TEST(text_in(by.call("echo")) == "streamed");
}

BOOST_AUTO_TEST_CASE(
  a_stream_that_breaks_off_is_continued_from_its_last_event) {
  std::atomic<bool> is_continued{false};
  json call_id;
  std::mutex mutex;
  http_server there([&](const served_request& got) -> server_script {
    if (got.line.starts_with("GET")) {
      const std::lock_guard guard(mutex);
      if (got.header("last-event-id") != "7")
        return {say(refused(405))};
      is_continued = true;
      return {say(stream_begin
                  + chunk(event(answer_text(call_id, said("late")), "8"))
                  + stream_end)};
    }
    if (!got.line.starts_with("POST"))
      return {say(refused(405))};
    const auto message = json::parse(got.body);
    const auto method = message["method"].get<std::string>();
    const auto id = message.value("id", json());
    if (method == "server/discover")
      return {say(refused(400))};
    if (method == "initialize")
      return {
        say(json_answer(answer_text(id, {{"protocolVersion", "2025-11-25"}})))};
    if (method == "tools/list")
      return {say(json_answer(answer_text(id, tool_page)))};
    if (method != "tools/call")
      return {say(whole("", 202))};
    const std::lock_guard guard(mutex);
    call_id = id;
    return {say(stream_begin + chunk("id: 7\ndata:\n\n")), close()};
  });
  mcp_source source;
  source.url = there.url("/mcp");
  caller by(mcp_tools(source, fast()));
  BOOST_TEST(text_in(by.call("echo")) == "late");
  BOOST_TEST(is_continued);
}

BOOST_AUTO_TEST_CASE(a_stream_without_numbers_that_breaks_off_fails_its_call) {
  small_http_server there([](const served_request&, const json&) {
    return server_script{say(stream_begin + chunk(": hello\n\n") + stream_end)};
  });
  caller by(mcp_tools(there.source(), fast()));
  const auto failed = to_text(by.call("echo"));
  BOOST_TEST(failed.find("ended without an answer") != std::string::npos,
             failed);
}

BOOST_AUTO_TEST_CASE(a_lost_session_is_begun_again_and_the_call_repeated_once) {
  small_http_server there(echo);
  caller by(mcp_tools(there.source(), fast()));
  BOOST_TEST(text_in(by.call("echo", {{"text", "a"}})) == "a");
  there.forget();
  std::vector<function_call> calls;
  for (const auto* word : {"b", "c", "d"})
    calls.emplace_back("", "echo", value(json{{"text", word}}));
  std::string joined;
  for (const auto& each : by.call(std::move(calls)))
    joined += text_in(each.response.data());
  BOOST_TEST(joined == "bcd");
  BOOST_TEST(there.handshakes == 2);
}

BOOST_AUTO_TEST_CASE(a_session_that_the_list_finds_lost_is_begun_again) {
  small_http_server there(echo);
  auto source = there.source();
  source.list_lifetime = std::chrono::milliseconds(1);
  const auto set = mcp_tools(source, fast());
  set->tools({}).value();
  there.forget();
  while (there.handshakes < 2)
    set->tools({}).value();
  caller by(set);
  BOOST_TEST(text_in(by.call("echo", {{"text", "a"}})) == "a");
}

// The server may have done the work: its events have begun.
BOOST_AUTO_TEST_CASE(a_call_that_has_begun_is_not_repeated_in_a_new_session) {
  std::atomic<int> calls{0};
  small_http_server* server = nullptr;
  small_http_server there([&](const served_request& got, const json& message) {
    if (++calls > 1)
      return echo(got, message);
    server->forget();
    return server_script{say(stream_begin + chunk("id: 7\ndata:\n\n")),
                         close()};
  });
  server = &there;
  caller by(mcp_tools(there.source(), fast()));
  const auto failed = to_text(by.call("echo"));
  BOOST_TEST(failed.find("HTTP status 404") != std::string::npos, failed);
  BOOST_TEST(calls == 1);
  BOOST_TEST(text_in(by.call("echo", {{"text", "next"}})) == "next");
}

BOOST_AUTO_TEST_CASE(an_error_of_another_type_is_an_error_like_others) {
  small_http_server there([](const served_request&, const json&) {
    return server_script{say(refused(500, R"({"error": {"message": 1}})"))};
  });
  caller by(mcp_tools(there.source(), fast()));
  const auto failed = to_text(by.call("echo"));
  BOOST_TEST(failed.find("HTTP status 500") != std::string::npos, failed);
}

BOOST_AUTO_TEST_CASE(a_call_is_sent_once_when_its_connection_closes) {
  std::atomic<int> calls{0};
  small_http_server there([&calls](const served_request&, const json&) {
    ++calls;
    return server_script{close()};
  });
  caller by(mcp_tools(there.source(), fast()));
  const auto failed = to_text(by.call("echo"));
  BOOST_TEST(failed.find("error") != std::string::npos, failed);
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(the_query_of_an_address_is_in_no_message) {
  mcp_source source;
  source.url = refusing_url() + "/mcp?key=s3cret";
  const auto reason = reason_of(mcp_tools(source, fast())->tools({}).get());
  BOOST_TEST(reason.find("s3cret") == std::string::npos, reason);
  source.url = "https://ann:s3cret@example.com/mcp";
  BOOST_TEST(code_thrown_by([&] { mcp_tools(source); }) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_refusal_names_the_status_and_costs_one_call) {
  std::atomic<int> calls{0};
  small_http_server there([&calls](const served_request& got,
                                   const json& message) {
    if (++calls == 1)
      return server_script{say(refused(401))};
    if (calls == 2)
      return server_script{
        say(whole("", 307, "Location: https://elsewhere.example/mcp\r\n"))};
    if (calls == 3)
      return server_script{
        say(refused(400, error_text(message["id"], -32602, "bad arguments")))};
    return echo(got, message);
  });
  caller by(mcp_tools(there.source(), fast()));
  const auto fails_with = [&by](const std::string& why) {
    const auto failed = to_text(by.call("echo"));
    BOOST_TEST(failed.find(why) != std::string::npos, failed);
  };
  fails_with("HTTP status 401; set the token with bearer_env");
  fails_with("points to 'https://elsewhere.example/mcp'");
  fails_with("bad arguments (code -32602)");
  BOOST_TEST(text_in(by.call("echo", {{"text", "fine"}})) == "fine");
}

BOOST_AUTO_TEST_CASE(an_answer_over_the_limit_fails_its_call) {
  small_http_server there([](const served_request&, const json& message) {
    return server_script{say(json_answer(
      answer_text(message["id"], said(std::string(100'000, 'x')))))};
  });
  auto options = fast();
  options.message_bytes_max = 50'000;
  caller by(mcp_tools(there.source(), options));
  const auto failed = to_text(by.call("echo"));
  BOOST_TEST(failed.find("more than 50000 bytes") != std::string::npos, failed);
}

BOOST_AUTO_TEST_CASE(headers_and_a_token_go_with_each_request) {
  small_http_server there(echo);
  auto source = there.source();
  source.headers = {{"X-Team", "red"}};
  source.header_variables = {{"X-Key", "KEY"}};
  source.bearer_variable = "TOKEN";
  auto options = fast();
  options.variable = [](const std::string& name) {
    return std::optional<std::string>("the-" + name);
  };
  caller(mcp_tools(source, options)).call("echo");
  for (const auto& each : there.server().requests()) {
    BOOST_TEST(each.header("x-team") == "red");
    BOOST_TEST(each.header("x-key") == "the-KEY");
    BOOST_TEST(each.header("authorization") == "Bearer the-TOKEN");
  }
  source.url = "http://example.com/mcp";
  BOOST_TEST(code_thrown_by([&] { mcp_tools(source, options); })
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(the_stateless_version_has_its_headers_and_no_session) {
  http_server there([](const served_request& got) -> server_script {
    const auto message = json::parse(got.body);
    const auto method = message["method"].get<std::string>();
    const auto& id = message["id"];
    if (got.header("mcp-protocol-version") != "2026-07-28"
        || got.header("mcp-method") != method
        || message["params"]["_meta"]["io.modelcontextprotocol/"
                                      "protocolVersion"]
             != "2026-07-28")
      return {say(refused(400, error_text(id, -32020, "wrong headers")))};
    if (method == "server/discover")
      return {say(json_answer(
        answer_text(id,
                    {{"supportedVersions", json::array({"2026-07-28"})},
                     {"resultType", "complete"}})))};
    if (method == "tools/list")
      return {say(json_answer(answer_text(id, tool_page)))};
    return {say(json_answer(answer_text(
      id,
      said(got.header("mcp-name") + " " + got.header("mcp-param-region")))))};
  });
  mcp_source source;
  source.url = there.url("/mcp");
  {
    caller by(mcp_tools(source, fast()));
    BOOST_TEST(text_in(by.call("echo")) == "echo ");
    BOOST_TEST(text_in(by.call("st__dte", {{"region", "north"}}))
               == "=?base64?c3TDpGR0ZQ==?= north");
  }
  for (const auto& each : there.requests())
    BOOST_TEST(each.line == "POST /mcp HTTP/1.1");
}

BOOST_AUTO_TEST_CASE(an_address_without_a_server_is_named) {
  mcp_source source;
  source.url = refusing_url() + "/mcp";
  const auto reason = reason_of(mcp_tools(source, fast())->tools({}).get());
  BOOST_TEST(reason.find(source.url) != std::string::npos, reason);
}

BOOST_AUTO_TEST_CASE(a_certificate_that_is_not_trusted_is_refused) {
  const tls_server there;
  mcp_source source;
  source.url = there.url();
  const auto reason = reason_of(mcp_tools(source, fast())->tools({}).get());
  BOOST_TEST(reason.find("certificate") != std::string::npos, reason);
}

BOOST_AUTO_TEST_CASE(a_call_that_is_given_up_closes_its_request) {
  small_http_server there(
    [](const served_request&, const json&) { return server_script{hold()}; });
  auto source = there.source();
  source.call_timeout = std::chrono::milliseconds(100);
  caller by(mcp_tools(source, fast()));
  const auto failed = to_text(by.call("echo"));
  BOOST_TEST(failed.find("no answer within 100 ms") != std::string::npos,
             failed);
  there.server().wait_for_hang_ups(1);
}

BOOST_AUTO_TEST_SUITE_END()
