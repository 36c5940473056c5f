#include "troupe/cli/terminal/report_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace troupe::cli {

namespace fs = std::filesystem;

result<void> report_file::open(const std::string& path,
                               output_file::readers who) {
  if (path.empty())
    return {};
  auto opened = output_file::open(path, who, output_file::placement::whole);
  if (!opened)
    return opened.error();
  file_.emplace(std::move(*opened));
  return {};
}

result<void> report_file::write(std::string_view text) {
  return is_wanted() ? file_->write(text) : result<void>();
}

result<void> report_file::finish(std::string_view text) {
  if (auto written = write(text); !written || !is_wanted())
    return written;
  return file_->finish();
}

result<void> private_report::open(const std::string& json_path,
                                  const std::string& html_path) {
  constexpr auto readers = output_file::readers::owner;
  for (const auto& opened :
       {json.open(json_path, readers), html.open(html_path, readers)})
    if (!opened)
      return opened;
  return {};
}

result<void> check_distinct(std::initializer_list<std::string> paths) {
  std::set<fs::path> seen;
  for (const auto& path : paths) {
    std::error_code unused;
    if (path.empty()
        || (fs::exists(path, unused) && !fs::is_regular_file(path, unused)))
      continue;
    if (!seen.insert(fs::weakly_canonical(path, unused)).second)
      return error(errc::invalid_argument,
                   fmt::format("'{}' is written to twice", path));
  }
  return {};
}

} // namespace troupe::cli
