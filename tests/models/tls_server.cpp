#include "tls_server.hpp"

#include "http_server.hpp"
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace troupe::testing {

server_certificate::server_certificate()
  : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
  const auto key = (folder_.path() / "key.pem").string();
  const auto make = fmt::format(
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
    "-days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost "
    "-keyout {} -out {} 2> /dev/null",
    key,
    file());
  if (std::system(make.c_str()) != 0
      || SSL_CTX_use_certificate_chain_file(context_.get(), file().c_str()) != 1
      || SSL_CTX_use_PrivateKey_file(
           context_.get(), key.c_str(), SSL_FILETYPE_PEM)
           != 1)
    throw std::runtime_error("no certificate: " + make);
}

std::string server_certificate::file() const {
  return (folder_.path() / "certificate.pem").string();
}

void block_broken_pipes() {
  sigset_t broken_pipes;
  sigemptyset(&broken_pipes);
  sigaddset(&broken_pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipes, nullptr);
}

tls_server::tls_server() : listener_(0), port_(0) {
  std::tie(listener_, port_) = listen_on_loopback(16, blocking::yes);
  thread_ = std::thread([this] { run(); });
}

tls_server::~tls_server() {
  quits_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

std::string tls_server::url(std::string_view host) const {
  return fmt::format("https://{}:{}/?key=s3cret", host, port_);
}

void tls_server::run() {
  block_broken_pipes();
  while (!quits_) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0)
      continue;
    // Whoever connects and says nothing does not keep the test from its end.
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    serve(socket);
    ::close(socket);
  }
}

void tls_server::serve(int socket) {
  const std::unique_ptr<SSL, void (*)(SSL*)> tls(
    SSL_new(certificate_.context()), &SSL_free);
  SSL_set_fd(tls.get(), socket);
  if (SSL_accept(tls.get()) != 1)
    return;
  std::array<char, 4096> buffer{};
  std::string received;
  while (received.find("\r\n\r\n") == std::string::npos) {
    const int size
      = SSL_read(tls.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (size <= 0)
      return;
    received.append(buffer.data(), static_cast<std::size_t>(size));
  }
  const auto answer = whole("in private", 200, "Connection: close\r\n");
  SSL_write(tls.get(), answer.data(), static_cast<int>(answer.size()));
  SSL_shutdown(tls.get());
}

} // namespace troupe::testing
