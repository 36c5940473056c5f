// Answers in the exact form of a vendor, from the files in recorded/: NAME.sse
// is a stream, NAME.json a complete answer, NAME.expected.json the meaning of
// both.

#pragma once

#include "troupe/models/formats/wire_format.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::testing {

class recordings {
public:
  explicit recordings(std::string_view vendor)
    : folder_(std::filesystem::path("models/recorded") / vendor) {}

  /// Returns the names of the files with this ending, in order.
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

/// A text that is no answer, words of the reason, and the code of the error.
struct bad_answer {
  std::string text;
  std::string reason;
  std::string code = "model_failed";
};

inline std::ostream& operator<<(std::ostream& to, const bad_answer& shown) {
  return to << shown.text;
}

inline void check_refused(const wire_format& format, const bad_answer& bad) {
  const auto read = format.read_answer(bad.text, {});
  BOOST_TEST(code_of(read) == bad.code);
  BOOST_TEST(reason_of(read).find(bad.reason) != std::string::npos,
             reason_of(read));
}

/// The form of NAME.expected.json.
inline json shown(const result<model_response>& answer) {
  if (!answer)
    return {{"code", to_string(answer.error().code())},
            {"reason", answer.error().message()}};
  return {{"content", to_json(answer->content)},
          {"extra", answer->extra.data()}};
}

/// The result of one stream.
struct played {
  json whole;
  /// The contents of the partial responses.
  std::vector<json> pieces;

  friend bool operator==(const played&, const played&) = default;
};

/// Streams `text` in pieces, split at the places `cuts`, which are in order.
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
        seen.pieces.push_back(to_json(piece.content));
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

/// Joins the texts of all pieces, or their thoughts.
inline std::string joined(const std::vector<json>& pieces, bool thoughts) {
  std::string words;
  for (const auto& piece : pieces)
    for (const auto& element : piece["parts"])
      if (element.value("thought", false) == thoughts)
        words += element.value("text", "");
  return words;
}

} // namespace troupe::testing
