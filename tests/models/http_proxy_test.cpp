#include "troupe/models/http/client.hpp"

#include "../outcome.hpp"
#include "http2_server.hpp"
#include "http_server.hpp"
#include "http_witness.hpp"
#include "proxy_server.hpp"
#include "tls_server.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using namespace std::chrono_literals;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

/// The environment variables that curl reads: only those that a case sets,
/// independent of the machine. Clients read them on their threads, so no client
/// exists while they change.
class environment_of_proxies {
public:
  environment_of_proxies() {
    for (const auto* name : names)
      if (const char* found = std::getenv(name)) {
        before_.emplace_back(name, found);
        ::unsetenv(name);
      }
  }

  environment_of_proxies(const environment_of_proxies&) = delete;
  environment_of_proxies& operator=(const environment_of_proxies&) = delete;

  ~environment_of_proxies() {
    for (const auto* name : names)
      ::unsetenv(name);
    for (const auto& [name, text] : before_)
      ::setenv(name.c_str(), text.c_str(), 1);
  }

  static void set(const char* name, const std::string& text) {
    ::setenv(name, text.c_str(), 1);
  }

private:
  static constexpr std::array names{"http_proxy",
                                    "HTTP_PROXY",
                                    "https_proxy",
                                    "HTTPS_PROXY",
                                    "all_proxy",
                                    "ALL_PROXY",
                                    "no_proxy",
                                    "NO_PROXY"};

  std::vector<std::pair<std::string, std::string>> before_;
};

/// Makes a request whose secrets must not appear in any text, nor in the
/// request for a tunnel.
http_request secret_request(const std::string& url) {
  auto request = request_to(url + "/p?key=s3cret");
  request.headers = {{"Authorization", "Bearer s3cret"}};
  request.body = "s3cret";
  return request;
}

