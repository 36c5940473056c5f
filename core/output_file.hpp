// A file that results are written to: never through a symbolic link, and read
// by nobody else where it may hold secrets.

#pragma once

#include "troupe/core/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

namespace troupe {

/// Opens every file that troupe writes for its user: recordings, traces,
/// reports, pages. Stores and artifacts have their own ways.
///
/// A path whose last component is a symbolic link is refused: somebody else may
/// have put it there, and what it leads to would be overwritten. Links to open
/// descriptors are no such thing: `/dev/stdout`, `/dev/stderr`, `/dev/fd/N` and
/// `/proc/self/fd/N` mean the descriptor itself. Devices and pipes are written
/// to as they are. Folders on the way to the file may be links.
///
/// Not thread-safe. All calls fail with `errc::store_failed`, with the path and
/// the reason.
class output_file {
public:
  enum class readers : std::uint8_t {
    umask, ///< As the umask says, and never more than a file there had.
    owner, ///< Mode 0600. A file there loses the rights of others first.
  };

  enum class placement : std::uint8_t {
    at_once, ///< Makes the file or empties it.
    whole,   ///< Written beside the path, put in place by `finish`.
  };

  static result<output_file>
  open(const std::filesystem::path& path, readers who, placement when);

  output_file(output_file&& other) noexcept
    : path_(std::move(other.path_)),
      beside_(std::exchange(other.beside_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

  output_file& operator=(output_file&&) = delete;

  /// What was not finished and has no place yet is removed.
  ~output_file();

  /// Hands all of `text` to the operating system.
  result<void> write(std::string_view text);

  /// Closes the file, and puts it in place. Called once, last.
  result<void> finish();

private:
  output_file(std::filesystem::path path,
              std::filesystem::path beside,
              int descriptor)
    : path_(std::move(path)),
      beside_(std::move(beside)),
      descriptor_(descriptor) {}

  std::filesystem::path path_;
  std::filesystem::path beside_; // Empty: written in place.
  int descriptor_;
};

} // namespace troupe
