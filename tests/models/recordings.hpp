// Answers in the exact form of a vendor, from the files in recorded/: NAME.sse
// is streamed, NAME.json comes at once, NAME.expected.json is what both mean.

#pragma once

#include "troupe/models/wire_format.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::testing {

class recordings {
public:
  explicit recordings(std::string_view vendor)
    : folder_(std::filesystem::path(__FILE__).parent_path() / "recorded"
              / vendor) {}

  /// Names of the files that end so, in order.
  std::set<std::string> names(std::string_view ending) const {
    std::set<std::string> found;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      const auto name = file.path().filename().string();
      const auto stem = name.substr(0, name.find('.'));
      if (name.substr(stem.size()) == ending)
        found.insert(stem);
    }
    return found;
  }

  std::string text(const std::string& name, std::string_view ending) const {
    std::ifstream file(folder_ / (name + std::string(ending)),
                       std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  json expected(const std::string& name) const {
    return parse_json(text(name, ".expected.json")).value();
  }

private:
  std::filesystem::path folder_;
};

/// In the form of NAME.expected.json.
inline json shown(const result<model_response>& answer) {
  if (!answer)
    return {{"code", to_string(answer.error().code())},
            {"reason", answer.error().message()}};
  return {{"content", to_json(answer->said)}, {"extra", answer->extra.data()}};
}

/// What came of one stream.
struct played {
  json whole;
  /// The contents of the partial responses.
  std::vector<json> pieces;

  friend bool operator==(const played&, const played&) = default;
};

/// Streams `text` in the pieces that `cuts`, in order, make of it.
inline played play(const wire_format& format,
                   std::string_view text,
                   std::vector<std::size_t> cuts) {
  played seen;
  sse_reader events;
  const auto reader = format.read_stream({});
  cuts.push_back(text.size());
  std::size_t start = 0;
  for (const auto end : cuts) {
    std::vector<sse_event> next;
    auto taken = events.take(text.substr(start, end - start), next);
    start = end;
    for (const auto& event : next) {
      std::vector<model_response> pieces;
      if (taken)
        taken = reader->take(event, pieces);
      for (const auto& piece : pieces)
        seen.pieces.push_back(to_json(piece.said));
    }
    if (!taken) {
      seen.whole = shown(taken.error());
      return seen;
    }
  }
  const auto stray = format.check_stray(events.stray());
  seen.whole = stray ? shown(reader->finish()) : shown(stray.error());
  return seen;
}

/// All the words of pieces, or their thoughts.
inline std::string joined(const std::vector<json>& pieces, bool thoughts) {
  std::string words;
  for (const auto& piece : pieces)
    for (const auto& element : piece["parts"])
      if (element.value("thought", false) == thoughts)
        words += element.value("text", "");
  return words;
}

/// The stream whole, byte by byte, and in two pieces cut anywhere, is the same,
/// and means what is expected.
inline void check_streams(const wire_format& format, std::string_view vendor) {
  const recordings recorded(vendor);
  for (const auto& name : recorded.names(".sse")) {
    const auto text = recorded.text(name, ".sse");
    const auto whole = play(format, text, {});
    BOOST_TEST_INFO(name);
    BOOST_TEST(to_text(whole.whole) == to_text(recorded.expected(name)));
    std::vector<std::size_t> all;
    for (std::size_t at = 0; at < text.size(); ++at) {
      all.push_back(at);
      BOOST_TEST((play(format, text, {at}) == whole), name << " cut at " << at);
    }
    BOOST_TEST((play(format, text, all) == whole), name << " byte by byte");
  }
}

inline void check_answers(const wire_format& format, std::string_view vendor) {
  const recordings recorded(vendor);
  for (const auto& name : recorded.names(".json")) {
    BOOST_TEST_INFO(name);
    BOOST_TEST(
      to_text(shown(format.read_answer(recorded.text(name, ".json"), {})))
      == to_text(recorded.expected(name)));
  }
}

/// All that is said in pieces is in the whole, and the other way round.
inline void check_pieces(const wire_format& format, std::string_view vendor) {
  const recordings recorded(vendor);
  for (const auto& name : recorded.names(".sse")) {
    const auto seen = play(format, recorded.text(name, ".sse"), {});
    if (!seen.whole.contains("content"))
      continue;
    const std::vector<json> whole{seen.whole["content"]};
    for (const bool thoughts : {false, true})
      BOOST_TEST(joined(seen.pieces, thoughts) == joined(whole, thoughts),
                 name);
  }
}

/// A stream that ends anywhere is whole or has failed.
inline void check_ends(const wire_format& format, std::string_view vendor) {
  const recordings recorded(vendor);
  const auto text = recorded.text("text", ".sse");
  const auto whole = play(format, text, {}).whole;
  for (std::size_t size = 0; size < text.size(); ++size) {
    auto seen = play(format, text.substr(0, size), {}).whole;
    // What says no words (the counts of tokens) may be missing.
    if (seen.contains("content"))
      BOOST_TEST(to_text(seen["content"]) == to_text(whole["content"]));
    else
      BOOST_TEST(seen["reason"] == "the stream broke off before its end");
  }
}

/// No damage makes a reader throw; what it reads may enter a session.
inline void check_damage(const wire_format& format,
                         std::string_view vendor,
                         std::uint32_t seed) {
  const recordings recorded(vendor);
  std::mt19937 draw(seed);
  const std::vector<std::string> parts = {"null",
                                          "[",
                                          "{}",
                                          "1e999",
                                          "-1",
                                          "\"x\"",
                                          "\xFF",
                                          "\\ud800",
                                          "\n",
                                          "true",
                                          "\"",
                                          ",",
                                          "99999999999999999999",
                                          "[[[[[",
                                          "\0"};
  const auto check = [](const json& seen) {
    if (seen.contains("content"))
      BOOST_TEST(code_of(check_json(seen, "answer")) == "ok");
    else
      BOOST_TEST((seen["code"] == "model_failed" || seen["code"] == "busy"));
  };
  for (const auto& name : recorded.names(".expected.json"))
    for (int count = 0; count < 100; ++count) {
      const bool streamed = recorded.names(".sse").contains(name);
      auto text = recorded.text(name, streamed ? ".sse" : ".json");
      for (int change = 0; change < 2; ++change)
        text.replace(
          draw() % text.size(), draw() % 20, parts[draw() % parts.size()]);
      BOOST_TEST_INFO(name << ", seed " << seed);
      check(streamed ? play(format, text, {}).whole
                     : shown(format.read_answer(text, {})));
    }
}

/// A request to `format` for contents and whatever else `change` sets.
template <class Change>
result<http_request> request_of(const wire_format& format,
                                std::vector<content> said,
                                Change&& change) {
  model_request asked;
  for (auto& each : said)
    asked.contents.push_back(std::make_shared<const content>(std::move(each)));
  wire_options with;
  with.model = "some-model";
  with.base_url = "https://models.example";
  with.key = "secret-key-1";
  std::forward<Change>(change)(asked, with);
  return format.make_request(asked, with);
}

/// Its body, or `{"code", "reason"}`.
inline json body_of(const result<http_request>& made) {
  if (!made)
    return {{"code", to_string(made.error().code())},
            {"reason", made.error().message()}};
  return parse_json(made->body).value();
}

} // namespace troupe::testing
