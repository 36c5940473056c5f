// The rules that place each app in one of several databases, as a file of text
// holds them.
//
// One line is one rule: apps, then the address of their database. `press` is
// one app, `press-*` all apps whose names begin so, and `*` all others. The
// longest match counts, so the order of the lines does not matter. A rule with
// several named databases divides its apps among them:
//
//     # apps     database
//     press      postgres://db1/troupe
//     shop-*     "sqlite:/var/lib/my shop/apps.db"
//     *          one=postgres://db2/troupe two=postgres://db3/troupe

#pragma once

#include "troupe/core/error.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// One database of a rule.
struct app_share {
  /// Name of the database in the rule; empty if the rule has only one.
  std::string name;
  /// Index of the database in `app_rules::addresses`.
  std::size_t database = 0;
};

/// Rules without a flaw. A value; all calls that do not change it are safe on
/// any thread.
class app_rules {
public:
  /// Reads the rules from the text of a file. `file` is its path, for errors.
  /// Fails with `errc::invalid_argument`; the error has the line and the apps
  /// of the rule, but no address, since that may hold a password.
  static result<app_rules> read(std::string_view text, const std::string& file);

  /// The addresses of the databases, each once, in the order of the lines.
  const std::vector<std::string>& addresses() const noexcept {
    return addresses_;
  }

  /// Returns the index of the database of an app. A rule with several databases
  /// takes the one with the highest hash of its name and the app's, so a new
  /// database takes apps from each of the others, and no other app moves.
  std::size_t database_of(std::string_view app) const noexcept;

private:
  friend class rule_reader;
  using shares = std::vector<app_share>;

  app_rules() = default;
  const shares& shares_of(std::string_view app) const noexcept;

  std::vector<std::string> addresses_;
  std::map<std::string, shares, std::less<>> apps_;
  // By prefix; the empty one is that of all other apps.
  std::map<std::string, shares, std::less<>> prefixes_;
  // The sizes of the prefixes, the largest first; each once.
  std::vector<std::size_t> sizes_;
};

} // namespace troupe
