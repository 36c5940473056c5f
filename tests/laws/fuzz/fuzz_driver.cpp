// Runs a fuzz target without a fuzzer. The inputs are the named files, and
// random changes of them: cuts, doublings and other bytes, or other values in
// JSON, since changed bytes rarely leave valid JSON.
//
// Usage: PROGRAM ROUNDS SEED FILE...

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size);

namespace {

using input = std::vector<std::uint8_t>;

const input* current = nullptr;

// Prints the current input when a broken rule aborts the program.
void print_input(int /*signal*/) {
  std::fprintf(stderr, "the input, in hexadecimal: ");
  for (const auto byte : *current)
    std::fprintf(stderr, "%02x", static_cast<unsigned>(byte));
  std::fprintf(stderr, "\n");
}

void run(const input& bytes) {
  current = &bytes;
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

input changed(input bytes, std::mt19937_64& random) {
  const auto below = [&random](std::size_t limit) {
    return static_cast<std::size_t>(random() % std::max<std::size_t>(limit, 1));
  };
  for (auto steps = 1 + below(8); steps > 0; --steps) {
    const auto at = below(bytes.size());
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(4)) {
    case 0:
      if (!bytes.empty())
        *first = static_cast<std::uint8_t>(random());
      break;
    case 1:
      bytes.erase(first,
                  first
                    + static_cast<std::ptrdiff_t>(
                      std::min(below(32), bytes.size() - at)));
      break;
    case 2:
      bytes.insert(first, static_cast<std::uint8_t>(random()));
      break;
    default: {
      const input piece(first,
                        first
                          + static_cast<std::ptrdiff_t>(
                            std::min(below(64), bytes.size() - at)));
      bytes.insert(bytes.begin()
                     + static_cast<std::ptrdiff_t>(below(bytes.size())),
                   piece.begin(),
                   piece.end());
    }
    }
  }
  return bytes;
}

using nlohmann::json;

void collect(json& from, std::vector<json*>& all) {
  all.push_back(&from);
  if (from.is_structured())
    for (auto& each : from)
      collect(each, all);
}

json value_of(std::mt19937_64& random) {
  switch (random() % 6) {
  case 0:
    return nullptr;
  case 1:
    return static_cast<std::int64_t>(random());
  case 2:
    return static_cast<std::int64_t>(random() % 7) - 3;
  case 3:
    return static_cast<double>(random() % 1'000) / 8 - 60;
  case 4:
    return random() % 2 == 0;
  default:
    return std::string(random() % 5, static_cast<char>('a' + random() % 26));
  }
}

// Replaces values, adds some to lists, and removes some.
input changed_values(json data, std::mt19937_64& random) {
  for (auto steps = 1 + random() % 6; steps > 0; --steps) {
    std::vector<json*> all;
    collect(data, all);
    auto& target = *all[random() % all.size()];
    json other
      = random() % 3 == 0 ? value_of(random) : *all[random() % all.size()];
    if (other.size() > 64)
      continue; // The data would only grow.
    if (target.is_array() && random() % 2 == 0)
      target.push_back(std::move(other));
    else if (target.is_structured() && !target.empty() && random() % 4 == 0)
      target.erase(std::next(
        target.begin(), static_cast<std::ptrdiff_t>(random() % target.size())));
    else
      target = std::move(other);
  }
  const auto text = data.dump(-1, ' ', false, json::error_handler_t::replace)
                      .substr(0, 65'536);
  return {text.begin(), text.end()};
}

input changed_somehow(const input& bytes, std::mt19937_64& random) {
  if (random() % 4 != 0)
    if (auto data = json::parse(bytes, nullptr, false); data.is_structured())
      return changed_values(std::move(data), random);
  return changed(bytes, random);
}

} // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fputs("usage: PROGRAM ROUNDS SEED FILE...\n", stderr);
    return 2;
  }
  std::signal(SIGABRT, print_input);
  const auto rounds = std::strtoull(words[1], nullptr, 10);
  std::mt19937_64 random(std::strtoull(words[2], nullptr, 10));
  std::vector<input> corpus{{}};
  for (int index = 3; index < count; ++index) {
    std::ifstream file(words[index], std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>());
  }
  for (const auto& bytes : corpus)
    run(bytes);
  for (auto round = rounds; round > 0; --round)
    run(changed_somehow(corpus[random() % corpus.size()], random));
  std::printf("%llu inputs from %zu files\n",
              static_cast<unsigned long long>(rounds + corpus.size()),
              corpus.size() - 1);
}
