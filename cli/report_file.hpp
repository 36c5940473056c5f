// A file that a report is written to: tried before there is anything to write,
// so that nothing is run for nothing, and in place only when it is whole.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/output_file.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::cli {

class report_file {
public:
  /// Makes a file beside `path` to write to, or opens what is no file (a
  /// device, a pipe); without a path nothing, and nothing is written later. An
  /// unfinished file goes with this, and a file of before stays as it was.
  /// Fails with `errc::store_failed`, also on a symbolic link (`output_file`).
  result<void> open(const std::string& path,
                    output_file::readers who = output_file::readers::umask);

  /// Adds `text` behind what was written before.
  result<void> write(std::string_view text);

  /// Writes `text` behind what was written before, and puts the file in place.
  result<void> finish(std::string_view text = {});

  bool is_wanted() const noexcept { return file_.has_value(); }

private:
  std::optional<output_file> file_;
};

/// Fails with `errc::invalid_argument` when two of the paths that are not empty
/// are the same file.
result<void> check_distinct(std::initializer_list<std::string> paths);

} // namespace troupe::cli
