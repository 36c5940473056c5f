// The tokens that callers send, with their users and roles.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/server/http/caller.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::serving {

/// Immutable, so it is safe from any thread.
class token_table {
public:
  token_table() = default;

  /// Reads lines `TOKEN USER ROLE`. Empty lines and those that start with `#`
  /// are skipped. Fails with `errc::invalid_argument`, naming the line and
  /// never the token.
  static result<token_table> parse(std::string_view text);

  bool empty() const noexcept { return entries_.empty(); }

  /// Returns the caller of a token; nothing for an unknown one. The time does
  /// not tell how much of a token is right.
  std::optional<caller> find(std::string_view token) const;

private:
  struct entry {
    std::string token;
    caller who;
  };

  std::vector<entry> entries_;
};

} // namespace troupe::serving
