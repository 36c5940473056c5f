// HTTPS with a certificate that is made for the test.

#include "../models/tls_server.hpp"
#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(https, *boost::unit_test::timeout(120))

namespace {

const std::string ann_token = "ann-0123456789abcdef";

// A connection to `localhost` that trusts one certificate.
class tls_client {
public:
  tls_client(std::uint16_t port, const std::string& trusted)
    : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free),
      connection_(nullptr, &BIO_free_all) {
    block_broken_pipes();
    SSL_CTX_load_verify_locations(context_.get(), trusted.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    connection_.reset(BIO_new_ssl_connect(context_.get()));
    BIO_set_conn_hostname(connection_.get(),
                          fmt::format("127.0.0.1:{}", port).c_str());
    SSL* tls = nullptr;
    BIO_get_ssl(connection_.get(), &tls);
    SSL_set1_host(tls, "localhost");
  }

  bool connect() { return BIO_do_connect(connection_.get()) == 1; }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = BIO_write(
        connection_.get(), bytes.data(), static_cast<int>(bytes.size()));
      if (count <= 0)
        return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  /// Reads to the end of the connection.
  std::string read() {
    std::string received;
    char part[4'096];
    for (int count = 1; count > 0;) {
      count = BIO_read(connection_.get(), part, sizeof part);
      received.append(part, static_cast<std::size_t>(std::max(count, 0)));
    }
    return received;
  }

private:
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<BIO, void (*)(BIO*)> connection_;
};

struct fixture {
  fixture() : on({{"press", says("a", "owl")}}, options()) {}

  server_options options() const {
    server_options made;
    made.tokens = ann_token + " ann user\n";
    made.tls_certificate = certificate.file();
    made.tls_key = certificate.key_file();
    return made;
  }

  // Sends one request, and returns its whole answer.
  std::string ask(const std::string& line,
                  const std::string& headers,
                  const std::string& body = {}) const {
    tls_client client(on.server.port(), certificate.file());
    BOOST_TEST_REQUIRE(client.connect());
    client.send(fmt::format("{} HTTP/1.1\r\nhost: localhost:{}\r\n{}"
                            "content-length: {}\r\n\r\n{}",
                            line,
                            on.server.port(),
                            headers,
                            body.size(),
                            body));
    return client.read();
  }

  const std::string known
    = "authorization: Bearer " + ann_token + "\r\nconnection: close\r\n";
  server_certificate certificate;
  server_fixture on;
};

bool has(const std::string& answer, std::string_view words) {
  return answer.find(words) != std::string::npos;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(a_good_certificate_is_accepted, fixture) {
  BOOST_TEST(on.server.address().starts_with("https://127.0.0.1:"));
  BOOST_TEST(has(ask("GET /health", known), R"({"status":"ok"})"));
  const server_certificate other;
  BOOST_TEST(!tls_client(on.server.port(), other.file()).connect());
}

BOOST_FIXTURE_TEST_CASE(tokens_are_checked, fixture) {
  const std::string close = "connection: close\r\n";
  BOOST_TEST(ask("GET /list-apps", known).starts_with("HTTP/1.1 200 "));
  BOOST_TEST(ask("GET /list-apps", close).starts_with("HTTP/1.1 401 "));
  BOOST_TEST(ask("GET /list-apps",
                 "authorization: Bearer wrong-0123456789ab\r\n" + close)
               .starts_with("HTTP/1.1 401 "));
}

// A socket that is closed with unread bytes may destroy the answer on its way.
BOOST_FIXTURE_TEST_CASE(a_refusal_arrives_although_its_body_was_sent, fixture) {
  BOOST_TEST(ask("POST " + all_path, "", std::string(5'000'000, ' '))
               .starts_with("HTTP/1.1 401 "));
}

BOOST_FIXTURE_TEST_CASE(a_page_has_the_origin_https, fixture) {
  const auto status_of = [this](const std::string& scheme) {
    return ask("GET /list-apps",
               fmt::format("{}origin: {}://localhost:{}\r\n",
                           known,
                           scheme,
                           on.server.port()))
      .substr(9, 3);
  };
  BOOST_TEST(status_of("https") == "200");
  BOOST_TEST(status_of("http") == "403");
}

BOOST_FIXTURE_TEST_CASE(a_run_is_streamed, fixture) {
  ask("POST " + all_path, known, R"({"sessionId": "s1"})");
  const auto answer = ask("POST /run_sse",
                          known,
                          R"({"appName": "press", "userId": "ann", )"
                          R"("sessionId": "s1", "newMessage": )"
                          R"({"parts": [{"text": "go"}]}})");
  BOOST_TEST(answer.starts_with("HTTP/1.1 200 "));
  BOOST_TEST(has(answer, R"("text":"owl")"));
  BOOST_TEST(answer.ends_with("0\r\n\r\n"));
}

BOOST_FIXTURE_TEST_CASE(a_client_without_tls_is_closed, fixture) {
  on.client.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
  BOOST_TEST(on.client.is_closed_within(30s));
}

BOOST_AUTO_TEST_SUITE_END()
