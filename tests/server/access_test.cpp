// Callers of a server: tokens and roles, proxies, origins, rates and TLS.

#include "troupe/server/access/request_rate.hpp"

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(callers)

namespace {

const std::string ann_token = "ann-0123456789abcdef";
const std::string bob_token = "bob-0123456789abcdef";
const std::string reader_token = "reader-0123456789abcdef";
const std::string monitor_token = "monitor-0123456789abcdef";
const std::string admin_token = "admin-0123456789abcdef";

server_options with_tokens() {
  server_options options;
  options.tokens = "# people\n" + ann_token + " ann user\n" + bob_token
                   + " bob user\n\n" + reader_token + " ann reader\n"
                   + monitor_token + " * reader\n" + admin_token
                   + " root admin\n";
  return options;
}

struct fixture : server_fixture {
  fixture() : server_fixture({{"press", says("a", "1")}}, with_tokens()) {
    as(admin_token);
    create();
  }

  http_client& as(const std::string& token) {
    client.headers = {"authorization: Bearer " + token};
    return client;
  }
};

json start() {
  return {{"appName", "press"},
          {"userId", "ann"},
          {"sessionId", "s1"},
          {"newMessage", {{"parts", {{{"text", "go"}}}}}}};
}

std::string refusal_of(server_options options) {
  auto owners = runtime::open().value();
  auto started = server::start(owners, {}, std::move(options));
  return started ? "ok" : started.error().message();
}

} // namespace

BOOST_AUTO_TEST_CASE(a_server_with_tokens_answers_no_other_callers) {
  fixture on;
  on.client.headers = {};
  const auto refused = on.client.get("/list-apps");
  BOOST_TEST(refused.status == 401);
  BOOST_TEST(refused.header("www-authenticate") == "Bearer");
  for (const auto& header :
       std::vector<std::string>{"Bearer wrong-0123456789ab",
                                "Bearer ",
                                "Basic " + ann_token,
                                ann_token}) {
    on.client.headers = {"authorization: " + header};
    const auto answer = on.client.get("/list-apps");
    BOOST_TEST(answer.status == 401);
    BOOST_TEST(answer.body.find("0123456789") == std::string::npos);
  }
}

// A client that may not send a request cannot make the server read its body.
BOOST_AUTO_TEST_CASE(a_request_is_refused_before_its_body_is_sent) {
  fixture on;
  const auto status_of = [&on](const std::string& method,
                               const std::string& path,
                               const std::string& token) {
    auto client = on.connect();
    client.send(method + " " + path
                + " HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer "
                + token + "\r\nexpect: 100-continue\r\n"
                + "content-length: 1000000\r\n\r\n");
    const auto answer = client.read();
    BOOST_TEST(answer.header("connection") == "close");
    BOOST_TEST(client.is_closed_within(10s));
    return answer.status;
  };
  BOOST_TEST(status_of("POST", all_path, "wrong-0123456789ab") == 401);
  BOOST_TEST(status_of("POST", all_path, reader_token) == 403);
  BOOST_TEST(status_of("PATCH", one_path, bob_token) == 403);
  BOOST_TEST(status_of("POST", "/none", ann_token) == 404);
  BOOST_TEST(status_of("POST", "/health", ann_token) == 405);
}

BOOST_AUTO_TEST_CASE(a_rate_holds_for_requests_with_a_body) {
  server_options options;
  options.requests_per_second = 1;
  server_fixture on({}, options);
  BOOST_TEST(on.client.get("/health").status == 200);
  on.client.send("POST " + all_path
                 + " HTTP/1.1\r\nhost: localhost\r\n"
                   "content-length: 1000000\r\n\r\n");
  const auto answer = on.client.read();
  BOOST_TEST(answer.status == 429);
  BOOST_TEST(answer.header("connection") == "close");
}

BOOST_AUTO_TEST_CASE(failed_calls_and_refused_callers_have_a_code) {
  fixture on;
  const auto code_at
    = [&on](const std::string& token, const std::string& path) {
        return on.as(token).get(path).header("troupe-error");
      };
  BOOST_TEST(code_at(admin_token, all_path + "/none") == "not_found");
  BOOST_TEST(code_at(admin_token, "/apps/none/app-info") == "not_found");
  BOOST_TEST(code_at(bob_token, one_path) == "forbidden");
  BOOST_TEST(code_at("", "/health") == "unauthorized");
  BOOST_TEST(code_at(admin_token, "/none") == "");
  BOOST_TEST(on.as(admin_token).ask("PUT", one_path).header("troupe-error")
             == "");
  BOOST_TEST(on.client.post("/run", json::object()).header("troupe-error")
             == "");
}

