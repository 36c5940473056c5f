#include "tls_server.hpp"

#include "http_server.hpp"
#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace troupe::testing {

namespace {

constexpr long day_seconds = 24 * 60 * 60;

// Puts the end of the certificate into the past, signs it again, and writes it.
void expire(SSL_CTX* context, const std::string& file) {
  const std::unique_ptr<X509, void (*)(X509*)> made(
    X509_dup(SSL_CTX_get0_certificate(context)), &X509_free);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -2 * day_seconds);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), -day_seconds);
  const std::unique_ptr<BIO, int (*)(BIO*)> written(
    BIO_new_file(file.c_str(), "w"), &BIO_free);
  if (X509_sign(made.get(), SSL_CTX_get0_privatekey(context), EVP_sha256()) == 0
      || PEM_write_bio_X509(written.get(), made.get()) != 1
      || SSL_CTX_use_certificate(context, made.get()) != 1)
    throw std::runtime_error("no expired certificate: " + file);
}

} // namespace

server_certificate::server_certificate(certificate_age age)
  : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
  const auto key = key_file();
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
  if (age == certificate_age::expired)
    expire(context_.get(), file());
}

std::string server_certificate::key_file() const {
  return (folder_.path() / "key.pem").string();
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

tls_server::tls_server(certificate_age age)
  : certificate_(age),
    listener_(0),
    port_(0) {
  std::tie(listener_, port_) = listen_on_loopback(16, blocking::on);
  thread_ = std::thread([this] { run(); });
}

tls_server::~tls_server() {
  quits_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

std::string tls_server::url(std::string_view host) const {
  return base_url(host) + "/?key=s3cret";
}

std::string tls_server::base_url(std::string_view host) const {
  return fmt::format("https://{}:{}", host, port_);
}

void tls_server::run() {
  block_broken_pipes();
  while (!quits_) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0)
      continue;
    // A silent client must not block the end of the test.
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
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
