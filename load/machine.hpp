// What a measurement was made on: without it a figure means nothing.

#pragma once

#include "troupe/core/json.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::load {

/// Nothing that names the machine itself. Empty or 0 where the system does not
/// tell.
struct machine {
  std::string cpu;
  unsigned cores = 0;
  std::uint64_t memory = 0; ///< Bytes.
  std::string kernel;
  std::string system; ///< Of the distribution.
};

machine this_machine();

/// `"2 x Some CPU @ 3.00GHz, 24 GiB, Debian GNU/Linux 12, Linux 6.1"`.
std::string to_text(const machine& on);

/// `{"cpu", "cores", "memoryBytes", "kernel", "system"}`.
json to_json(const machine& on);

struct versions {
  std::string troupe;
  std::string compiler; ///< With the kind of build.
  std::string store;
};

/// With the store at that address.
versions these_versions(std::string_view store);

/// `{"troupe", "compiler", "store"}`.
json to_json(const versions& used);

/// Resident in memory now.
std::uint64_t resident_bytes();

} // namespace troupe::load
