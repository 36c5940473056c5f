// Any bytes, split at any places, give the same events as in one piece, and
// never crash.

#include "troupe/models/http/sse_reader.hpp"

#include "fuzz_target.hpp"

#include <cstddef>
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
  const auto text = troupe::testing::text_of(bytes, size);
  troupe::testing::expect(read(text, troupe::testing::cuts_of(text))
                            == read(text, {text.size()}),
                          "cuts change nothing");
  return 0;
}
