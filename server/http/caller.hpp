// The sender of a request, and its rights.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::serving {

/// A wider right includes the narrower ones.
enum class role : std::uint8_t {
  reader, ///< Reads the data of its user.
  user,   ///< Reads and writes the data of its user, and runs agents.
  admin,  ///< Reads and writes all data.
};

struct caller {
  /// The user whose data the caller may see; `*` for all users.
  std::string user = "*";
  role rights = role::admin;

  bool sees_all() const { return rights == role::admin || user == "*"; }

  bool sees(std::string_view name) const { return sees_all() || user == name; }

  bool writes() const noexcept { return rights != role::reader; }

  /// True if the caller may write keys and events that other users or the
  /// agents rely on.
  bool is_trusted() const noexcept { return rights == role::admin; }
};

} // namespace troupe::serving
