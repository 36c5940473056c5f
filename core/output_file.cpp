#include "troupe/core/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>

namespace troupe {

namespace {

namespace fs = std::filesystem;

constexpr int common_flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
constexpr mode_t owner_alone = 0600;
constexpr mode_t everybody = 0666;

error failed(const fs::path& path, std::string_view why) {
  return {errc::store_failed, fmt::format("write {}: {}", path.string(), why)};
}

error failed(const fs::path& path) {
  // `open` with O_NOFOLLOW.
  if (errno == ELOOP)
    return failed(path,
                  "it is a symbolic link, and outputs follow none; name the "
                  "file that it leads to");
  return failed(path, std::generic_category().message(errno));
}

// The open descriptor that a path names.
std::optional<int> descriptor_named(const fs::path& path) {
  const std::string_view text = path.native();
  if (text == "/dev/stdout")
    return STDOUT_FILENO;
  if (text == "/dev/stderr")
    return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!text.starts_with(folder))
      continue;
    const auto* const end = text.data() + text.size();
    int number = -1;
    const auto read = std::from_chars(text.data() + folder.size(), end, number);
    if (read.ec == std::errc() && read.ptr == end && number >= 0)
      return number;
  }
  return std::nullopt;
}

// Rights go before contents: nothing is written while others may read it.
bool empty(int descriptor, output_file::readers who) {
  struct stat found {};

  if (::fstat(descriptor, &found) != 0)
    return false;
  if (!S_ISREG(found.st_mode))
    return true;
  if (who == output_file::readers::owner
      && (found.st_mode & 0777U) != owner_alone
      && ::fchmod(descriptor, owner_alone) != 0)
    return false;
  return ::ftruncate(descriptor, 0) == 0;
}

int open_beside(const fs::path& beside, mode_t mode) {
  const int flags = common_flags | O_CREAT | O_EXCL;
  const int opened = ::open(beside.c_str(), flags, mode);
  if (opened >= 0 || errno != EEXIST)
    return opened;
  // A killed process of the same id has left it.
  if (::unlink(beside.c_str()) != 0)
    return -1;
  return ::open(beside.c_str(), flags, mode);
}

} // namespace

result<output_file>
output_file::open(const fs::path& path, readers who, placement when) {
  if (const auto named = descriptor_named(path)) {
    const int copied = ::fcntl(*named, F_DUPFD_CLOEXEC, 0);
    if (copied < 0)
      return failed(path);
    return output_file(path, {}, copied);
  }

  struct stat found {};

  const bool is_there = ::lstat(path.c_str(), &found) == 0;
  auto mode = who == readers::owner ? owner_alone : everybody;
  if (when == placement::whole && (!is_there || S_ISREG(found.st_mode))) {
    // Who may not write the old file may not replace it either.
    if (is_there && ::access(path.c_str(), W_OK) != 0)
      return failed(path);
    if (is_there)
      mode &= found.st_mode;
    auto beside = path;
    beside += fmt::format(".{}.part", ::getpid());
    const int opened = open_beside(beside, mode);
    if (opened < 0)
      return failed(path);
    return output_file(path, std::move(beside), opened);
  }
  const int opened = ::open(path.c_str(), common_flags | O_CREAT, mode);
  if (opened < 0)
    return failed(path);
  output_file file(path, {}, opened);
  if (!empty(opened, who))
    return failed(path);
  return file;
}

output_file::~output_file() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
  if (!beside_.empty())
    ::unlink(beside_.c_str());
}

result<void> output_file::write(std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor_, text.data(), text.size());
    if (written > 0)
      text.remove_prefix(static_cast<std::size_t>(written));
    else if (written == 0 || errno != EINTR)
      return failed(path_);
  }
  return {};
}

result<void> output_file::finish() {
  // Some file systems tell only here that there is no room.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR)
    return failed(path_);
  if (beside_.empty())
    return {};
  if (std::rename(beside_.c_str(), path_.c_str()) != 0)
    return failed(path_);
  beside_.clear();
  return {};
}

} // namespace troupe
