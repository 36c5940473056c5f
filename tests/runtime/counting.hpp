// Events that add one in every scope, and the session that they are appended
// to.

#pragma once

#include "agent_fixture.hpp"

#include <map>
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

/// Checks that the events of each source are in the order of their numbers. The
/// ids are `SOURCE-NUMBER`, with one digit for the source.
inline void check_source_order(const event_slice& events) {
  std::map<char, int> newest;
  for (const auto& id : ids_of(events)) {
    const int number = std::stoi(id.substr(2));
    BOOST_TEST(newest.emplace(id[0], -1).first->second < number);
    newest[id[0]] = number;
  }
}

} // namespace troupe::testing
