// The machine and the versions of a measurement.

#pragma once

#include "troupe/core/json.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::load {

/// Properties of the machine, but no name of it. Empty or 0 if the system does
/// not tell.
struct machine {
  std::string cpu;          ///< Name of the model.
  unsigned cores = 0;       ///< Number of hardware threads.
  std::uint64_t memory = 0; ///< Bytes.
  std::string kernel;       ///< Name and release, such as `Linux 6.1`.
  std::string system;       ///< Name of the distribution.
};

/// Reads the properties of this machine.
machine this_machine();

/// `"2 x Some CPU @ 3.00GHz, 24 GiB, Debian GNU/Linux 12, Linux 6.1"`.
std::string to_text(const machine& on);

/// `{"cpu", "cores", "memoryBytes", "kernel", "system"}`.
json to_json(const machine& on);

/// Versions of the software in a measurement.
struct versions {
  std::string troupe;   ///< Version of this library.
  std::string compiler; ///< With the kind of build.
  std::string store;    ///< Library of the store, such as `SQLite 3.40.1`;
                        ///< `memory`; `custom` for an unknown address.
};

/// The versions in use, including that of the store at this address.
versions these_versions(std::string_view store);

/// `{"troupe", "compiler", "store"}`.
json to_json(const versions& used);

/// Returns the resident bytes of this process now.
std::uint64_t resident_bytes();

} // namespace troupe::load
