// The sessions of a memory store in the order of `store::list`, so that the
// cost of a page depends only on its length.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe {

/// Keeps the sessions of all apps in list order. Not thread-safe.
class session_order {
public:
  /// Adds a session that is not in the order yet.
  void add(const owner_name& session, timestamp updated);

  /// Removes a session, if it is there. `updated` must be the time that it was
  /// added with.
  void remove(const owner_name& session, timestamp updated);

  /// Returns the sessions of the page that `query` asks for, in order.
  std::vector<owner_name> page(const row_query& query) const;

private:
  // Newest update first, then by user and session id. The first element is the
  // complement of the time.
  using place = std::tuple<std::int64_t, std::string, std::string>;
  using places = std::set<place>;

  static place place_of(timestamp updated,
                        const std::string& user,
                        const std::string& session);

  std::map<std::string, places> apps_;
  std::map<std::pair<std::string, std::string>, places> users_;
};

} // namespace troupe
