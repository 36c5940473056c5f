#include "troupe/stores/artifacts/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

namespace troupe {

namespace {

constexpr mode_t folder_mode = S_IRWXU;
constexpr mode_t file_mode = S_IRUSR | S_IWUSR;
constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
// Some systems refuse larger requests.
constexpr std::size_t request_bytes_max = std::size_t{1} << 30;

// Describes `errno` after `attempt`. A link or a file where a folder should be
// is `errc::corrupt`, because a retry does not help.
error failure(std::string_view attempt, std::string_view path) {
  const int cause = errno;
  return {
    cause == ELOOP || cause == ENOTDIR ? errc::corrupt : errc::store_failed,
    fmt::format(
      "{} {}: {}", attempt, path, std::generic_category().message(cause))};
}

// Calls `act` again as long as a signal interrupts it.
template <class Act>
auto uninterrupted(const Act& act) {
  for (;;) {
    const auto outcome = act();
    if (outcome >= 0 || errno != EINTR)
      return outcome;
  }
}

// Creates the folder at `path` and its missing parents. Each new folder is
// synced in its parent, so that it survives a power failure.
void make_all(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), folder_mode) == 0) {
    const auto parent = path.has_parent_path() ? path.parent_path()
                                               : std::filesystem::path(".");
    disk_folder::open(parent).sync();
    return;
  }
  if (errno == EEXIST)
    return;
  if (errno != ENOENT || !path.has_parent_path() || path.parent_path() == path)
    throw failure("make", path.string());
  make_all(path.parent_path());
  make_all(path);
}

} // namespace

