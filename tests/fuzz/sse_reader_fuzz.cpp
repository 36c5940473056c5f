// Any bytes, cut anywhere, give the same events as the whole, and never crash.
//
// The first byte is how many cuts there are, the next ones where.

#include "troupe/models/sse_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct outcome {
  std::vector<troupe::sse_event> events;
  std::string stray = {};
  bool has_failed = false;

  friend bool operator==(const outcome&, const outcome&) = default;
};

outcome read(std::string_view text, const std::vector<std::size_t>& cuts) {
  outcome seen;
  troupe::sse_reader reader;
  std::size_t start = 0;
  for (const auto end : cuts) {
    if (!seen.has_failed)
      seen.has_failed
        = !reader.take(text.substr(start, end - start), seen.events);
    start = end;
  }
  seen.stray = reader.stray();
  if (seen.stray.size() > troupe::sse_reader::stray_bytes_max)
    std::abort();
  return seen;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(bytes), size);
  if (input.empty())
    return 0;
  const auto count = std::min<std::size_t>(
    static_cast<unsigned char>(input.front()) % 8, input.size() - 1);
  const auto places = input.substr(1, count);
  const auto text = input.substr(1 + count);
  std::vector<std::size_t> cuts;
  for (const char place : places)
    cuts.push_back(static_cast<unsigned char>(place) * text.size() / 255);
  std::ranges::sort(cuts);
  cuts.push_back(text.size());
  if (read(text, cuts) != read(text, {text.size()}))
    std::abort();
  return 0;
}
