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

} // namespace troupe