BOOST_AUTO_TEST_CASE(a_user_sees_only_the_own_sessions) {
  fixture on;
  BOOST_TEST(on.as(ann_token).get(one_path).status == 200);
  BOOST_TEST(on.as(admin_token).get(one_path).status == 200);
  const auto refused = on.as(bob_token).get(one_path);
  BOOST_TEST(refused.status == 403);
  BOOST_TEST(refused.header("troupe-error") == "forbidden");
  for (const auto* path : {"",
                           "/s1/events",
                           "/s1/artifacts",
                           "/s1/runs",
                           "/s1/open-calls",
                           "/s1/events?follow"})
    BOOST_TEST(on.client.get(all_path + path).status == 403, path);
  for (const auto* path : {"/run", "/run_sse"})
    BOOST_TEST(on.client.post(path, start()).status == 403);
  BOOST_TEST(on.client.get("/apps/press/users/ann/state").status == 403);
  BOOST_TEST(on.client.get("/apps/press/users/ann/state?follow").status == 403);
  BOOST_TEST(on.client.get("/apps/press/state").status == 200);
  BOOST_TEST(on.client.get("/apps/press/users/ann%20/sessions").status == 403);
  BOOST_TEST(on.client.get("/apps/press/users/%20bob/sessions").status == 200);
  BOOST_TEST(on.as(ann_token).post("/run", start()).status == 200);
}

BOOST_AUTO_TEST_CASE(a_reader_writes_nothing) {
  fixture on;
  on.as(reader_token);
  BOOST_TEST(on.client.get(one_path).status == 200);
  BOOST_TEST(on.client.get("/apps/press/users/bob/sessions").status == 403);
  BOOST_TEST(on.client.post(all_path, json::object()).status == 403);
  BOOST_TEST(on.client.patch(one_path, {{"stateDelta", {{"a", 1}}}}).status
             == 403);
  BOOST_TEST(on.client.erase(one_path).status == 403);
  BOOST_TEST(on.client.post("/run", start()).status == 403);
  BOOST_TEST(on.client.post(one_path + "/events", {{"author", "user"}}).status
             == 403);
  on.as(monitor_token);
  BOOST_TEST(on.client.get("/apps/press/users/bob/sessions").status == 200);
  BOOST_TEST(on.client.erase(one_path).status == 403);
}

BOOST_AUTO_TEST_CASE(a_user_changes_nothing_that_others_rely_on) {
  fixture on;
  on.as(admin_token).patch(one_path, {{"stateDelta", {{"app:x", 1}}}});
  on.as(ann_token);
  const auto events = one_path + "/events";
  const json shared{{"app:x", 2}};
  const json operation{
    {"stateOps",
     json::array({{{"op", "add"}, {"key", "app:x"}, {"value", 1}}})}};
  BOOST_TEST(on.client.patch(one_path, {{"stateDelta", shared}}).status == 403);
  BOOST_TEST(on.client.patch(one_path, operation).status == 403);
  BOOST_TEST(
    on.client.post(one_path + "/rewind", {{"to", 0}, {"compensate", true}})
      .status
    == 403);
  BOOST_TEST(on.client.post(all_path, {{"state", shared}}).status == 403);
  BOOST_TEST(
    on.client.post(events, {{"actions", {{"stateDelta", shared}}}}).status
    == 403);
  auto run = start();
  run["stateDelta"] = shared;
  BOOST_TEST(on.client.post("/run", run).status == 403);
  // Sent back as it is, the key is no change.
  BOOST_TEST(
    on.client.patch(one_path, {{"stateDelta", {{"app:x", 1}, {"a", 1}}}}).status
    == 200);
  // A call would make the next run act.
  const json call{
    {"content",
     {{"parts",
       {{{"functionCall", {{"name", "refund"}, {"args", json::object()}}}}}}}}};
  BOOST_TEST(on.client.post(events, call).status == 403);
  BOOST_TEST(on.client.post(events, {{"author", "root"}}).status == 403);
  // Workflows record their work in these fields.
  for (const auto& record : std::vector<json>{
         {{"output", 1}},
         {{"nodeInfo", {{"path", "w@1/a@1"}}}},
         {{"customMetadata", {{"troupe", {{"workflow", json::object()}}}}}}})
    BOOST_TEST(on.client.post(events, record).status == 403);
  BOOST_TEST(on.client.post(events, {{"customMetadata", {{"mine", 1}}}}).status
             == 200);
  BOOST_TEST(on.as(admin_token).post(events, call).status == 200);
}

