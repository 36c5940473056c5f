// One request of HTTP, as the connection has read it.

#pragma once

#include "troupe/server/http/target.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::serving {

struct request {
  /// `GET`, `POST`, ….
  std::string method;
  /// The target as it was sent.
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

  /// Returns the value of a header; null if there is none. `name` is in lower
  /// case.
  const std::string* header(std::string_view name) const;
};

} // namespace troupe::serving
