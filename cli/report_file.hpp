// A file that a report is written to, opened before there is anything to write,
// so that nothing is run for nothing.

#pragma once

#include "troupe/core/error.hpp"

#include <fstream>
#include <string>
#include <string_view>

namespace troupe::cli {

class report_file {
public:
  /// Makes the file or empties it; without a path nothing, and nothing is
  /// written later. Fails with `errc::store_failed`.
  result<void> open(const std::string& path);

  /// Adds `text` behind what was written before, and hands it to the system.
  result<void> write(std::string_view text);

  bool is_wanted() const noexcept { return !path_.empty(); }

private:
  error failed() const;

  std::string path_;
  std::ofstream file_;
};

} // namespace troupe::cli
