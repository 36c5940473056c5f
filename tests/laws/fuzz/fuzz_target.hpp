// Common parts of the fuzz targets. A target gets bytes and aborts when a rule
// is broken.

#pragma once

#include "troupe/core/support/scattered.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size);

namespace troupe::testing {

inline std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

/// Aborts, as a fuzzer expects, unless `holds`.
inline void expect(bool holds, const char* rule) {
  if (holds)
    return;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}

/// Returns up to seven places where `text` is cut, and its end. They are
/// random, but always the same for one text.
inline std::vector<std::size_t> cuts_of(std::string_view text) {
  std::vector<std::size_t> cuts;
  auto drawn = scattered(std::hash<std::string_view>()(text));
  for (auto count = drawn % 8; count > 0; --count) {
    drawn = scattered(drawn);
    cuts.push_back(drawn % (text.size() + 1));
  }
  cuts.push_back(text.size());
  std::ranges::sort(cuts);
  return cuts;
}

} // namespace troupe::testing