std::string with_password(std::string url) {
  return url.insert(std::string_view("http://").size(), "ann:pa55@");
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(http_proxies, environment_of_proxies)

BOOST_AUTO_TEST_CASE(a_plain_request_is_passed_on_with_its_answer) {
  http_server server({say(chunked_head() + chunk("one ")),
                      hold(),
                      say(chunk("two") + "0\r\n\r\n")});
  proxy_server proxy;
  witness told;
  http_client client({.proxy = proxy.url("ann:pa55@")});
  auto request
    = request_to(fmt::format("http://host.invalid:{}/p?key=k", server.port()));
  request.headers = {{"X-Api-Key", "k"}};
  request.body = "question";
  client.start(request, told.handler());
  told.wait_for_body("one ");
  server.let_go();
  BOOST_TEST(text_of(told.end()) == "ok ");
  BOOST_TEST(told.body() == "one two");
  const auto asked = proxy.requests().at(0);
  BOOST_TEST(asked.line
             == fmt::format("POST http://host.invalid:{}/p?key=k HTTP/1.1",
                            server.port()));
  // `printf ann:pa55 | base64`.
  BOOST_TEST(asked.header("proxy-authorization") == "Basic YW5uOnBhNTU=");
  const auto served = server.requests().at(0);
  BOOST_TEST(served.line == "POST /p?key=k HTTP/1.1");
  BOOST_TEST(served.body == "question");
  BOOST_TEST(served.header("x-api-key") == "k");
}

BOOST_AUTO_TEST_CASE(tls_goes_through_a_tunnel_from_end_to_end) {
  tls_server server;
  proxy_server proxy;
  witness told;
  http_client client(
    {.certificates = server.certificate(), .proxy = proxy.url("ann:pa55@")});
  auto request = request_to(server.url());
  request.headers = {{"X-Api-Key", "s3cret"}};
  client.start(request, told.handler());
  BOOST_TEST(text_of(told.end()) == "ok ");
  BOOST_TEST(told.body() == "in private");
  BOOST_REQUIRE(proxy.requests().size() == 1U);
  const auto asked = proxy.requests().at(0);
  BOOST_TEST(asked.line.starts_with("CONNECT localhost:"), asked.line);
  BOOST_TEST(asked.header("proxy-authorization") == "Basic YW5uOnBhNTU=");
  BOOST_TEST(!has(proxy.seen(), "s3cret"));
  BOOST_TEST(!has(proxy.seen(), "in private"));
}

BOOST_AUTO_TEST_CASE(a_certificate_is_verified_behind_a_proxy_as_well) {
  tls_server server;
  proxy_server proxy;
  const auto unknown
    = text_of(end_of(request_to(server.url()), {.proxy = proxy.url()}));
  BOOST_TEST(unknown.starts_with("model_failed request to localhost:"),
             unknown);
  BOOST_TEST(has(unknown, "certificate"), unknown);
  const auto of_another = text_of(
    end_of(request_to(server.url("host.invalid")),
           {.certificates = server.certificate(), .proxy = proxy.url()}));
  BOOST_TEST(of_another.starts_with("model_failed request to host.invalid:"),
             of_another);
  BOOST_TEST(proxy.requests().size() == 2U);
}

BOOST_AUTO_TEST_CASE(requests_over_http2_share_few_tunnels) {
  http2_server server({hold(), say("text")});
  proxy_server proxy;
  std::vector<witness> told(200);
  http_client client(
    {.certificates = server.certificate(), .proxy = proxy.url()});
  for (auto& each : told)
    client.start(request_to(server.url()), each.handler());
  server.wait_for_requests(200);
  BOOST_TEST(proxy.requests().size() == 2U);
  server.let_go();
  for (auto& each : told)
    BOOST_TEST(text_of(each.end()) == "ok ");
}

BOOST_AUTO_TEST_CASE(a_tunnel_that_is_lost_fails_all_within) {
  http2_server server({say("part"), hold()});
  proxy_server proxy;
  std::vector<witness> told(20);
  http_client client(
    {.certificates = server.certificate(), .proxy = proxy.url()});
  for (auto& each : told)
    client.start(request_to(server.url()), each.handler());
  for (auto& each : told)
    each.wait_for_body("part");
  proxy.drop();
  for (auto& each : told) {
    BOOST_TEST(code_of(each.end()) == "model_failed");
    BOOST_TEST(each.ends() == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_request_is_cancelled_while_its_tunnel_is_made) {
  http_server proxy({hold()});
  witness told;
  http_client client({.proxy = proxy.url()});
  auto request = request_to("https://host.invalid/");
  // The time-out is longer than the patience of the test.
  request.timeouts.connect = 120s;
  const auto call = client.start(request, told.handler());
  proxy.wait_for_requests(1);
  call.cancel();
  BOOST_TEST(code_of(told.end()) == "cancelled");
  proxy.wait_for_hang_ups(1);
}

// The second proxy makes a tunnel to no server. The proxy's reply is not the
// answer, so the silence after it is no pause of the answer.
BOOST_DATA_TEST_CASE(a_proxy_that_leads_nowhere_is_given_up,
                     data::make({"", "HTTP/1.1 200 Connected\r\n\r\n"}),
                     said) {
  http_server proxy({say(said), hold()});
  auto request = secret_request("https://host.invalid");
  request.timeouts.connect = 100ms;
  request.timeouts.between = 1ms;
  const auto ended
    = text_of(end_of(request, {.proxy = with_password(proxy.url())}));
  BOOST_TEST(ended.starts_with("deadline_exceeded "), ended);
  BOOST_TEST(has(ended, "no connection after 100 ms"), ended);
  BOOST_TEST(!has(ended, "pa55"), ended);
}

struct refusal {
  const char* what;
  server_script script;
  const char* reason;

  friend std::ostream& operator<<(std::ostream& out, const refusal& it) {
    return out << it.what;
  }
};

const std::vector<refusal> refusals{
  {"403", {say(whole("s3cret pa55", 403))}, "403"},
  {"407 without a word of how", {say(whole("", 407))}, "407"},
  {"407",
   {say(whole("no", 407, "Proxy-Authenticate: Basic realm=\"pa55\"\r\n"))},
   "407"},
  {"407, and the end",
   {say(whole("no",
              407,
              "Proxy-Authenticate: Basic realm=\"pa55\"\r\n"
              "Connection: close\r\n")),
    close()},
   "407"},
  {"502 in chunks",
   {say("HTTP/1.1 502 No\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunk("s3cret") + "0\r\n\r\n")},
   "502"},
  {"a redirect",
   {say(whole("", 302, "Location: https://s3cret.invalid/\r\n"))},
   "302"},
  {"FIN at once", {close()}, ""},
  {"RST at once", {reset()}, ""},
  {"FIN in the head", {say("HTTP/1.1 200 Conn"), close()}, ""},
  {"no HTTP", {say("SSH-2.0-OpenSSH_9.2\r\n\r\n"), close()}, ""},
  {"no TLS", {say("HTTP/1.1 200 Connected\r\n\r\n"), say(whole("s3cret"))}, ""},
  {"FIN in the tunnel", {say("HTTP/1.1 200 Connected\r\n\r\n"), close()}, ""}};

BOOST_DATA_TEST_CASE(a_proxy_that_makes_no_tunnel_is_a_failure,
                     data::make(refusals),
                     refused) {
  http_server proxy(refused.script);
  witness told;
  http_client client({.proxy = with_password(proxy.url())});
  client.start(secret_request("https://host.invalid"), told.handler());
  const auto ended = text_of(told.end());
  BOOST_TEST(ended.starts_with("model_failed request to host.invalid: "),
             ended);
  BOOST_TEST(has(ended, refused.reason), ended);
  BOOST_TEST(!has(ended, "s3cret"), ended);
  BOOST_TEST(!has(ended, "pa55"), ended);
  // The reply of the proxy is no answer.
  BOOST_TEST(told.heads() == 0);
  BOOST_TEST(told.body().empty());
  BOOST_TEST(told.ends() == 1);
  for (const auto& asked : proxy.requests()) {
    BOOST_TEST(asked.line == "CONNECT host.invalid:443 HTTP/1.1");
    BOOST_TEST(asked.header("authorization").empty());
    BOOST_TEST(asked.body.empty());
  }
}

// The proxy itself answers a plain request.
BOOST_AUTO_TEST_CASE(what_a_proxy_says_to_a_plain_request_is_the_answer) {
  http_server proxy({say(whole("no", 407))});
  witness told;
  http_client client({.proxy = proxy.url()});
  client.start(request_to("http://host.invalid/"), told.handler());
  BOOST_TEST(text_of(told.end()) == "ok ");
  BOOST_TEST(told.status() == 407);
  BOOST_TEST(told.body() == "no");
}

BOOST_DATA_TEST_CASE(a_proxy_that_is_away_is_a_failure,
                     data::make({"http", "https"}),
                     scheme) {
  http_client_options options;
  options.proxy = with_password(refusing_url());
  const auto ended = text_of(
    end_of(secret_request(fmt::format("{}://host.invalid", scheme)), options));
  BOOST_TEST(ended.starts_with("model_failed request to host.invalid: "),
             ended);
  BOOST_TEST(!has(ended, "s3cret"), ended);
  BOOST_TEST(!has(ended, "pa55"), ended);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(proxies_of_the_environment, environment_of_proxies)

struct variable {
  const char* name;
  const char* scheme;
  bool counts = true;

  friend std::ostream& operator<<(std::ostream& out, const variable& it) {
    return out << it.name << " of " << it.scheme;
  }
};

// `HTTP_PROXY` is ignored, because in a CGI program it is a header of the
// request.
const std::vector<variable> variables{{"https_proxy", "https"},
                                      {"HTTPS_PROXY", "https"},
                                      {"all_proxy", "https"},
                                      {"ALL_PROXY", "https"},
                                      {"http_proxy", "https", false},
                                      {"http_proxy", "http"},
                                      {"all_proxy", "http"},
                                      {"ALL_PROXY", "http"},
                                      {"HTTP_PROXY", "http", false},
                                      {"HTTPS_PROXY", "http", false}};

BOOST_DATA_TEST_CASE(a_variable_names_the_proxy_of_a_scheme,
                     data::make(variables),
                     named) {
  const bool is_tls = named.scheme == std::string("https");
  tls_server over_tls;
  http_server plain({say(whole("in public"))});
  proxy_server proxy;
  set(named.name, proxy.url("ann:pa55@"));
  witness told;
  http_client client({.certificates = over_tls.certificate()});
  client.start(request_to(is_tls ? over_tls.url() : plain.url()),
               told.handler());
  BOOST_TEST(text_of(told.end()) == "ok ");
  BOOST_TEST(told.body() == (is_tls ? "in private" : "in public"));
  const auto asked = proxy.requests();
  BOOST_TEST(asked.size() == (named.counts ? 1U : 0U));
  for (const auto& request : asked)
    BOOST_TEST(request.header("proxy-authorization") == "Basic YW5uOnBhNTU=");
}

struct setting {
  const char* name;
  const char* text;
  bool counts = true;

  friend std::ostream& operator<<(std::ostream& out, const setting& it) {
    return out << it.name << "=" << it.text;
  }
};

const std::vector<setting> exceptions{{"no_proxy", "localhost"},
                                      {"NO_PROXY", "localhost"},
                                      {"NO_PROXY", "other.invalid,localhost"},
                                      {"NO_PROXY", "*"},
                                      {"NO_PROXY", "other.invalid", false},
                                      {"NO_PROXY", "host", false}};

BOOST_DATA_TEST_CASE(a_host_may_be_excepted, data::make(exceptions), excepted) {
  tls_server server;
  proxy_server proxy;
  set("HTTPS_PROXY", proxy.url());
  set(excepted.name, excepted.text);
  BOOST_TEST(text_of(end_of(request_to(server.url()),
                            {.certificates = server.certificate()}))
             == "ok ");
  BOOST_TEST(proxy.requests().size() == (excepted.counts ? 0U : 1U));
}

const std::vector<setting> beaten{{"https_proxy", "http://127.0.0.1:1"},
                                  {"HTTPS_PROXY", "http://127.0.0.1:1"},
                                  {"ALL_PROXY", "http://127.0.0.1:1"},
                                  {"no_proxy", "*"},
                                  {"NO_PROXY", "localhost"}};

BOOST_DATA_TEST_CASE(the_option_beats_all_variables,
                     data::make(beaten),
                     other) {
  tls_server server;
  proxy_server proxy;
  set(other.name, other.text);
  BOOST_TEST(text_of(end_of(
               request_to(server.url()),
               {.certificates = server.certificate(), .proxy = proxy.url()}))
             == "ok ");
  BOOST_TEST(proxy.requests().size() == 1U);
}

BOOST_DATA_TEST_CASE(no_secret_of_a_variable_is_told,
                     data::make({"http://ann:pa55@127.0.0.1:1",
                                 "bogus://ann:pa55@127.0.0.1:1",
                                 "ann:pa55@:::",
                                 "//pa55"}),
                     proxy) {
  set("HTTPS_PROXY", proxy);
  const auto ended = text_of(end_of(secret_request("https://host.invalid")));
  BOOST_TEST(ended.starts_with("model_failed request to host.invalid: "),
             ended);
  BOOST_TEST(!has(ended, "s3cret"), ended);
  BOOST_TEST(!has(ended, "pa55"), ended);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe
