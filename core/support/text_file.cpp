#include "troupe/core/support/text_file.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace troupe {

result<std::string> read_text_file(const std::filesystem::path& file,
                                   std::size_t bytes_max) {
  std::error_code unused;
  if (std::filesystem::is_directory(file, unused))
    return error(errc::invalid_argument, "is a folder");
  errno = 0;
  std::ifstream source(file, std::ios::binary);
  if (!source)
    return error(errc::not_found, std::generic_category().message(errno));
  std::string text;
  std::array<char, 65'536>
    piece; // Of fixed size, because a device or a pipe has no size.
  while (source.read(piece.data(), piece.size()) || source.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(source.gcount()));
    if (text.size() > bytes_max)
      return error(errc::too_large,
                   fmt::format("has more than {} bytes", bytes_max));
  }
  if (source.bad())
    return error(errc::invalid_argument, "cannot be read");
  return text;
}

result<std::string> read_regular_file(const std::filesystem::path& file,
                                      std::size_t bytes_max) {
  // Opening a pipe would wait already. Folders and missing files have errors of
  // their own.
  std::error_code unused;
  const auto found = std::filesystem::status(file, unused);
  if (std::filesystem::exists(found) && !std::filesystem::is_directory(found)
      && !std::filesystem::is_regular_file(found))
    return error(errc::invalid_argument,
                 "is not a regular file; name a file, not a pipe, a socket or "
                 "a device");
  return read_text_file(file, bytes_max);
}

} // namespace troupe
