#include "troupe/stores/turns/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

namespace troupe {

namespace {

// Time between two looks at the line: short beside a turn, and long beside the
// cost of a look.
constexpr std::chrono::microseconds poll_period{500};

// A longer wait ends without a place: processes with another clock may always
// be before this one.
constexpr std::chrono::seconds longest_wait{2};

// Time between two calls of `meanwhile`.
constexpr std::chrono::milliseconds call_period{2};

static_assert(sizeof(off_t) == sizeof(std::int64_t));

// Locks of the open file, not of the process: two stores of one process are
// in the same line, and closing another descriptor frees none.
struct flock range(short kind, std::int64_t first, std::int64_t count) {
  struct flock made = {};
  made.l_type = kind;
  made.l_whence = SEEK_SET;
  made.l_start = first;
  made.l_len = count;
  return made;
}

std::int64_t byte_of(const owner_name& owner) {
  return id_hash(owner.app + '\0' + owner.user);
}

// Returns true for an empty regular file. Another file is not a queue.
bool is_line(const std::filesystem::path& path) noexcept {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode)
         && found.st_size == 0;
}

} // namespace

turn_file::turn_file(std::filesystem::path path)
  : turn_file(std::move(path), [] {
      return std::chrono::nanoseconds(
        std::chrono::steady_clock::now().time_since_epoch());
    }) {}

turn_file::turn_file(std::filesystem::path path, clock now)
  : path_(std::move(path)),
    now_(std::move(now)) {}

turn_file::~turn_file() {
  if (file_ < 0)
    return;
  const bool is_own = is_opened_file() && is_line(path_);
  close();
  // A process with the removed file waits for none of the new one until its
  // next place. Turns of both may then meet once, as without turns.
  std::error_code ignored;
  if (is_own)
    std::filesystem::remove(path_, ignored);
}

bool turn_file::enter(std::span<const owner_name> wanted,
                      std::chrono::milliseconds patience,
                      const std::function<void()>& meanwhile) {
  if (!take_place())
    return false;
  // Never refused: no process has these bytes alone.
  for (const auto& owner : wanted) {
    auto wish = range(F_RDLCK, byte_of(owner), 1);
    static_cast<void>(::fcntl(file_, F_OFD_SETLK, &wish));
  }
  auto called = now_();
  const auto last = called + longest_wait;
  auto end = called + patience;
  std::optional<std::int64_t> before;
  while (const auto first = first_before()) {
    const auto now = now_();
    if (now >= last) {
      leave();
      return false;
    }
    if (first != before) {
      before = first;
      end = now + patience;
    }
    if (now >= end) {
      pass(*first);
      continue;
    }
    if (meanwhile && now - called >= call_period) {
      meanwhile();
      called = now_();
    } else {
      std::this_thread::sleep_for(poll_period);
    }
  }
  return true;
}

// If no process has entered the queue, there is no file.
bool turn_file::is_wanted(std::span<const owner_name> owners) {
  if (!is_line(path_) || !open())
    return false;
  return std::ranges::any_of(owners, [this](const owner_name& owner) {
    auto wish = range(F_WRLCK, byte_of(owner), 1);
    return ::fcntl(file_, F_OFD_GETLK, &wish) == 0 && wish.l_type != F_UNLCK;
  });
}

bool turn_file::take_place() {
  leave();
  if (!open())
    return false;
  // Never before an ignored place, nor before an earlier place of this line.
  const auto now = static_cast<std::int64_t>(now_().count());
  for (auto place = std::max(now, first_ + 1);; ++place) {
    auto wanted = range(F_WRLCK, place, 1);
    if (::fcntl(file_, F_OFD_SETLK, &wanted) == 0) {
      place_ = place;
      return true;
    }
    // Another process has taken this place.
    if (errno != EAGAIN && errno != EACCES)
      return false;
  }
}

std::optional<std::int64_t> turn_file::first_before() const noexcept {
  std::optional<std::int64_t> found;
  // The system tells any lock in a range, and not always the first one. An
  // empty range would mean all bytes behind, too.
  for (auto end = place_; end > first_; end = *found) {
    auto earlier = range(F_WRLCK, first_, end - first_);
    if (::fcntl(file_, F_OFD_GETLK, &earlier) != 0 || earlier.l_type == F_UNLCK)
      return found;
    found = std::max<std::int64_t>(earlier.l_start, first_);
  }
  return found;
}

void turn_file::leave() noexcept {
  if (std::exchange(place_, 0) == 0)
    return;
  auto all = range(F_UNLCK, 0, 0);
  // Closing frees the lock in any case.
  if (::fcntl(file_, F_OFD_SETLK, &all) != 0)
    close();
}

bool turn_file::is_opened_file() const noexcept {
  struct stat opened = {};
  struct stat found = {};
  return ::stat(path_.c_str(), &found) == 0 && ::fstat(file_, &opened) == 0
         && found.st_dev == opened.st_dev && found.st_ino == opened.st_ino;
}

// Opens the file again if another process has removed it. Looks at it before:
// closing a database would free its locks.
bool turn_file::open() noexcept {
  if (file_ >= 0 && !is_opened_file())
    close();
  struct stat found = {};
  if (file_ < 0 && ::stat(path_.c_str(), &found) == 0 && !is_line(path_))
    return false;
  if (file_ < 0)
    file_
      = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  return file_ >= 0;
}

void turn_file::close() noexcept {
  if (file_ >= 0)
    ::close(std::exchange(file_, -1));
}

} // namespace troupe
