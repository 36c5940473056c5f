#include "troupe/core/support/output_file.hpp"

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
  // Set by `open` with O_NOFOLLOW.
  if (errno == ELOOP)
    return failed(path,
                  "it is a symbolic link, which outputs do not follow; name "
                  "its target instead");
  return failed(path, std::generic_category().message(errno));
}

// Returns the open descriptor that a path names, if any.
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

bool is_regular(int descriptor) {
  struct stat found {};

  return ::fstat(descriptor, &found) != 0 || S_ISREG(found.st_mode);
}

std::string name_of(int descriptor) {
  return fmt::format("/proc/self/fd/{}", descriptor);
}

// Opens an unnamed file, which disappears with the program however it ends.
// Returns a negative number if the file system has no such files.
int open_unnamed(const fs::path& path, mode_t mode) {
  const auto folder = path.has_parent_path() ? path.parent_path() : ".";
  const int opened
    = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  // The name of this descriptor is later used to link the file.
  if (opened < 0 || ::access(name_of(opened).c_str(), F_OK) == 0)
    return opened;
  ::close(opened);
  return -1;
}

bool give_name(int descriptor, const fs::path& name) {
  const auto link = [&name, from = name_of(descriptor)] {
    return ::linkat(
      AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  };
  if (link() == 0)
    return true;
  // A killed process with the same id has left the file.
  return errno == EEXIST && ::unlink(name.c_str()) == 0 && link() == 0;
}

int open_beside(const fs::path& beside, mode_t mode) {
  const int flags = common_flags | O_CREAT | O_EXCL;
  const int opened = ::open(beside.c_str(), flags, mode);
  if (opened >= 0 || errno != EEXIST)
    return opened;
  // A killed process with the same id has left the file.
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
  const bool is_file = is_there && S_ISREG(found.st_mode);
  const bool is_private = who == readers::owner;
  if (is_file && is_private && found.st_uid != ::geteuid())
    return failed(path, "it belongs to another user");
  auto mode = is_private ? owner_alone : everybody;
  // A user who may not write the old file may not replace it either.
  if (is_file && ::access(path.c_str(), W_OK) != 0)
    return failed(path);
  if (when == placement::whole && (!is_there || is_file)) {
    if (is_there)
      mode &= found.st_mode;
    auto beside = path;
    beside += fmt::format(".{}.part", ::getpid());
    if (const int unnamed = open_unnamed(path, mode); unnamed >= 0) {
      output_file file(path, std::move(beside), unnamed);
      file.has_name_ = false;
      return file;
    }
    const int opened = open_beside(beside, mode);
    if (opened < 0)
      return failed(path);
    return output_file(path, std::move(beside), opened);
  }
  // Another program may have the old file open, so secrets go into a new one.
  const bool is_new = is_private && (!is_there || is_file);
  if (is_new && is_there && ::unlink(path.c_str()) != 0)
    return failed(path);
  const int flags = common_flags | O_CREAT | (is_new ? O_EXCL : 0);
  const int opened = ::open(path.c_str(), flags, mode);
  if (opened < 0)
    return failed(path);
  output_file file(path, {}, opened);
  if (is_new || !is_regular(opened))
    return file;
  if (is_private)
    return failed(path, "another program has put a file there");
  if (::ftruncate(opened, 0) != 0)
    return failed(path);
  return file;
}

output_file::~output_file() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
  if (!beside_.empty() && has_name_)
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
  if (!has_name_ && !give_name(descriptor_, beside_))
    return failed(path_);
  has_name_ = true;
  // Some file systems report a full disk only here.
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
