// A SQLite VFS that injects faults: calls that fail at random, and power
// failures after which a disk may lack any write that was not synced.
//
// It is based on the system's VFS. Every write reaches the real file at once.
// The previous content of each sector is kept until it is synced, so that a
// power failure can restore it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::testing {

/// Rates of failures: one call in so many; 0: never.
struct disk_faults {
  std::uint32_t read_error = 0;
  std::uint32_t write_error = 0; ///< Writes nothing.
  std::uint32_t short_write = 0; ///< Writes only a first part.
  std::uint32_t disk_full = 0;
  /// The sync fails. The unsynced sectors are never synced, unless they are
  /// written again.
  std::uint32_t sync_error = 0;
  /// Number of failures after which no call fails.
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

  /// Sets the faults from now on; thread-safe.
  void fail(const disk_faults& faults);

  /// Number of calls that have failed.
  std::size_t failures() const;

  /// Number of completed syncs.
  std::size_t syncs() const;

  /// Makes every call fail from now on; thread-safe.
  void cut_power();

  /// Cuts the power after so many more writes, truncations, removals and syncs.
  void cut_power_after(std::size_t changes);

  /// Puts the files into a state that a power failure could have left, and
  /// switches the power on. Each unsynced sector has its old or its new
  /// content, at random; with `all_lost` the old one. No file may be open.
  void restore_power(bool all_lost);

  struct disk;

private:
  std::unique_ptr<disk> disk_;
};

} // namespace troupe::testing
