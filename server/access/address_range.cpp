#include "troupe/server/access/address_range.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace troupe::serving {

namespace {

using address_bytes = std::array<std::uint8_t, 16>;

// Where an address of IPv4 begins in its form of IPv6.
constexpr std::size_t short_begin = 12;

bool is_short(const std::string& text) {
  return text.find(':') == std::string::npos;
}

std::optional<address_bytes> read_address(const std::string& text) {
  address_bytes found{};
  if (is_short(text)) {
    found[10] = found[11] = 0xff;
    if (::inet_pton(AF_INET, text.c_str(), &found[short_begin]) != 1)
      return std::nullopt;
    return found;
  }
  // Without the name of an interface, as in `fe80::1%eth0`.
  const auto plain = text.substr(0, text.find('%'));
  if (::inet_pton(AF_INET6, plain.c_str(), found.data()) != 1)
    return std::nullopt;
  return found;
}

// The number of leading bits that are equal.
unsigned shared_bits(const address_bytes& left, const address_bytes& right) {
  unsigned count = 0;
  for (; count < 128; ++count) {
    const auto mask = 0x80U >> (count % 8);
    if (((left[count / 8] ^ right[count / 8]) & mask) != 0)
      break;
  }
  return count;
}

} // namespace

result<address_range> address_range::parse(const std::string& text) {
  const error bad(errc::invalid_argument,
                  fmt::format("'{}' is no address of IPv4 or IPv6, and no "
                              "block of them such as 10.0.0.0/8",
                              text));
  const auto slash = std::min(text.find('/'), text.size());
  auto name = text.substr(0, slash);
  if (name == "localhost")
    name = "127.0.0.1";
  const auto first = read_address(name);
  if (!first)
    return bad;
  address_range made;
  made.first_ = *first;
  if (slash == text.size())
    return made;
  const unsigned width = is_short(name) ? 32 : 128;
  const auto* end = text.data() + text.size();
  unsigned bits = 0;
  const auto [rest, failed]
    = std::from_chars(text.data() + slash + 1, end, bits);
  if (failed != std::errc() || rest != end || bits > width)
    return bad;
  made.bits_ = 128 - width + bits;
  return made;
}

bool address_range::contains(const std::string& address) const {
  const auto read = read_address(address);
  return read && shared_bits(first_, *read) >= bits_;
}

} // namespace troupe::serving
