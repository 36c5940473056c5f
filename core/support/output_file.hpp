// A file for results. It is never written through a symbolic link, and is
// unreadable for other users where it may hold secrets.

#pragma once

#include "troupe/core/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

namespace troupe {

/// Opens every file that troupe writes for its user: recordings, traces,
/// reports, pages. Stores and artifacts do not use it.
///
/// A path whose last component is a symbolic link is refused: another user may
/// have made it, and its target would be overwritten. Names of open descriptors
/// are allowed: `/dev/stdout`, `/dev/stderr`, `/dev/fd/N` and `/proc/self/fd/N`
/// mean the descriptor itself. Devices and pipes are written directly. Folders
/// on the path may be links.
///
/// Not thread-safe. All calls fail with `errc::store_failed`, with the path and
/// the reason.
class output_file {
public:
  /// Users who may read the file.
  enum class readers : std::uint8_t {
    umask, ///< As the umask says; never more than an existing file allows.
    /// Only the owner (mode 0600). An existing file is replaced and not
    /// overwritten, because another program may have it open. A file of another
    /// user is refused.
    owner,
  };

  /// The time at which the file appears under its name.
  enum class placement : std::uint8_t {
    at_once, ///< At once: creates, empties or replaces the file.
    whole,   ///< As a whole, by `finish`.
  };

  static result<output_file>
  open(const std::filesystem::path& path, readers who, placement when);

  output_file(output_file&& other) noexcept
    : path_(std::move(other.path_)),
      beside_(std::exchange(other.beside_, {})),
      has_name_(other.has_name_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

  output_file& operator=(output_file&&) = delete;

  /// Removes a file that `finish` has not put in place. A program that is
  /// killed leaves a file `PATH.PID.part` only on file systems without unnamed
  /// files.
  ~output_file();

  /// Passes all of `text` to the operating system.
  result<void> write(std::string_view text);

  /// Closes the file and puts it in place. Must be the last call.
  result<void> finish();

private:
  output_file(std::filesystem::path path,
              std::filesystem::path beside,
              int descriptor)
    : path_(std::move(path)),
      beside_(std::move(beside)),
      descriptor_(descriptor) {}

  std::filesystem::path path_;
  std::filesystem::path beside_; // Empty if the file is written in place.
  bool has_name_ = true;         // False until `finish` names an unnamed file.
  int descriptor_;
};

} // namespace troupe
