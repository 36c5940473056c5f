// Locations of state for tests that run in memory and over stores.

#pragma once

#include "../stores/temporary_folder.hpp"
#include "staged_store.hpp"

#include <string>
#include <vector>

namespace troupe::testing {

/// A location for runtimes that a test starts. Runtimes on one location share
/// it, except in memory.
class location_of {
public:
  explicit location_of(std::string kind) : kind_(std::move(kind)) {}

  runtime_options options() const {
    if (kind_ == "store")
      return place_.options();
    runtime_options chosen;
    chosen.append_wait_max = {};
    if (kind_ == "sqlite")
      chosen.store = "sqlite:" + (folder_.path() / "s.db").string();
    return chosen;
  }

  staged_place& place() { return place_; }

private:
  const std::string kind_;
  const temporary_folder folder_;
  staged_place place_;
};

inline const std::vector<std::string> all_kinds{"memory", "store", "sqlite"};
inline const std::vector<std::string> shared_kinds{"store", "sqlite"};

} // namespace troupe::testing
