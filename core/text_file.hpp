// A file that a user has written, read whole.

#pragma once

#include "troupe/core/error.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

namespace troupe {

/// Fails with `errc::not_found` on what does not exist, `errc::too_large` above
/// `bytes_max`, and `errc::invalid_argument` on what cannot be read, a folder
/// among it; the reason does not name the file.
result<std::string> read_text_file(const std::filesystem::path& file,
                                   std::size_t bytes_max);

} // namespace troupe
