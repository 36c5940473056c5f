// A streamed answer of any bytes, cut anywhere, comes to the same as the whole,
// and neither throws nor crashes; what it comes to may enter a session.
//
// The first byte chooses the format, the second is how many cuts there are, the
// next ones where.

#include "troupe/models/wire_format.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using troupe::json;

json shown(const troupe::result<troupe::model_response>& answer) {
  if (!answer)
    return {{"error", to_string(answer.error())}};
  json made{{"content", to_json(answer->said)},
            {"extra", answer->extra.data()}};
  if (!troupe::check_json(made, "answer"))
    std::abort();
  return made;
}

json read(const troupe::wire_format& format,
          std::string_view text,
          const std::vector<std::size_t>& cuts) {
  troupe::sse_reader events;
  const auto reader = format.read_stream({});
  auto pieces = json::array();
  std::size_t start = 0;
  for (const auto end : cuts) {
    std::vector<troupe::sse_event> next;
    auto taken = events.take(text.substr(start, end - start), next);
    start = end;
    for (const auto& event : next) {
      std::vector<troupe::model_response> said;
      auto read = reader->take(event, said);
      for (const auto& piece : said)
        pieces.push_back(shown(piece));
      if (!read)
        return {pieces, shown(read.error())};
    }
    if (!taken)
      return {pieces, shown(taken.error())};
  }
  if (const auto stray = format.check_stray(events.stray()); !stray)
    return {pieces, shown(stray.error())};
  return {pieces, shown(reader->finish())};
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size) {
  static const std::array formats = {troupe::openai_format(),
                                     troupe::gemini_format(),
                                     troupe::anthropic_format()};
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  if (input.size() < 2)
    return 0;
  const auto& format = *formats[static_cast<unsigned char>(input[0]) % 3];
  const auto count = std::min<std::size_t>(
    static_cast<unsigned char>(input[1]) % 8, input.size() - 2);
  const auto places = input.substr(2, count);
  const auto text = input.substr(2 + count);
  std::vector<std::size_t> cuts;
  for (const char place : places)
    cuts.push_back(static_cast<unsigned char>(place) * text.size() / 255);
  std::ranges::sort(cuts);
  cuts.push_back(text.size());
  if (read(format, text, cuts) != read(format, text, {text.size()}))
    std::abort();
  // The same bytes as a whole answer, and as a failure.
  shown(format.read_answer(text, {}));
  const auto failure = format.failure_of(500, text, "secret-key-1");
  if (failure.size() > 500 || !troupe::is_utf8(failure)
      || failure.find("secret-key-1") != std::string::npos)
    std::abort();
  return 0;
}
