// A server for `https://localhost` with a certificate that no authority has
// signed.

#pragma once

#include "../stores/temporary_folder.hpp"
#include <openssl/ssl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace troupe::testing {

enum class certificate_age : std::uint8_t { fresh, expired };

/// A certificate for `localhost`, made by the `openssl` program.
class server_certificate {
public:
  explicit server_certificate(certificate_age age = certificate_age::fresh);

  /// The certificate file that a client has to trust.
  std::string file() const;

  /// The file of its key.
  std::string key_file() const;

  /// The context of servers with this certificate.
  SSL_CTX* context() const noexcept { return context_.get(); }

private:
  temporary_folder folder_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
};

/// Blocks SIGPIPE on this thread, because OpenSSL writes to connections that
/// the client has closed.
void block_broken_pipes();

/// Gives each request the same answer. Serves one connection at a time, and one
/// request on each.
class tls_server {
public:
  explicit tls_server(certificate_age age = certificate_age::fresh);
  tls_server(const tls_server&) = delete;
  tls_server& operator=(const tls_server&) = delete;
  ~tls_server();

  std::string url(std::string_view host = "localhost") const;

  /// Scheme, host and port.
  std::string base_url(std::string_view host = "localhost") const;

  /// The certificate file that a client has to trust.
  std::string certificate() const { return certificate_.file(); }

private:
  void run();
  void serve(int socket);

  const server_certificate certificate_;
  int listener_;
  int port_;
  std::atomic<bool> quits_{false};
  std::thread thread_;
};

} // namespace troupe::testing
