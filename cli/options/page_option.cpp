#include "troupe/cli/options/page_option.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace troupe::cli {

void page_option::add_to(CLI::App& command, const std::string& rows) {
  command.add_option("--limit", limit, rows + " to print at most")
    ->type_name("N")
    ->check(check_count)
    ->capture_default_str();
  command
    .add_option("--cursor",
                cursor,
                "nextCursor of the page before; default: from the start")
    ->type_name("C");
}

// CLI11 would read -1 as the largest number, and 010 as 8.
std::string check_count(const std::string& text) {
  std::size_t count = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, count);
  return read.ec == std::errc() && read.ptr == end
             && (text.size() == 1 || text.front() != '0')
           ? std::string()
           : fmt::format("'{}' is not a count", text);
}

} // namespace troupe::cli
