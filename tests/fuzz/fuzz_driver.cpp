// Runs a fuzz target without a fuzzer: the files that are named, and what a
// seed makes of them by cutting, doubling and changing bytes.
//
// Usage: PROGRAM ROUNDS SEED FILE...

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes,
                                      std::size_t size);

namespace {

using input = std::vector<std::uint8_t>;

const input* current = nullptr;

// What a broken rule ends with.
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
    run(changed(corpus[random() % corpus.size()], random));
  std::printf("%llu inputs from %zu files\n",
              static_cast<unsigned long long>(rounds + corpus.size()),
              corpus.size() - 1);
}
