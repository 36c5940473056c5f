// Simulates for SQLite a full disk, a read-only disk, or a log that may not be
// read. Replaces SQLite's system calls in this process, because permissions of
// files do not restrict a test that runs as root.

#pragma once

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

namespace troupe::testing {

class refusing_disk {
public:
  enum class kind { full, read_only, unreadable_log };

  /// Only one object may exist at a time. No thread may use SQLite while it is
  /// constructed or destroyed.
  explicit refusing_disk(kind refused) : unix_(sqlite3_vfs_find(nullptr)) {
    kind_ = refused;
    changes_ = 0;
    open_below_ = reinterpret_cast<open_call>(
      unix_->xGetSystemCall(unix_, calls.front().name));
    for (const auto& each : calls)
      BOOST_REQUIRE(unix_->xSetSystemCall(unix_, each.name, each.instead)
                    == SQLITE_OK);
  }

  refusing_disk(const refusing_disk&) = delete;
  refusing_disk& operator=(const refusing_disk&) = delete;

  ~refusing_disk() {
    for (const auto& each : calls)
      unix_->xSetSystemCall(unix_, each.name, nullptr);
  }

  /// The number of calls that would have changed or made a file.
  std::size_t changes() const noexcept { return changes_; }

private:
  using open_call = int (*)(const char*, int, int);

  struct replaced {
    const char* name;
    sqlite3_syscall_ptr instead;
  };

  static int refuse(bool is_change, int reason) {
    changes_ += is_change ? 1 : 0;
    errno = reason;
    return -1;
  }

  static int open(const char* path, int flags, int mode) {
    const bool is_new
      = (flags & O_CREAT) != 0 && ::access(path, F_OK) != 0 && errno == ENOENT;
    switch (kind_) {
    case kind::full:
      if (is_new)
        return refuse(true, ENOSPC);
      break;
    case kind::read_only:
      if (is_new || (flags & O_ACCMODE) != O_RDONLY)
        return refuse(is_new, EROFS);
      break;
    case kind::unreadable_log:
      if (std::string_view(path).ends_with("-wal"))
        return refuse(false, EACCES);
      break;
    }
    return open_below_(path, flags, mode);
  }

  static int refused_reason() { return kind_ == kind::full ? ENOSPC : EROFS; }

  static ssize_t write(int, const void*, std::size_t) {
    return refuse(true, refused_reason());
  }

  static ssize_t pwrite(int, const void*, std::size_t, off_t) {
    return refuse(true, refused_reason());
  }

  static int truncate(int, off_t) { return refuse(true, refused_reason()); }

  static int allocate(int, off_t, off_t) {
    return refuse(true, refused_reason());
  }

  static int remove(const char*) { return refuse(true, refused_reason()); }

  template <class Call>
  static sqlite3_syscall_ptr as_call(Call call) {
    return reinterpret_cast<sqlite3_syscall_ptr>(call);
  }

  static inline const std::array calls{
    replaced{"open", as_call(&open)},
    replaced{"write", as_call(&write)},
    replaced{"pwrite", as_call(&pwrite)},
    replaced{"pwrite64", as_call(&pwrite)},
    replaced{"ftruncate", as_call(&truncate)},
    replaced{"fallocate", as_call(&allocate)},
    replaced{"unlink", as_call(&remove)},
  };

  // SQLite's system calls have no context.
  static inline kind kind_ = kind::full;
  static inline std::size_t changes_ = 0;
  static inline open_call open_below_ = nullptr;

  sqlite3_vfs* unix_;
};

} // namespace troupe::testing
