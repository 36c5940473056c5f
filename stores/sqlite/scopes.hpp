// The existing owners and their revisions: a cache of the table `scopes` for
// the writer.

#pragma once

#include "troupe/stores/shared/log_tail.hpp"
#include "troupe/stores/sqlite/database.hpp"

#include <string>
#include <string_view>
#include <unordered_map>

namespace troupe {

/// An owner's names as views.
struct owner_view {
  std::string_view app;
  std::string_view user = {};
  std::string_view session = {};

  explicit operator owner_name() const {
    return {std::string(app), std::string(user), std::string(session)};
  }
};

struct known_scope {
  std::int64_t id = 0; ///< 0 before it is written.
  /// -1 for a session whose creation is not folded.
  std::int64_t revision = 0;
  bool is_removed = false;
};

/// A cache of the table `scopes`. It is correct as long as no other process
/// writes to the file; call `forget_all` after that.
class sqlite_scopes {
public:
  sqlite_scopes(const sqlite_database& database, log_tail& tail);

  /// Finds an owner; null if it does not exist. The pointer is valid until an
  /// owner is forgotten.
  known_scope* find(const owner_view& owner);

  /// Adds an owner that was not found; it has no row yet.
  known_scope& add(const owner_view& owner);

  /// Inserts the owner's row and sets its id.
  void insert(const owner_view& owner,
              known_scope& added,
              std::int64_t revision,
              std::int64_t updated);

  void erase(std::int64_t id) { erase_.run(id); }

  /// Takes the names from the row of a removed session. It stays for the forks
  /// that share its events.
  void hide(std::int64_t id) { hide_.run(id, std::to_string(id)); }

  /// Marks the owner as removed; it is not found from now on.
  void bury(const owner_view& owner);

  /// Marks the user and all of its sessions as removed, cached or not.
  void bury_user(const owner_view& user);

  /// Lists the session ids of a user.
  std::vector<std::string> sessions_of(const owner_view& user);

  /// Finds the owner with that id, if it still exists.
  std::optional<owner_name> name_of(std::int64_t id);

  void forget_all() { known_.clear(); }

  /// Limits the size of the cache. Pointers from `find` and `add` become
  /// invalid.
  void shrink();

private:
  struct name_hash {
    using is_transparent = void;

    std::size_t operator()(const owner_view& owner) const noexcept;
    std::size_t operator()(const owner_name& owner) const noexcept;
  };

  struct name_equal {
    using is_transparent = void;

    bool operator()(const owner_name& left,
                    const owner_name& right) const noexcept {
      return left == right;
    }

    bool operator()(const owner_view& left,
                    const owner_name& right) const noexcept;

    bool operator()(const owner_name& left,
                    const owner_view& right) const noexcept {
      return (*this)(right, left);
    }
  };

  log_tail& tail_;      // Belongs to the store, which outlives this.
  sqlite3* connection_; // Belongs to the writer, which outlives this.
  std::unordered_map<owner_name, known_scope, name_hash, name_equal> known_;
  sqlite_statement find_;
  sqlite_statement insert_;
  sqlite_statement erase_;
  sqlite_statement hide_;
  sqlite_statement sessions_;
  sqlite_statement name_;
};

} // namespace troupe
