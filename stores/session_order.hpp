// The sessions of a store in memory in the order of `store::list`, so that a
// page costs what it shows.

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

/// Not thread-safe.
class session_order {
public:
  /// Adds a session that is not in it.
  void add(const owner_name& session, timestamp updated);

  /// Takes out a session with the time that it was added with, if it is there.
  void remove(const owner_name& session, timestamp updated);

  /// The sessions that are the rows of `query`, in their order.
  std::vector<owner_name> page(const row_query& query) const;

private:
  // The newest first, then by user and id.
  using place = std::tuple<std::int64_t, std::string, std::string>;
  using places = std::set<place>;

  static place place_of(timestamp updated,
                        const std::string& user,
                        const std::string& session);

  std::map<std::string, places> apps_;
  std::map<std::pair<std::string, std::string>, places> users_;
};

} // namespace troupe
