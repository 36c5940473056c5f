// Two usual ways to ask for many answers with libcurl, as baselines: one handle
// for all, and a thread for each.

#pragma once

#include <cstddef>
#include <string>

namespace bench {

/// Asks `count` times at once, with the same `body`; returns how many answers
/// came whole. The answers are counted, not read.
std::size_t ask_by_one_handle(const std::string& url,
                              const std::string& body,
                              std::size_t count);

std::size_t ask_by_threads(const std::string& url,
                           const std::string& body,
                           std::size_t count);

} // namespace bench
