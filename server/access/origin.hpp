// Protects a server of this machine from pages of other sites: the rules of ADK
// for `Host` and `Origin`, and headers of CORS.

#pragma once

#include "troupe/server/http/request.hpp"
#include "troupe/server/http/response.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::serving {

struct origin_rules {
  /// True if only names of this machine are allowed in `Host`, because the
  /// server listens on loopback alone. It keeps out names of other sites that
  /// were made to lead here.
  bool loopback_only = true;
  /// True if the server trusts a proxy. `Host` may then have the name of the
  /// proxy's site, if `allowed` names the site.
  bool is_behind_proxy = false;
  /// Origins of other sites whose pages may send requests, as
  /// `https://example.com`; `*` for all.
  std::vector<std::string> allowed = {};
};

/// Returns the refusal of a request from a host or an origin that is not
/// allowed. `scheme` is that of the pages of this server.
std::optional<response> check_origin(const request& asked,
                                     std::string_view scheme,
                                     const origin_rules& rules);

/// Adds the headers of CORS for an allowed origin. Returns the answer to a
/// preflight request, which goes no further.
std::optional<response> allow_origin(const request& asked,
                                     const origin_rules& rules,
                                     header_list& headers);

/// Returns the name in `host:port` without the port: `[::1]` without brackets.
std::string_view host_name(std::string_view authority);

} // namespace troupe::serving
