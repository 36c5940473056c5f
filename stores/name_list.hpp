// Lists of sessions in an order that updates do not change, so that a long walk
// over all sessions meets each one once.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A query for sessions of an app in the order of their names.
struct name_query {
  std::string app;                      ///< Id of the app to list.
  std::optional<std::string> user = {}; ///< Unset for all users of the app.
  /// Maximum number of rows.
  std::size_t limit = 100;
  /// The rows start after this session, which need not exist; unset for the
  /// first rows. The app of the key is ignored.
  std::optional<session_key> behind = {};
};

/// A store with an index of names. A store may derive from it beside `store`.
class name_list {
public:
  virtual ~name_list() = default;

  /// Lists sessions by user, then by session id; both are compared as bytes.
  /// The cost depends on the number of rows, not of sessions. Fails like
  /// `store::list`.
  virtual result<std::vector<session_row>> list_by_name(const name_query& query)
    = 0;
};

/// Lists sessions of any store by name. A store that is no `name_list` lists
/// all its sessions for that.
result<std::vector<session_row>> list_by_name(store& kept,
                                              const name_query& query);

} // namespace troupe
