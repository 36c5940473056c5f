// The layer below SQLite, with faults: calls that fail at random, and a power
// failure, after which a disk may lack anything that was not synced.
//
// It stands on the system's own layer. Every write reaches the real file at
// once; what the file held before, sector by sector, is kept until it is
// synced, so that a power failure can put it back.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::testing {

/// How often a call fails: one in so many; 0: never.
struct disk_faults {
  std::uint32_t read_error = 0;
  std::uint32_t write_error = 0; ///< Nothing is written.
  std::uint32_t short_write = 0; ///< A first part is written.
  std::uint32_t disk_full = 0;
  /// The sync fails, and what it should have synced never will be, unless it
  /// is written again.
  std::uint32_t sync_error = 0;
  /// Nothing fails after so many failures.
  std::size_t failures_max = SIZE_MAX;
};

class fault_vfs {
public:
  /// Registers it with SQLite under a name of its own.
  explicit fault_vfs(std::uint64_t seed);
  fault_vfs(const fault_vfs&) = delete;
  fault_vfs& operator=(const fault_vfs&) = delete;
  /// No file may be open.
  ~fault_vfs();

  const std::string& name() const noexcept;

  /// From now on; thread-safe.
  void fail(const disk_faults& faults);

  /// How many calls have failed so far.
  std::size_t failures() const;

  /// The number of syncs that took place.
  std::size_t syncs() const;

  /// From now on every call fails; thread-safe.
  void cut_power();

  /// The same, once so many more writes, truncations, removals and syncs have
  /// worked.
  void cut_power_after(std::size_t changes);

  /// Puts the files in a state that a power failure could have left: each
  /// sector that was not synced is as it was or as it was written, at random;
  /// with `all_lost` as it was. The power is back then. No file may be open.
  void restore_power(bool all_lost);

  struct disk;

private:
  std::unique_ptr<disk> disk_;
};

} // namespace troupe::testing
