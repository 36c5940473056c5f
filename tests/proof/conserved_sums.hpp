// Whether every look at a group of accounts adds up, while amounts move among
// them: an event that moves one is seen whole or not at all.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::testing {

/// An amount that one event takes from one account and puts on another.
struct transfer {
  std::string from;
  std::string to;
  std::int64_t amount = 0;
  std::size_t process = 0;
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
};

/// All accounts of a group, read at one moment.
struct balance_read {
  std::map<std::string, std::int64_t> accounts;
  std::size_t process = 0;
  std::uint64_t asked = 0;
  std::uint64_t answered = 0;
};

struct sums_verdict {
  std::size_t reads = 0;
  std::size_t wrong = 0;
  /// The first that is wrong, and what may be half of it; empty if none is.
  std::string finding;
};

sums_verdict check_sums(std::int64_t total,
                        const std::vector<transfer>& transfers,
                        const std::vector<balance_read>& reads);

} // namespace troupe::testing
