#include "troupe/cli/report_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace troupe::cli {

result<void> report_file::open(const std::string& path) {
  if (path.empty())
    return {};
  path_ = path;
  file_.open(path, std::ios::binary);
  return file_ ? result<void>() : failed();
}

result<void> report_file::write(std::string_view text) {
  if (!is_wanted())
    return {};
  file_.write(text.data(), static_cast<std::streamsize>(text.size()));
  file_.flush();
  return file_ ? result<void>() : failed();
}

error report_file::failed() const {
  return {
    errc::store_failed,
    fmt::format("write {}: {}",
                path_,
                std::error_code(errno, std::generic_category()).message())};
}

} // namespace troupe::cli
