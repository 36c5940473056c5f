// Plays one seed, a range of seeds, or seeds without end, and reports the
// speed.

#include "../recovery/recovery_simulation.hpp"
#include "simulation.hpp"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

using troupe::testing::place_kind;

constexpr auto usage
  = "usage: simulate [--seed N | --seeds FROM..TO | --forever] [--verbose]\n"
    "                [--sqlite | --recoveries] [--keep-going]\n"
    "\n"
    "  --seed N          plays this seed\n"
    "  --seeds FROM..TO  plays these, both included\n"
    "  --forever         plays one after another from a seed of the clock on\n"
    "  --verbose         prints what happens\n"
    "  --sqlite          plays the second time over a SQLite file\n"
    "  --recoveries      plays runs that are killed and recovered instead\n"
    "  --keep-going      does not end at the first seed that fails\n"
    "\n"
    "Each seed is played twice, and must give the same history. Ends with 1 "
    "when\none fails.\n";

struct wanted {
  std::uint64_t first = 0;
  std::uint64_t last = 99;
  bool verbose = false;
  bool keep_going = false;
  bool recoveries = false;
  place_kind second = place_kind::memory;
};

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end;
}

bool read(const std::vector<std::string_view>& words, wanted& made) {
  for (std::size_t index = 0; index < words.size(); ++index) {
    const auto& word = words[index];
    const auto next
      = index + 1 < words.size() ? words[index + 1] : std::string_view();
    if (word == "--verbose") {
      made.verbose = true;
    } else if (word == "--keep-going") {
      made.keep_going = true;
    } else if (word == "--recoveries") {
      made.recoveries = true;
    } else if (word == "--sqlite") {
      made.second = place_kind::sqlite;
    } else if (word == "--forever") {
      made.first
        = static_cast<std::uint64_t>(
            std::chrono::system_clock::now().time_since_epoch().count())
          / 1'000'000'000 * 1'000'000;
      made.last = std::numeric_limits<std::uint64_t>::max() - 1;
    } else if (word == "--seed" && read_number(next, made.first)) {
      made.last = made.first;
      ++index;
    } else if (word == "--seeds") {
      const auto dots = next.find("..");
      if (dots == std::string_view::npos
          || !read_number(next.substr(0, dots), made.first)
          || !read_number(next.substr(dots + 2), made.last))
        return false;
      ++index;
    } else {
      return false;
    }
  }
  return true;
}

} // namespace

int main(int count, char** words) {
  using namespace troupe::testing;
  using clock = std::chrono::steady_clock;
  wanted chosen;
  if (!read({words + 1, words + count}, chosen)) {
    std::cerr << usage;
    return 2;
  }
  const auto began = clock::now();
  auto told = began;
  std::uint64_t seeds = 0;
  std::uint64_t operations = 0;
  std::uint64_t changes = 0;
  std::uint64_t steps = 0;
  std::uint64_t failed = 0;
  const auto tell = [&] {
    const auto seconds
      = std::chrono::duration<double>(clock::now() - began).count();
    std::cerr << seeds << " seeds, " << static_cast<double>(seeds) / seconds
              << " per second, " << static_cast<double>(operations) / seconds
              << " operations per second, " << changes << " changes, " << steps
              << " steps, " << failed << " failed\n";
  };
  std::map<std::string, std::uint64_t> answers;
  for (auto seed = chosen.first; seed <= chosen.last; ++seed) {
    const auto print = [](std::string_view line) { std::cout << line << '\n'; };
    if (chosen.verbose)
      static_cast<void>(chosen.recoveries
                          ? simulate_recoveries(seed, print)
                          : simulate(seed, chosen.second, false, print));
    const auto outcome = chosen.recoveries
                           ? simulate_recoveries_twice(seed)
                           : simulate_twice(seed, chosen.second);
    ++seeds;
    operations += outcome.calls + outcome.runs;
    changes += outcome.changes;
    steps += outcome.steps;
    for (const auto& each : outcome.answers) {
      const auto space = each.rfind(' ');
      answers[each.substr(0, space)] += std::stoull(each.substr(space + 1));
    }
    for (const auto& each : outcome.findings)
      std::cout << "seed " << seed << ": " << each << '\n';
    if (!outcome.findings.empty()) {
      ++failed;
      std::cout << "play it again: simulate "
                << (chosen.recoveries ? "--recoveries " : "") << "--seed "
                << seed << " --verbose" << std::endl;
      if (!chosen.keep_going)
        break;
    }
    if (clock::now() - told > std::chrono::seconds(10)) {
      told = clock::now();
      tell();
    }
  }
  tell();
  for (const auto& [answer, times] : answers)
    std::cerr << "  " << answer << ": " << times << '\n';
  return failed == 0 ? 0 : 1;
}
