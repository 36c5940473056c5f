// A record of the sent and of the acknowledged events, kept outside of the
// store.
//
// Each record is one line of fixed size, written by one write at the end of a
// file. A killed process has therefore lost none of its records, and several
// processes can share the files.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::testing {

/// Names one event of the work: its process, its thread, and its number on that
/// thread.
struct job_name {
  std::uint32_t run = 0;
  std::uint32_t thread = 0;
  std::uint32_t number = 0;

  friend bool operator==(const job_name&, const job_name&) = default;
  friend auto operator<=>(const job_name&, const job_name&) = default;
};

/// The id of the event: `"e00000001.002.00000003"`.
std::string to_string(const job_name& job);

/// The reverse; throws on any other text.
job_name job_name_from(const std::string& id);

enum class ledger_entry : char {
  sent = 's',         ///< Written before the append.
  acknowledged = 'a', ///< The runtime has acknowledged the append.
  failed = 'f',  ///< The append failed with `store_failed`, and is not retried.
  created = 'c', ///< The runtime has created the session of this number.
};

struct ledger_record {
  ledger_entry entry;
  job_name job; ///< Only the number is used for `created`: that of the session.
};

class ledger {
public:
  /// Opens or creates the file. Throws `std::system_error`.
  explicit ledger(const std::filesystem::path& file);
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger();

  /// Thread-safe. Throws `std::system_error`.
  void write(ledger_entry entry, const job_name& job);

  /// Returns all records of the file, of all processes.
  std::vector<ledger_record> records() const;

private:
  const std::filesystem::path file_;
  int descriptor_ = -1;
};

} // namespace troupe::testing
