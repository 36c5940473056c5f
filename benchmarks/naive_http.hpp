// Baselines with libcurl for many requests: one handle for all, and one thread
// for each.

#pragma once

#include <cstddef>
#include <string>

namespace bench {

/// Makes `count` concurrent requests with the same `body`. Returns the number
/// of complete answers; these are not parsed.
std::size_t ask_by_one_handle(const std::string& url,
                              const std::string& body,
                              std::size_t count);

std::size_t ask_by_threads(const std::string& url,
                           const std::string& body,
                           std::size_t count);

} // namespace bench
