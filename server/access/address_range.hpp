// Addresses that are compared as numbers, so that each has one meaning however
// it is written.

#pragma once

#include "troupe/core/error.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace troupe::serving {

/// One address, or a block of them. An address of IPv4 is the same as its form
/// in IPv6, `::ffff:127.0.0.1`.
class address_range {
public:
  /// Reads `10.0.0.1`, `::1`, `localhost`, or a block such as `10.0.0.0/8`.
  /// Fails with `errc::invalid_argument`.
  static result<address_range> parse(const std::string& text);

  /// Returns true if the range has the numeric address.
  bool contains(const std::string& address) const;

private:
  using address_bytes = std::array<std::uint8_t, 16>;

  address_bytes first_{};
  unsigned bits_ = 128; // Those that all addresses of the range share.
};

} // namespace troupe::serving
