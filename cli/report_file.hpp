// A file that a report is written to: tried before there is anything to write,
// so that nothing is run for nothing, and in place only when it is whole.

#pragma once

#include "troupe/core/error.hpp"

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

namespace troupe::cli {

class report_file {
public:
  report_file() = default;
  report_file(const report_file&) = delete;
  report_file& operator=(const report_file&) = delete;
  /// What was not finished is gone; a file of before stays as it was.
  ~report_file();

  /// Makes a file beside `path` to write to, or opens what is no file (a
  /// device, a pipe); without a path nothing, and nothing is written later.
  /// Fails with `errc::store_failed`.
  result<void> open(const std::string& path);

  /// Adds `text` behind what was written before.
  result<void> write(std::string_view text);

  /// Writes `text` behind what was written before, and puts the file in place.
  result<void> finish(std::string_view text = {});

  bool is_wanted() const noexcept { return !path_.empty(); }

private:
  error failed(std::string_view why) const;

  std::string path_;
  std::filesystem::path beside_; // Empty: written in place.
  std::ofstream file_;
};

/// Fails with `errc::invalid_argument` when two of the paths that are not empty
/// are the same file.
result<void> check_distinct(std::initializer_list<std::string> paths);

} // namespace troupe::cli
