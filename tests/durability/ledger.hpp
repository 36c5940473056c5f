// What was sent and what was acknowledged, written down outside of the store.
//
// Each record is one line of fixed size and one write at the end of a file, so
// that a killed process has lost none that it wrote, and several processes can
// share the files.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::testing {

/// Names one event of the work: which process said it, on which thread, and as
/// its how-manieth.
struct job_name {
  std::uint32_t run = 0;
  std::uint32_t thread = 0;
  std::uint32_t number = 0;

  friend bool operator==(const job_name&, const job_name&) = default;
  friend auto operator<=>(const job_name&, const job_name&) = default;
};

/// `"e00000001.002.00000003"`: the event's id.
std::string to_string(const job_name& job);

/// The reverse; throws on anything else.
job_name job_name_from(const std::string& id);

enum class ledger_entry : char {
  sent = 's',         ///< About to be appended.
  acknowledged = 'a', ///< Appended, said the runtime.
  failed = 'f',       ///< Refused with `store_failed`, and not tried again.
  created = 'c', ///< The session of this number is there, said the runtime.
};

struct ledger_record {
  ledger_entry entry;
  job_name job; ///< Of `created`, the number alone: the session's.
};

class ledger {
public:
  /// Opens the file, or makes it. Throws `std::system_error`.
  explicit ledger(const std::filesystem::path& file);
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger();

  /// Thread-safe. Throws `std::system_error`.
  void write(ledger_entry entry, const job_name& job);

  /// Everything that was ever written, by whomever.
  std::vector<ledger_record> records() const;

private:
  const std::filesystem::path file_;
  int descriptor_ = -1;
};

} // namespace troupe::testing
