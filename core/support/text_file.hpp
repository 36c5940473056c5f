// Reads a file of the user as a whole.

#pragma once

#include "troupe/core/error.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

namespace troupe {

/// Reads a file. Fails with `errc::not_found` if it does not exist, with
/// `errc::too_large` above `bytes_max` bytes, and with `errc::invalid_argument`
/// if it cannot be read or is a folder. The message does not name the file.
result<std::string> read_text_file(const std::filesystem::path& file,
                                   std::size_t bytes_max);

/// Reads a file that another file names. Fails as `read_text_file` does, and
/// with `errc::invalid_argument` for a pipe, a socket or a device: it might
/// have no end, or wait for a writer that never comes.
result<std::string> read_regular_file(const std::filesystem::path& file,
                                      std::size_t bytes_max);

} // namespace troupe
