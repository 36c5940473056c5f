// Which owners there are, and at which revision: the table `scopes`, as the
// writer knows it.

#pragma once

#include "troupe/stores/log_tail.hpp"
#include "troupe/stores/sqlite_database.hpp"

#include <string>
#include <string_view>
#include <unordered_map>

namespace troupe {

/// The names of an owner, elsewhere.
struct owner_view {
  std::string_view app;
  std::string_view user = {};
  std::string_view session = {};

  explicit operator owner_name() const {
    return {std::string(app), std::string(user), std::string(session)};
  }
};

struct known_scope {
  std::int64_t id = 0; ///< 0: not written yet.
  /// -1: a session whose creation is not folded.
  std::int64_t revision = 0;
  bool is_removed = false;
};

/// A cache of the table: right as long as nobody else writes to the file.
class sqlite_scopes {
public:
  sqlite_scopes(const sqlite_database& database, log_tail& tail);

  /// Null if the owner does not exist. Valid until an owner is forgotten.
  known_scope* find(const owner_view& owner);

  /// The owner, after it was not found, without a row.
  known_scope& add(const owner_view& owner);

  /// Gives an owner its row and its id.
  void insert(const owner_view& owner,
              known_scope& added,
              std::int64_t revision,
              std::int64_t updated);

  void erase(std::int64_t id) { erase_.run(id); }

  /// From now on it is not found.
  void bury(const owner_view& owner);

  /// The same for the user and all sessions of it, wherever they are known.
  void bury_user(const owner_view& user);

  /// The sessions of a user.
  std::vector<std::string> sessions_of(const owner_view& user);

  /// Who has the id, if it is still there.
  std::optional<owner_name> name_of(std::int64_t id);

  void forget_all() { known_.clear(); }

  /// Bounds the cache; not while an owner is in use.
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

  log_tail& tail_;      // The store's, which outlives this.
  sqlite3* connection_; // The writer's, which outlives this.
  std::unordered_map<owner_name, known_scope, name_hash, name_equal> known_;
  sqlite_statement find_;
  sqlite_statement insert_;
  sqlite_statement erase_;
  sqlite_statement sessions_;
  sqlite_statement name_;
};

} // namespace troupe