std::string disk_file::read() const {
  std::string bytes(size_, '\0');
  std::size_t done = 0;
  while (done < size_) {
    const auto count = uninterrupted([this, &bytes, done] {
      return ::read(opened_.number(),
                    bytes.data() + done,
                    std::min(size_ - done, request_bytes_max));
    });
    if (count < 0)
      throw failure("read", path_);
    if (count == 0)
      break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

disk_folder disk_folder::open(const std::filesystem::path& path) {
  int opened = ::open(path.c_str(), folder_flags);
  if (opened < 0 && errno == ENOENT) {
    make_all(path);
    opened = ::open(path.c_str(), folder_flags);
  }
  if (opened < 0)
    throw error(errc::store_failed, failure("open", path.string()).message());
  return {descriptor(opened), path.string()};
}

std::string disk_folder::path_of(std::string_view name) const {
  return fmt::format("{}/{}", path_, name);
}

std::optional<disk_folder> disk_folder::find(const std::string& name) const {
  descriptor opened(
    ::openat(opened_.number(), name.c_str(), folder_flags | O_NOFOLLOW));
  if (opened.number() >= 0)
    return disk_folder(std::move(opened), path_of(name));
  if (errno == ENOENT)
    return std::nullopt;
  throw failure("open", path_of(name));
}

bool disk_folder::make_new(const std::string& name) const {
  if (::mkdirat(opened_.number(), name.c_str(), folder_mode) == 0)
    return true;
  if (errno == EEXIST)
    return false;
  throw failure("make", path_of(name));
}

disk_folder disk_folder::make(const std::string& name) const {
  for (;;) {
    if (auto found = find(name))
      return std::move(*found);
    make_new(name);
  }
}

std::optional<disk_file> disk_folder::find_file(const std::string& name) const {
  // Non-blocking, so that opening a pipe does not wait for its writer.
  descriptor opened(::openat(opened_.number(),
                             name.c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (opened.number() < 0) {
    if (errno == ENOENT)
      return std::nullopt;
    throw failure("open", path_of(name));
  }

  struct stat found {};

  if (::fstat(opened.number(), &found) != 0)
    throw failure("open", path_of(name));
  if (!S_ISREG(found.st_mode))
    throw error(errc::corrupt,
                fmt::format("open {}: it is not a file", path_of(name)));
  return disk_file(
    std::move(opened), path_of(name), static_cast<std::size_t>(found.st_size));
}

void disk_folder::write_file(const std::string& name,
                             std::string_view bytes) const {
  const descriptor opened(
    ::openat(opened_.number(),
             name.c_str(),
             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
             file_mode));
  if (opened.number() < 0)
    throw failure("make", path_of(name));
  while (!bytes.empty()) {
    const auto count = uninterrupted([&opened, bytes] {
      return ::write(opened.number(),
                     bytes.data(),
                     std::min(bytes.size(), request_bytes_max));
    });
    if (count < 0)
      throw failure("write", path_of(name));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  if (uninterrupted([&opened] { return ::fsync(opened.number()); }) != 0)
    throw failure("write", path_of(name));
}

void disk_folder::share_file(const std::string& name,
                             const disk_folder& target) const {
  const auto file = find_file(name);
  if (!file)
    throw error(errc::corrupt, fmt::format("{}: {} is missing", path_, name));
  if (::linkat(opened_.number(),
               name.c_str(),
               target.opened_.number(),
               name.c_str(),
               0)
      == 0)
    return;
  // EPERM: no hard links here. EMLINK: the file has too many of them.
  if (errno != EPERM && errno != EMLINK && errno != EOPNOTSUPP)
    throw failure("share", path_of(name));
  target.write_file(name, file->read());
}

std::vector<std::string> disk_folder::entries() const {
  // Opens the folder again, because the read position belongs to the
  // descriptor.
  const int again = ::openat(opened_.number(), ".", folder_flags);
  if (again < 0)
    throw failure("list", path_);
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(::fdopendir(again),
                                                   &::closedir);
  if (listed == nullptr) {
    const descriptor closed(again);
    throw failure("list", path_);
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    // Safe: no other thread reads from this descriptor.
    const auto* entry
      = ::readdir(listed.get()); // NOLINT(concurrency-mt-unsafe)
    if (entry == nullptr) {
      if (errno != 0)
        throw failure("list", path_);
      return names;
    }
    const std::string_view name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..")
      names.emplace_back(name);
  }
}

move_outcome disk_folder::move(const std::string& name,
                               const disk_folder& target,
                               const std::string& target_name) const {
  if (::renameat(opened_.number(),
                 name.c_str(),
                 target.opened_.number(),
                 target_name.c_str())
      == 0)
    return move_outcome::moved;
  if (errno == EEXIST || errno == ENOTEMPTY)
    return move_outcome::occupied;
  if (errno == ENOENT)
    return move_outcome::absent;
  throw failure("move to", target.path_of(target_name));
}

void disk_folder::remove(const std::string& name) const {
  if (::unlinkat(opened_.number(), name.c_str(), 0) == 0 || errno == ENOENT)
    return;
  // For a folder POSIX specifies EPERM, but Linux returns EISDIR.
  if (errno != EISDIR && errno != EPERM)
    throw failure("remove", path_of(name));
  if (const auto inner = find(name))
    for (const auto& entry : inner->entries())
      inner->remove(entry);
  if (::unlinkat(opened_.number(), name.c_str(), AT_REMOVEDIR) != 0
      && errno != ENOENT)
    throw failure("remove", path_of(name));
}

void disk_folder::sync() const {
  if (uninterrupted([this] { return ::fsync(opened_.number()); }) != 0)
    throw failure("write", path_);
}

void disk_folder::lock() const {
  if (uninterrupted([this] { return ::flock(opened_.number(), LOCK_EX); }) != 0)
    throw failure("lock", path_);
}

bool disk_folder::try_lock() const {
  if (uninterrupted(
        [this] { return ::flock(opened_.number(), LOCK_EX | LOCK_NB); })
      == 0)
    return true;
  if (errno == EWOULDBLOCK)
    return false;
  throw failure("lock", path_);
}

void disk_folder::lock_shared() const {
  if (uninterrupted([this] { return ::flock(opened_.number(), LOCK_SH); }) != 0)
    throw failure("lock", path_);
}

// Unlocks explicitly. Closing is not enough: a process that was forked
// meanwhile has the same open file.
void disk_folder::unlock() const noexcept {
  ::flock(opened_.number(), LOCK_UN);
}

} // namespace troupe
