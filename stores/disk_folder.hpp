// An open folder and what is done in it, by name and never by path: no name
// leads out of it, and no symbolic link is followed.
//
// Everything here throws `error`: `errc::corrupt` where a link or a file of
// another kind stands in the way, else `errc::store_failed`. Names are single
// components, chosen by the caller.

#pragma once

#include "troupe/core/error.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// A file descriptor that is closed in the end.
class descriptor {
public:
  explicit descriptor(int number) noexcept : number_(number) {}

  descriptor(descriptor&& other) noexcept
    : number_(std::exchange(other.number_, -1)) {}

  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  ~descriptor();

  int number() const noexcept { return number_; }

private:
  int number_;
};

/// A regular file, open for reading: also after it was removed.
class disk_file {
public:
  disk_file(descriptor opened, std::string path, std::size_t size)
    : opened_(std::move(opened)),
      path_(std::move(path)),
      size_(size) {}

  /// All of it; shorter than `size` if somebody has cut it since.
  std::string read() const;

  /// In bytes, when it was opened.
  std::size_t size() const noexcept { return size_; }

  /// For messages.
  const std::string& path() const noexcept { return path_; }

private:
  descriptor opened_;
  std::string path_;
  std::size_t size_;
};

/// What came of a move that did not fail.
enum class move_outcome : std::uint8_t {
  moved,
  occupied, ///< A folder that is not empty has the target's name.
  absent,   ///< There is nothing to move.
};

/// All members are safe from any thread. It is a shared mutex too, between
/// processes and between folders opened one by one, in threads as well.
class disk_folder {
public:
  /// Opens the folder at `path`; makes it, and those it lies in, if it is not
  /// there. The path itself may lead through symbolic links.
  static disk_folder open(const std::filesystem::path& path);

  /// For messages.
  const std::string& path() const noexcept { return path_; }

  /// The folder of that name, if there is one.
  std::optional<disk_folder> find(const std::string& name) const;

  /// The folder of that name, made if need be, for this user only.
  disk_folder make(const std::string& name) const;

  /// Makes a folder, and says whether there was none of that name.
  bool make_new(const std::string& name) const;

  /// The file of that name, if there is one.
  std::optional<disk_file> find_file(const std::string& name) const;

  /// Writes a new file, for this user only, and sees to it that its content is
  /// durable. Its name is so after `sync`.
  void write_file(const std::string& name, std::string_view bytes) const;

  /// The names of all that is in it, in no order.
  std::vector<std::string> entries() const;

  /// Moves the folder `name`, whole or not at all. Both folders must be in one
  /// file system.
  move_outcome move(const std::string& name,
                    const disk_folder& target,
                    const std::string& target_name) const;

  /// Removes what has that name, with all that is in it.
  void remove(const std::string& name) const;

  /// Makes its entries durable.
  void sync() const;

  // The lock is advisory, and the kernel lets go of it when its holder is gone.
  // Spelled as the standard's locks want it.

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
