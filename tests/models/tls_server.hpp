// A server for `https://localhost` with a certificate that nobody vouches for.

#pragma once

#include "../stores/temporary_folder.hpp"
#include <openssl/ssl.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace troupe::testing {

/// Answers each request with the same; one connection at a time, and one
/// request on each. The certificate is made by the `openssl` program.
class tls_server {
public:
  tls_server();
  tls_server(const tls_server&) = delete;
  tls_server& operator=(const tls_server&) = delete;
  ~tls_server();

  std::string url(std::string_view host = "localhost") const;

  /// The file that has to be trusted.
  std::string certificate() const;

private:
  void run();
  void serve(int socket);

  temporary_folder folder_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  int listener_;
  int port_;
  std::atomic<bool> quits_{false};
  std::thread thread_;
};

} // namespace troupe::testing
