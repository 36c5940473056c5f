// The rules of HTTP, and the limits of connections.

#include "troupe/server/http/response.hpp"

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(http)

namespace {

server_options limited(server_limits limits) {
  server_options options;
  options.limits = limits;
  return options;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_server_tells_its_health_version_and_apps) {
  server_fixture on({{"press", says("root", "x")}, {"a", says("b", "y")}});
  BOOST_TEST(on.client.get("/health").data() == json({{"status", "ok"}}));
  BOOST_TEST(on.client.get("/version").data()["language"] == "cpp");
  BOOST_TEST(on.client.get("/list-apps").data() == json({"a", "press"}));
  const auto apps = on.client.get("/list-apps?detailed=true").data()["apps"];
  BOOST_TEST(apps[1]["name"] == "press");
  BOOST_TEST(apps[1]["rootAgentName"] == "root");
}

BOOST_AUTO_TEST_CASE(an_app_is_described_by_its_agents_and_tools) {
  const auto child = asks("child", echo(), "Help.");
  const auto root = llm(
    {.name = "root",
     .description = "Writes.",
     .model = echo(),
     .instruction = "Write.",
     .tools
     = {tool_of("look", [](const json&, tool_context&) { return json(1); })}},
    {child});
  server_fixture on({{"press", root}, {"plain", says("says", "x")}});
  const auto info = on.client.get("/apps/press/app-info").data();
  BOOST_TEST(info["agents"]["root"]["instruction"] == "Write.");
  BOOST_TEST(info["agents"]["root"]["sub_agents"] == json({"child"}));
  BOOST_TEST(
    info["agents"]["root"]["tools"][0]["functionDeclarations"][0]["name"]
    == "look");
  BOOST_TEST(info["agents"]["child"]["tools"] == json::array());
  BOOST_TEST(on.client.get("/apps/none/app-info").status == 404);
  BOOST_TEST(on.client.get("/apps/plain/app-info").status == 400);
}

BOOST_AUTO_TEST_CASE(an_unknown_path_and_an_unknown_method_are_told_apart) {
  server_fixture on;
  const auto unknown = on.client.get("/nothing");
  BOOST_TEST(unknown.status == 404);
  BOOST_TEST(unknown.data() == json({{"detail", "Not Found"}}));
  const auto wrong = on.client.ask("PUT", one_path);
  BOOST_TEST(wrong.status == 405);
  BOOST_TEST(wrong.header("allow") == "DELETE, GET, HEAD, PATCH, POST");
  BOOST_TEST(wrong.data() == json({{"detail", "Method Not Allowed"}}));
}

BOOST_AUTO_TEST_CASE(an_answer_to_a_head_request_has_no_body) {
  server_fixture on;
  on.create();
  for (const auto& path : {std::string("/health"),
                           std::string("/"),
                           one_path,
                           one_path + "/events",
                           one_path + "/events?follow"}) {
    const auto answer = on.client.ask("HEAD", path);
    BOOST_TEST(answer.status == 200, path);
    BOOST_TEST(answer.header("content-type")
               == on.connect().ask("HEAD", path).header("content-type"));
  }
  BOOST_TEST(on.client.ask("HEAD", one_path).header("etag") == "\"0\"");
  BOOST_TEST(on.client.ask("HEAD", "/none").status == 404);
  BOOST_TEST(on.client.ask("HEAD", "/run").header("allow") == "POST");
  BOOST_TEST(on.client.get("/health").body == R"({"status":"ok"})");
}

BOOST_AUTO_TEST_CASE(a_head_request_does_not_change_the_answer_to_the_next) {
  server_fixture on;
  on.client.send("HEAD /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
                 "GET /health HTTP/1.1\r\n\r\n");
  BOOST_TEST(on.client.read().status == 200);
  const auto refused = on.client.read();
  BOOST_TEST(refused.status == 400);
  BOOST_TEST(refused.data()["detail"] == "a request has one Host");
}

BOOST_AUTO_TEST_CASE(each_answer_has_a_date) {
  server_fixture on;
  on.create();
  for (const auto& path :
       {std::string("/health"), std::string("/none"), one_path})
    BOOST_TEST(on.client.get(path).header("date").ends_with(" GMT"));
  on.client.send_request("GET", one_path + "/events?follow");
  BOOST_TEST(on.client.read_head().header("date").ends_with(" GMT"));
  BOOST_TEST(serving::http_date(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
  BOOST_TEST(serving::http_date(1'795'683'600)
             == "Thu, 26 Nov 2026 09:00:00 GMT");
}

BOOST_AUTO_TEST_CASE(a_target_may_name_the_host) {
  server_fixture on;
  const auto status_of = [&on](const std::string& target) {
    on.client.send("GET " + target + " HTTP/1.1\r\nhost: localhost\r\n\r\n");
    return on.client.read().status;
  };
  BOOST_TEST(status_of("http://localhost/health") == 200);
  BOOST_TEST(status_of("HTTP://127.0.0.1:80/apps/a/users?limit=1") == 200);
  BOOST_TEST(status_of("http://localhost") == 200);
  BOOST_TEST(status_of("http://localhost?x=/") == 200);
  // The host of the target counts.
  BOOST_TEST(status_of("http://example.com/health") == 403);
}

BOOST_AUTO_TEST_CASE(only_names_of_this_machine_are_hosts) {
  server_fixture on;
  for (const auto* host :
       {"localhost", "LocalHost", "127.0.0.1:8000", "[::1]:80"}) {
    on.client.headers = {std::string("host: ") + host};
    BOOST_TEST(on.client.get("/health").status == 200);
  }
  for (const auto* host : {"example.com", "127.0.0.1.example.com", ""}) {
    on.client.headers = {std::string("host: ") + host};
    const auto refused = on.client.get("/health");
    BOOST_TEST(refused.status == 403);
    BOOST_TEST(refused.body == "Forbidden: host not allowed");
  }
}

BOOST_AUTO_TEST_CASE(pages_of_other_sites_are_refused) {
  server_fixture on;
  on.client.headers = {"host: localhost:1", "origin: http://localhost:1"};
  BOOST_TEST(on.client.get("/health").status == 200);
  on.client.headers = {"host: Localhost:1", "origin: http://LOCALHOST:1"};
  BOOST_TEST(on.client.get("/health").status == 200);
  for (const auto* origin : {"http://localhost:2",
                             "https://localhost:1",
                             "http://example.com",
                             "null"}) {
    on.client.headers = {"host: localhost:1", std::string("origin: ") + origin};
    const auto refused = on.client.get("/health");
    BOOST_TEST(refused.status == 403);
    BOOST_TEST(refused.body == "Forbidden: origin not allowed");
    BOOST_TEST(refused.header("access-control-allow-origin").empty());
  }
}

BOOST_AUTO_TEST_CASE(requests_of_one_connection_are_answered_in_order) {
  server_fixture on;
  std::string requests;
  for (int count = 0; count < 50; ++count)
    requests += "POST " + all_path
                + " HTTP/1.1\r\nhost: localhost\r\ncontent-length: 18\r\n\r\n"
                + "{\"sessionId\":\"" + std::to_string(count + 10) + "\"}";
  on.client.send(requests);
  for (int count = 0; count < 50; ++count)
    BOOST_TEST(on.client.read().data()["id"] == std::to_string(count + 10));
}

BOOST_AUTO_TEST_CASE(a_body_may_come_in_chunks) {
  server_fixture on;
  on.client.send("POST " + all_path
                 + " HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: "
                   "chunked\r\n\r\n8;x=y\r\n{\"sessio\r\n9\r\nnId\":\"s1\"\r\n"
                   "1\r\n}\r\n0\r\n\r\n");
  BOOST_TEST(on.client.read().data()["id"] == "s1");
}

BOOST_AUTO_TEST_CASE(a_client_may_ask_before_it_sends_a_body) {
  server_fixture on;
  on.client.send("POST " + all_path
                 + " HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n"
                   "content-length: 2\r\n\r\n");
  BOOST_TEST(on.client.read_head().status == 100);
  on.client.send("{}");
  BOOST_TEST(on.client.read().status == 200);
}

BOOST_AUTO_TEST_CASE(a_request_that_breaks_the_rules_ends_its_connection) {
  server_fixture on;
  const std::vector<std::pair<std::string, int>> requests = {
    {"no http at all\r\n\r\n", 400},
    {"GET /health HTTP/1.1\r\n\r\n", 400},
    {"GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400},
    {"GET /health HTTP/1.1\r\nhost : localhost\r\n\r\n", 400},
    {"GET health HTTP/1.1\r\nhost: localhost\r\n\r\n", 400},
    {"GET /%zz HTTP/1.1\r\nhost: localhost\r\n\r\n", 400},
    {"GET /a%00b HTTP/1.1\r\nhost: localhost\r\n\r\n", 400},
    {"POST /run HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n", 400},
    {"POST /run HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n"
     "transfer-encoding: chunked\r\n\r\n",
     400},
    {"POST /run HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: "
     "chunked\r\n\r\nzz\r\n",
     400},
    {"POST /run HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip, "
     "chunked\r\n\r\n0\r\n\r\n",
     501},
    {"POST /run HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: "
     "gzip\r\n\r\n",
     501},
    {"POST /run HTTP/1.1\r\nhost: localhost\r\ncontent-length: "
     "99999999999\r\n\r\n",
     413},
    {"GET / HTTP/1.1\r\nhost: localhost\r\nlong: " + std::string(20'000, 'x')
       + "\r\n\r\n",
     431},
    // Beast bounds neither of these.
    {"POST /run HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: "
     "chunked\r\n\r\n2;x="
       + std::string(70'000, 'x') + "\r\n",
     413},
    {"POST /run HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: "
     "chunked\r\n\r\n2\r\n{}\r\n0\r\nx: "
       + std::string(70'000, 'x') + "\r\n\r\n",
     413},
  };
  for (const auto& [text, status] : requests) {
    auto client = on.connect();
    client.send(text);
    const auto answer = client.read();
    BOOST_TEST(answer.status == status, text.substr(0, 60));
    BOOST_TEST(answer.header("connection") == "close");
    BOOST_TEST(client.is_closed_within(10s));
  }
  BOOST_TEST(on.client.get("/health").status == 200);
}

BOOST_AUTO_TEST_CASE(a_body_above_the_limit_is_refused_in_the_middle) {
  server_fixture on({}, limited({.body_bytes_max = 1'000}));
  auto client = on.connect();
  client.send("POST " + all_path
              + " HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: "
                "chunked\r\n\r\n");
  for (int count = 0; count < 3; ++count)
    client.send("200\r\n" + std::string(512, ' ') + "\r\n");
  BOOST_TEST(client.read().status == 413);
}

BOOST_AUTO_TEST_CASE(slow_and_idle_clients_are_closed) {
  server_fixture on(
    {},
    limited({.header_time = 100ms, .body_time = 100ms, .idle_time = 100ms}));
  auto idle = on.connect();
  auto head = on.connect();
  head.send("GET /health HTT");
  auto body = on.connect();
  body.send("POST " + all_path
            + " HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{");
  for (auto* each : {&idle, &head, &body})
    BOOST_TEST(each->is_closed_within(30s));
}

BOOST_AUTO_TEST_CASE(a_client_that_sends_a_head_byte_by_byte_is_closed) {
  server_fixture on({}, limited({.header_time = 200ms}));
  const std::string text = "GET /health HTTP/1.1\r\nhost: localhost\r\nx: "
                           + std::string(5'000, 'x');
  std::size_t sent = 0;
  while (sent < text.size() && on.client.send(text.substr(sent, 1))
         && !on.client.is_closed_within(5ms))
    ++sent;
  BOOST_TEST(sent < text.size());
}

BOOST_AUTO_TEST_CASE(connections_above_the_limit_are_closed) {
  server_fixture on({}, limited({.connections_max = 3}));
  BOOST_TEST(on.client.get("/health").status == 200);
  auto second = on.connect();
  auto third = on.connect();
  BOOST_TEST(second.get("/health").status == 200);
  BOOST_TEST(third.get("/health").status == 200);
  auto fourth = on.connect();
  BOOST_TEST(fourth.is_closed_within(10s));
  second.close();
  // The end of a connection is noticed a little later.
  for (;;) {
    auto next = on.connect();
    if (!next.is_closed_within(100ms)) {
      BOOST_TEST(next.get("/health").status == 200);
      break;
    }
  }
}

BOOST_AUTO_TEST_CASE(a_thousand_idle_connections_hold_up_no_request) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::max<rlim_t>(files.rlim_cur, 4'096);
  // Both ends are in this process.
  BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
  server_fixture on;
  std::vector<http_client> idle;
  for (int count = 0; count < 1'000; ++count)
    idle.push_back(on.connect());
  BOOST_TEST(on.client.get("/health").status == 200);
  for (auto& each : idle)
    BOOST_TEST(each.get("/health").status == 200);
  on.server.stop();
  for (auto& each : idle)
    BOOST_TEST(each.is_closed_within(10s));
}

BOOST_AUTO_TEST_CASE(a_half_closed_connection_still_gets_its_answer) {
  server_fixture on;
  on.client.send_request("GET", "/health");
  on.client.finish_sending();
  BOOST_TEST(on.client.read().status == 200);
  BOOST_TEST(on.client.is_closed_within(10s));
}

BOOST_AUTO_TEST_CASE(a_client_that_closes_its_stream_is_noticed) {
  server_fixture on({}, limited({.connections_max = 2, .heartbeat = 24h}));
  on.create();
  auto reader = on.connect();
  reader.send_request("GET", one_path + "/events?follow");
  BOOST_TEST(reader.read_head().status == 200);
  reader.close();
  while (on.connect().is_closed_within(100ms))
    continue;
  BOOST_TEST(on.client.get("/health").status == 200);
}

BOOST_AUTO_TEST_CASE(an_old_client_is_answered_and_closed) {
  server_fixture on;
  on.client.send("GET /health HTTP/1.0\r\nhost: localhost\r\n\r\n");
  BOOST_TEST(on.client.read().status == 200);
  BOOST_TEST(on.client.is_closed_within(10s));
}

BOOST_AUTO_TEST_CASE(a_stopped_server_closes_its_connections) {
  server_fixture on;
  BOOST_TEST(on.client.get("/health").status == 200);
  on.server.stop();
  BOOST_TEST(on.client.is_closed_within(10s));
  BOOST_CHECK_THROW(on.connect(), std::runtime_error);
  on.server.stop();
}

BOOST_AUTO_TEST_CASE(an_option_that_cannot_be_used_is_refused) {
  auto owners = runtime::open().value();
  BOOST_TEST(code_of(server::start(owners, {}, {.address = "example.com"}))
             == "invalid_argument");
  BOOST_TEST(code_of(server::start(owners, {}, {.threads = 0}))
             == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
