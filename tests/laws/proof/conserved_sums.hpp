// Checks that every read of a group of accounts has the same total while
// amounts move among them. One event moves an amount; a reader sees all of the
// event or nothing of it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::testing {

/// An amount that one event takes from one account and adds to another.
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
  /// Describes the first wrong read, and the transfer of which it may show
  /// half; empty if there is none.
  std::string finding;
};

sums_verdict check_sums(std::int64_t total,
                        const std::vector<transfer>& transfers,
                        const std::vector<balance_read>& reads);

} // namespace troupe::testing