BOOST_AUTO_TEST_CASE(a_proxy_names_its_users) {
  server_options options;
  options.trusted_header = "X-User";
  options.trusted_proxy = "127.0.0.1";
  server_fixture on({}, options);
  on.client.headers = {"x-user: ann"};
  BOOST_TEST(on.create().status == 200);
  on.client.headers = {"x-user: bob"};
  BOOST_TEST(on.client.get(one_path).status == 403);
  on.client.headers = {};
  BOOST_TEST(on.client.get(one_path).status == 401);
  on.client.headers = {"x-user: *"};
  BOOST_TEST(on.client.get(one_path).status == 401);

  for (const auto& [address, status] :
       std::vector<std::pair<std::string, int>>{{"127.0.0.9", 401},
                                                {"::1", 401},
                                                {"127.1.0.0/16", 401},
                                                {"::ffff:127.0.0.1", 404},
                                                {"127.0.0.0/8", 404},
                                                {"localhost", 404}}) {
    options.trusted_proxy = address;
    server_fixture other({}, options);
    other.client.headers = {"x-user: ann"};
    BOOST_TEST(other.client.get(one_path).status == status, address);
  }
}

BOOST_AUTO_TEST_CASE(a_header_of_a_proxy_that_comes_twice_is_refused) {
  auto options = with_tokens();
  options.trusted_header = "X-User";
  options.trusted_proxy = "127.0.0.1";
  server_fixture on({}, options);
  for (const auto* name : {"x-user", "x-forwarded-proto", "forwarded"}) {
    on.client.headers = {"x-user: ann", std::string(name) + ": proto=a"};
    if (std::string(name) != "x-user")
      on.client.headers.push_back(on.client.headers.back());
    const auto refused = on.client.get("/list-apps");
    BOOST_TEST(refused.status == 400, name);
  }
  options.trusted_proxy = "127.0.0.9";
  server_fixture other({}, options);
  other.client.headers
    = {"authorization: Bearer " + ann_token, "x-user: a", "x-user: b"};
  BOOST_TEST(other.client.get("/list-apps").status == 200);
}

BOOST_AUTO_TEST_CASE(a_page_behind_a_proxy_has_the_scheme_of_the_site) {
  auto options = with_tokens();
  options.trusted_proxy = "127.0.0.1";
  server_fixture on({}, options);
  const auto status_of = [&on](const std::string& header) {
    on.client.headers = {"authorization: Bearer " + ann_token,
                         "host: localhost:1",
                         "origin: https://localhost:1",
                         header};
    return on.client.get("/list-apps").status;
  };
  BOOST_TEST(status_of("x-other: 1") == 403);
  BOOST_TEST(status_of("x-forwarded-proto: http") == 403);
  BOOST_TEST(status_of("x-forwarded-proto: https") == 200);
  BOOST_TEST(status_of("x-forwarded-proto: http, HTTPS") == 200);
  BOOST_TEST(status_of("forwarded: for=[::1];Proto=\"https\";by=x") == 200);
  BOOST_TEST(status_of("forwarded: proto=https, for=b") == 403);
  options.trusted_proxy = "127.0.0.9";
  server_fixture other({}, options);
  other.client.headers = {"authorization: Bearer " + ann_token,
                          "host: localhost:1",
                          "origin: https://localhost:1",
                          "x-forwarded-proto: https"};
  BOOST_TEST(other.client.get("/list-apps").status == 403);
}

// A page of another site can make its name lead to this machine, and send each
// header.
BOOST_AUTO_TEST_CASE(the_host_is_checked_behind_a_proxy_of_this_machine) {
  server_options options;
  options.trusted_header = "X-User";
  options.trusted_proxy = "127.0.0.1";
  options.origins = {"*"};
  const std::vector<std::string> headers = {"x-user: ann", "host: Example.com"};
  server_fixture on({}, options);
  on.client.headers = headers;
  const auto refused = on.client.get("/list-apps");
  BOOST_TEST(refused.status == 403);
  BOOST_TEST(refused.body.find("--allow-origin") != std::string::npos);
  options.origins = {"https://example.com"};
  server_fixture other({}, options);
  other.client.headers = headers;
  BOOST_TEST(other.client.get("/list-apps").status == 200);
}

