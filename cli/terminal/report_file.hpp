// A file for a report. It is opened before the work starts, so that an
// unwritable path fails early, and put in place only when it is complete.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/support/output_file.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::cli {

class report_file {
public:
  /// Makes a file beside `path`, or opens a device or pipe. An empty path
  /// means: no file, and later writes do nothing. An unfinished file is removed
  /// with this object, and an existing file stays as it was. Fails with
  /// `errc::store_failed`, also for a symbolic link (`output_file`).
  result<void> open(const std::string& path,
                    output_file::readers who = output_file::readers::umask);

  /// Appends `text`.
  result<void> write(std::string_view text);

  /// Appends `text` and puts the file in place.
  result<void> finish(std::string_view text = {});

  bool is_wanted() const noexcept { return file_.has_value(); }

private:
  std::optional<output_file> file_;
};

/// The files of a report that may quote sessions, so only the user can read
/// them.
struct private_report {
  report_file json;
  report_file html;

  /// Opens each file whose path is not empty.
  result<void> open(const std::string& json_path, const std::string& html_path);
};

/// Fails with `errc::invalid_argument` if two non-empty paths name the same
/// file.
result<void> check_distinct(std::initializer_list<std::string> paths);

} // namespace troupe::cli
