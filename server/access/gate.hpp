// Decides which requests get in, and whose they are.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/server/access/origin.hpp"
#include "troupe/server/access/proxy.hpp"
#include "troupe/server/access/request_rate.hpp"
#include "troupe/server/access/tokens.hpp"
#include "troupe/server/server_options.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::serving {

/// Thread-safe.
class gate {
public:
  /// Reads the options about callers. Fails with `errc::invalid_argument` if
  /// they leave an address open that others reach, or cannot be used.
  static result<gate> make(const server_options& options);

  gate(gate&& other) noexcept;

  /// Lets callers without a token read a path that holds no data of users, such
  /// as a page that asks for a token. Called before the first request.
  void open_path(std::string_view path) { open_paths_.emplace_back(path); }

  /// Returns the caller, or the answer to a request that does not get in. The
  /// head of the request is enough. Headers for the answer, also for a refusal,
  /// are added to `headers`.
  std::variant<caller, response> admit(const request& asked,
                                       header_list& headers);

private:
  explicit gate(const server_options& options);

  std::variant<caller, response> identify(const request& asked,
                                          bool is_proxied) const;

  // Returns the scheme of the page that a browser would have loaded from here.
  static std::string scheme_of(const request& asked, bool is_proxied);

  bool is_open(const request& asked) const;

  origin_rules origins_;
  token_table tokens_;
  std::optional<proxy> proxy_;
  double per_second_;
  request_rate rate_;
  std::vector<std::string> open_paths_;
};

} // namespace troupe::serving