BOOST_AUTO_TEST_CASE(origins_get_headers_of_cors_only_when_they_are_named) {
  server_options options;
  options.origins = {"https://example.com"};
  server_fixture on({}, options);
  on.client.headers = {"origin: https://example.com"};
  const auto answer = on.client.get("/health");
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.header("access-control-allow-origin")
             == "https://example.com");
  BOOST_TEST(answer.header("access-control-allow-credentials") == "true");
  BOOST_TEST(answer.header("vary") == "origin");
  on.client.headers.push_back("access-control-request-method: PATCH");
  on.client.headers.push_back("access-control-request-headers: if-match");
  const auto preflight = on.client.ask("OPTIONS", one_path);
  BOOST_TEST(preflight.status == 200);
  BOOST_TEST(preflight.header("access-control-allow-headers") == "if-match");
  on.client.headers = {"origin: https://other.com"};
  BOOST_TEST(on.client.get("/health").status == 403);
  on.client.headers.push_back("access-control-request-method: PATCH");
  BOOST_TEST(on.client.ask("OPTIONS", one_path).status == 403);
}

BOOST_AUTO_TEST_CASE(a_star_allows_no_credentials) {
  server_options options;
  options.origins = {"*", "https://example.com"};
  server_fixture on({}, options);
  on.client.headers = {"origin: https://other.com"};
  const auto answer = on.client.get("/health");
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.header("access-control-allow-origin") == "*");
  BOOST_TEST(answer.header("access-control-allow-credentials") == "");
  on.client.headers = {"origin: https://example.com"};
  const auto named = on.client.get("/health");
  BOOST_TEST(named.header("access-control-allow-origin")
             == "https://example.com");
  BOOST_TEST(named.header("access-control-allow-credentials") == "true");
}

BOOST_AUTO_TEST_CASE(a_caller_with_too_many_requests_is_told_to_wait) {
  server_options options;
  options.requests_per_second = 3;
  server_fixture on({}, options);
  http_answer answer;
  for (int count = 0; count < 10 && answer.status != 429; ++count)
    answer = on.client.get("/health");
  BOOST_TEST(answer.status == 429);
  BOOST_TEST(answer.header("retry-after") == "1");
}

BOOST_AUTO_TEST_CASE(a_rate_holds_one_second_of_requests_for_each_caller) {
  serving::request_rate rate(2);
  const serving::request_rate::clock::time_point now{100s};
  BOOST_TEST(rate.admit("ann", now));
  BOOST_TEST(rate.admit("ann", now));
  BOOST_TEST(!rate.admit("ann", now));
  BOOST_TEST(rate.admit("bob", now));
  BOOST_TEST(rate.admit("ann", now + 500ms));
  BOOST_TEST(!rate.admit("ann", now + 500ms));
  BOOST_TEST(rate.admit("ann", now + 60s));
}

BOOST_AUTO_TEST_CASE(an_open_address_needs_callers_that_are_known) {
  BOOST_TEST(refusal_of({.address = "0.0.0.0"})
             == "others may reach '0.0.0.0': give a token file, or a trusted "
                "header and its proxy");
  auto options = with_tokens();
  options.address = "0.0.0.0";
  BOOST_TEST(refusal_of(options) == "ok");
  BOOST_TEST(refusal_of({.trusted_header = "x-user"}).find("belong together")
             != std::string::npos);
  BOOST_TEST(refusal_of({.trusted_proxy = "127.0.0.1"})
             == "a trusted proxy needs the header by which it names users, or "
                "tokens");
  for (const auto* address : {"example.com", "10.0.0.0/33", "::1/129", "1/"}) {
    options.trusted_proxy = address;
    BOOST_TEST(refusal_of(options).starts_with("the trusted proxy: '"),
               address);
  }
}

BOOST_AUTO_TEST_CASE(bad_tokens_are_refused_without_being_told) {
  for (const auto& [line, why] :
       std::vector<std::pair<std::string, std::string>>{
         {ann_token, "is not TOKEN USER ROLE"},
         {ann_token + " ann user more", "is not TOKEN USER ROLE"},
         {ann_token + " ann king", "has a role"},
         {"short ann user", "fewer than 16 characters"},
         {ann_token + " ann user\n" + ann_token + " bob user",
          "line 2 repeats a token"},
         {"# nothing", "there are none"}}) {
    const auto told = refusal_of({.tokens = line});
    BOOST_TEST(told.find(why) != std::string::npos, told);
    BOOST_TEST(told.find("0123456789") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(files_of_keys_that_cannot_be_read_are_refused) {
  BOOST_TEST(refusal_of({.tls_certificate = "none.pem"})
               .find("both a certificate and its key")
             != std::string::npos);
  BOOST_TEST(refusal_of({.tls_certificate = "none.pem", .tls_key = "none.pem"})
               .starts_with("the certificate 'none.pem' cannot be used: "));
}

BOOST_AUTO_TEST_SUITE_END()
