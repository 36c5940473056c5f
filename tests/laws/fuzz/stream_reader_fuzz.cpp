// A streamed answer of any bytes, split at any places, gives the same result as
// in one piece. It neither throws nor crashes, and the result may enter a
// session.

#include "troupe/models/formats/wire_format.hpp"

#include "fuzz_target.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace {

using troupe::json;
using troupe::testing::expect;

json shown(const troupe::result<troupe::model_response>& answer) {
  if (!answer)
    return {{"error", to_string(answer.error())}};
  json made{{"content", to_json(answer->content)},
            {"extra", answer->extra.data()}};
  expect(troupe::check_json(made, "answer").has_value(),
         "an answer may enter a session");
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
                                     troupe::openai_responses_format(),
                                     troupe::gemini_format(),
                                     troupe::anthropic_format()};
  constexpr std::string_view key = "secret-key-1";
  const auto text = troupe::testing::text_of(bytes, size);
  const auto cuts = troupe::testing::cuts_of(text);
  for (const auto& format : formats) {
    expect(read(*format, text, cuts) == read(*format, text, {text.size()}),
           "cuts change nothing");
    // Reads the same bytes as a complete answer, and as a failure.
    shown(format->read_answer(text, {}));
    const auto failure = format->failure_of(500, text, key);
    expect(failure.size() <= 500 && troupe::is_utf8(failure),
           "a failure is a short line");
    expect(failure.find(key) == std::string::npos, "a failure has no key");
  }
  return 0;
}
