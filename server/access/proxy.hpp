// A proxy before the server, and the headers that count when it sends them.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/server/access/address_range.hpp"
#include "troupe/server/http/request.hpp"
#include "troupe/server/http/response.hpp"

#include <optional>
#include <string>

namespace troupe::serving {

/// Immutable, so it is safe from any thread.
class proxy {
public:
  /// `address` may be a block. `user_header` names the user; empty: none.
  static result<proxy> make(const std::string& address,
                            const std::string& user_header);

  /// Returns true if a request comes from the proxy.
  bool sent(const request& asked) const {
    return addresses_.contains(asked.peer);
  }

  bool names_users() const noexcept { return !user_header_.empty(); }

  /// Returns the user that the proxy names; null without the header.
  const std::string* user_of(const request& asked) const {
    return asked.header(user_header_);
  }

  /// Returns the scheme by which the client has reached the proxy, in lower
  /// case, if `X-Forwarded-Proto` or `Forwarded` has it.
  static std::optional<std::string> scheme_of(const request& asked);

  /// Returns the refusal of a request that has one of these headers twice: one
  /// of them may be of the client.
  std::optional<response> check_headers(const request& asked) const;

private:
  proxy(address_range addresses, std::string user_header);

  address_range addresses_;
  std::string user_header_; // In lower case.
};

} // namespace troupe::serving
