#include "troupe/cli/report_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <system_error>

namespace troupe::cli {

namespace {

namespace fs = std::filesystem;

std::string reason() {
  return std::generic_category().message(errno != 0 ? errno : EIO);
}

} // namespace

report_file::~report_file() {
  if (beside_.empty())
    return;
  file_.close();
  std::error_code ignored; // What is left says nothing wrong.
  fs::remove(beside_, ignored);
}

result<void> report_file::open(const std::string& path) {
  if (path.empty())
    return {};
  path_ = path;
  std::error_code unused;
  const auto status = fs::status(path, unused);
  const bool is_file = !fs::exists(status) || fs::is_regular_file(status);
  auto target = fs::path(path);
  if (is_file) {
    // Whoever may not write the old one may not put another in its place.
    if (fs::exists(status) && ::access(path.c_str(), W_OK) != 0)
      return failed(reason());
    beside_ = fmt::format("{}.{}.part", path, ::getpid());
    target = beside_;
  }
  errno = 0;
  file_.open(target, std::ios::binary);
  if (!file_) {
    beside_.clear();
    return failed(reason());
  }
  return {};
}

result<void> report_file::write(std::string_view text) {
  if (!is_wanted())
    return {};
  errno = 0;
  file_.write(text.data(), static_cast<std::streamsize>(text.size()));
  file_.flush();
  return file_ ? result<void>() : failed(reason());
}

result<void> report_file::finish(std::string_view text) {
  if (!is_wanted())
    return {};
  if (auto written = write(text); !written)
    return written;
  file_.close();
  if (beside_.empty())
    return {};
  std::error_code why;
  fs::rename(beside_, path_, why);
  if (why)
    return failed(why.message());
  beside_.clear();
  return {};
}

error report_file::failed(std::string_view why) const {
  return {errc::store_failed, fmt::format("write {}: {}", path_, why)};
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
