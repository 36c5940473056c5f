#include "troupe/server/http/listener.hpp"

#include "troupe/server/http/connection.hpp"
#include "troupe/server/http/io.hpp"

#include <boost/asio/ssl/context.hpp>
#include <fmt/format.h>

#include <chrono>
#include <optional>

namespace troupe::serving {

namespace {

using boost::system::error_code;

std::string numeric(const std::string& address) {
  return address == "localhost" ? "127.0.0.1" : address;
}

result<void> load_keys(net::ssl::context& into, const key_files& keys) {
  error_code failure;
  into.set_options(net::ssl::context::default_workarounds
                     | net::ssl::context::no_sslv2 | net::ssl::context::no_sslv3
                     | net::ssl::context::no_tlsv1
                     | net::ssl::context::no_tlsv1_1,
                   failure);
  into.use_certificate_chain_file(keys.certificate, failure);
  if (failure)
    return error(errc::invalid_argument,
                 fmt::format("the certificate '{}' cannot be used: {}",
                             keys.certificate,
                             failure.message()));
  into.use_private_key_file(keys.key, net::ssl::context::pem, failure);
  if (failure)
    return error(errc::invalid_argument,
                 fmt::format("the key '{}' cannot be used: {}",
                             keys.key,
                             failure.message()));
  return {};
}

} // namespace

struct listener::parts : std::enable_shared_from_this<listener::parts> {
  explicit parts(std::shared_ptr<const connection_settings> with)
    : settings(std::move(with)),
      strand(net::make_strand(settings->threads->context())),
      acceptor(strand) {}

  result<void> bind(const std::string& address, std::uint16_t wanted) {
    error_code failure;
    const auto where = net::ip::make_address(numeric(address), failure);
    if (failure)
      return error(
        errc::invalid_argument,
        fmt::format("'{}' is not an address of IPv4 or IPv6", address));
    const tcp::endpoint place(where, wanted);
    acceptor.open(place.protocol(), failure);
    if (!failure)
      acceptor.set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure)
      acceptor.bind(place, failure);
    if (!failure)
      acceptor.listen(net::socket_base::max_listen_connections, failure);
    if (failure)
      return error(errc::invalid_argument,
                   fmt::format("cannot listen on {} port {}: {}",
                               address,
                               wanted,
                               failure.message()));
    port = acceptor.local_endpoint(failure).port();
    return {};
  }

  void accept() {
    acceptor.async_accept(net::make_strand(settings->threads->context()),
                          [self = shared_from_this()](const error_code& failure,
                                                      tcp::socket accepted) {
                            self->take(failure, std::move(accepted));
                          });
  }

  void take(const error_code& failure, tcp::socket accepted) {
    if (!acceptor.is_open())
      return;
    if (failure)
      return wait(); // No file descriptor is free, for example.
    if (keys)
      serve_encrypted(std::move(accepted), *keys, settings);
    else
      serve_plain(std::move(accepted), settings);
    accept();
  }

  void wait() {
    settings->threads->call_after(std::chrono::milliseconds(100),
                                  [self = shared_from_this()] {
                                    net::post(self->strand, [self] {
                                      if (self->acceptor.is_open())
                                        self->accept();
                                    });
                                  });
  }

  const std::shared_ptr<const connection_settings> settings;
  net::strand<net::io_context::executor_type> strand;
  net::basic_socket_acceptor<tcp, net::strand<net::io_context::executor_type>>
    acceptor;
  std::optional<net::ssl::context> keys;
  std::uint16_t port = 0;
};

listener::listener(std::shared_ptr<parts> made) : parts_(std::move(made)) {}

listener::~listener() = default;

result<std::shared_ptr<listener>>
listener::open(const std::string& address,
               std::uint16_t port,
               const key_files& keys,
               std::shared_ptr<const connection_settings> settings) {
  auto made = std::make_shared<parts>(std::move(settings));
  if (!keys.certificate.empty()) {
    made->keys.emplace(net::ssl::context::tls_server);
    if (auto loaded = load_keys(*made->keys, keys); !loaded)
      return loaded.error();
  }
  if (auto bound = made->bind(address, port); !bound)
    return bound.error();
  return std::shared_ptr<listener>(new listener(std::move(made)));
}

void listener::start() {
  net::post(parts_->strand, [parts = parts_] { parts->accept(); });
}

std::uint16_t listener::port() const noexcept {
  return parts_->port;
}

void listener::close() {
  net::post(parts_->strand, [parts = parts_] {
    error_code ignored;
    parts->acceptor.close(ignored);
  });
}

bool is_loopback(const std::string& address) {
  error_code failure;
  const auto where = net::ip::make_address(numeric(address), failure);
  return !failure && where.is_loopback();
}

} // namespace troupe::serving
