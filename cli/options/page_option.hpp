// `--limit` and `--cursor`, shared by the commands that print a list page by
// page.

#pragma once

#include <cstddef>
#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

struct page_option {
  std::size_t limit = 100;
  std::string cursor;

  /// Adds both options to `command`; `rows` begins the help, such as
  /// "Sessions". This must outlive the parsing.
  void add_to(CLI::App& command, const std::string& rows);
};

/// The check of an option that is a count; returns the error, or an empty text.
std::string check_count(const std::string& text);

} // namespace troupe::cli
