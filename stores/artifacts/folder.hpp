// Works inside an open folder, by file name and never by path. A name cannot
// lead out of the folder, and no symbolic link is followed.
//
// All functions throw `error`: `errc::corrupt` where a link or a file of
// another kind is in the way, otherwise `errc::store_failed`. Names are single
// path components chosen by the caller.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/support/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// A regular file, open for reading. It stays readable after it was removed.
class disk_file {
public:
  disk_file(descriptor opened, std::string path, std::size_t size)
    : opened_(std::move(opened)),
      path_(std::move(path)),
      size_(size) {}

  /// Reads the whole file. The result is shorter than `size` if the file was
  /// truncated after it was opened.
  std::string read() const;

  /// Size in bytes at the time of opening.
  std::size_t size() const noexcept { return size_; }

  /// The path, for error messages.
  const std::string& path() const noexcept { return path_; }

private:
  descriptor opened_;
  std::string path_;
  std::size_t size_;
};

/// The outcome of a move that did not fail.
enum class move_outcome : std::uint8_t {
  moved,
  occupied, ///< A non-empty folder already has the target's name.
  absent,   ///< The folder to move does not exist.
};

/// A folder. All members are safe from any thread. It is also a shared mutex
/// between processes and between folders that were opened separately, even in
/// one process.
class disk_folder {
public:
  /// Opens the folder at `path`; creates it and its missing parents. Symbolic
  /// links in `path` itself are followed.
  static disk_folder open(const std::filesystem::path& path);

  /// The path, for error messages.
  const std::string& path() const noexcept { return path_; }

  /// Opens the folder of that name; nothing if there is none.
  std::optional<disk_folder> find(const std::string& name) const;

  /// Opens the folder of that name; creates it if it is missing, accessible
  /// only to this user.
  disk_folder make(const std::string& name) const;

  /// Creates a folder. Returns false if the name is already in use.
  bool make_new(const std::string& name) const;

  /// Opens the file of that name; nothing if there is none.
  std::optional<disk_file> find_file(const std::string& name) const;

  /// Writes a new file, accessible only to this user, and makes its content
  /// durable. Its name is durable only after `sync`.
  void write_file(const std::string& name, std::string_view bytes) const;

  /// Gives the file of that name to `target` too, where it has the same name
  /// and content; copies it where the file system has no hard links. Throws
  /// `errc::corrupt` if there is no such file.
  void share_file(const std::string& name, const disk_folder& target) const;

  /// Lists the names of all entries, in no order.
  std::vector<std::string> entries() const;

  /// Moves the folder `name`, whole or not at all. Both folders must be in the
  /// same file system.
  move_outcome move(const std::string& name,
                    const disk_folder& target,
                    const std::string& target_name) const;

  /// Removes the entry of that name, a folder with its content.
  void remove(const std::string& name) const;

  /// Makes the names of the entries durable.
  void sync() const;

  // The lock is advisory: it binds only programs that ask for it. The kernel
  // releases it when the holding process ends. The member names are those of
  // the standard's lockable types.

  void lock() const;
  bool try_lock() const;
  void unlock() const noexcept;
  void lock_shared() const;

  void unlock_shared() const noexcept { unlock(); }

private:
  disk_folder(descriptor opened, std::string path)
    : opened_(std::move(opened)),
      path_(std::move(path)) {}

  std::string path_of(std::string_view name) const;

  descriptor opened_;
  std::string path_;
};

} // namespace troupe
