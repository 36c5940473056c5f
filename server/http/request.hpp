// One request of HTTP, as the connection has read it.

#pragma once

#include "troupe/server/http/target.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::serving {

/// Returns text with the capital letters of ASCII made small.
std::string lower_case(std::string_view text);

struct request {
  /// `GET`, `POST`, ….
  std::string method;
  /// The target as it was sent, without a scheme and a host.
  std::string raw_target;
  /// The decoded target.
  request_target target;
  /// Names in lower case, values without blanks around them.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  /// Numeric address of the other end of the connection.
  std::string peer;
  /// True on a connection with TLS.
  bool is_encrypted = false;

  /// True for a request that changes nothing.
  bool only_reads() const { return method == "GET" || method == "HEAD"; }

  /// Returns the value of a header; null if there is none. `name` is in lower
  /// case.
  const std::string* header(std::string_view name) const;
};

} // namespace troupe::serving
