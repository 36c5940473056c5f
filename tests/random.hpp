// Random test data that a seed replays.

#pragma once

#include "troupe/core/json.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>

namespace troupe::testing {

/// One stream of random choices. Prints its seed; a data case over seeds also
/// names the seed where a check fails.
class random_source {
public:
  explicit random_source(std::uint64_t seed) : engine_(seed) {
    BOOST_TEST_MESSAGE("random seed " << seed);
  }

  /// A number from 0 to `bound - 1`.
  std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(engine_() % bound);
  }

  bool one_in(std::size_t count) { return below(count) == 0; }

  template <class Range>
  const auto& pick(const Range& from) {
    return from[below(std::size(from))];
  }

  /// Text of up to `pieces_max` pieces: ASCII, characters of several bytes, and
  /// characters that need escapes.
  std::string text(std::size_t pieces_max) {
    static constexpr std::array<std::string_view, 10> pieces
      = {"a", "B", " ", "7", "\"", "\\", "\n", "é", "雪", "🦉"};
    std::string made;
    for (auto left = below(pieces_max + 1); left > 0; --left)
      made += pick(pieces);
    return made;
  }

  /// A 64-bit integer: most often small, sometimes at a limit.
  json integer() {
    switch (below(8)) {
    case 0:
      return std::numeric_limits<std::int64_t>::min();
    case 1:
      return std::numeric_limits<std::int64_t>::max();
    case 2:
      return std::numeric_limits<std::uint64_t>::max();
    case 3:
      return engine_();
    default:
      return static_cast<std::int64_t>(below(200)) - 100;
    }
  }

  /// Any JSON of at most `depth_max` levels of lists and objects.
  json data(std::size_t depth_max) {
    switch (below(depth_max == 0 ? 5 : 8)) {
    case 0:
      return nullptr;
    case 1:
      return one_in(2);
    case 2:
      return static_cast<double>(below(1'000'000)) / 64 - 5000;
    case 3:
      return integer();
    case 4:
      return text(12);
    case 5: {
      auto list = json::array();
      for (auto left = below(5); left > 0; --left)
        list.push_back(data(depth_max - 1));
      return list;
    }
    default: {
      auto object = json::object();
      for (auto left = below(5); left > 0; --left)
        object[text(3)] = data(depth_max - 1);
      return object;
    }
    }
  }

private:
  std::mt19937_64 engine_;
};

} // namespace troupe::testing
