// Events that add one in every scope, and the session that they are appended
// to.

#pragma once

#include "agent_fixture.hpp"

#include <string>
#include <vector>

namespace troupe::testing {

inline const session_key here{"press", "ann", "s"};

inline event counting(const std::string& id = {}) {
  return operate({operation_on("n", "add", 1),
                  operation_on("user:n", "add", 1),
                  operation_on("app:n", "add", 1)},
                 json::object(),
                 id);
}

inline json counted(int n) {
  return {{"n", n}, {"user:n", n}, {"app:n", n}};
}

inline std::vector<std::string> ids_of(const event_slice& events) {
  std::vector<std::string> all;
  for (const auto& said : events)
    all.push_back(said->id);
  return all;
}

} // namespace troupe::testing
