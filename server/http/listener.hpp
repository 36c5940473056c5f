// The port of a server: accepts connections until it is closed.

#pragma once

#include "troupe/core/error.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::serving {

struct connection_settings;

/// Files of a certificate and its key, in PEM.
struct key_files {
  std::string certificate;
  std::string key;
};

/// Thread-safe.
class listener {
public:
  /// Listens on an address of IPv4 or IPv6. With files of keys, connections use
  /// TLS. Fails with `errc::invalid_argument` on a bad address, on an address
  /// that is in use, and on files that cannot be read.
  static result<std::shared_ptr<listener>>
  open(const std::string& address,
       std::uint16_t port,
       const key_files& keys,
       std::shared_ptr<const connection_settings> settings);

  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener();

  /// Accepts from now on.
  void start();

  std::uint16_t port() const noexcept;

  /// Accepts no more.
  void close();

private:
  struct parts;

  explicit listener(std::shared_ptr<parts> made);

  std::shared_ptr<parts> parts_;
};

/// Returns true if only programs on the same machine reach the address.
bool is_loopback(const std::string& address);

} // namespace troupe::serving
