#include "troupe/stores/memory_words.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t word_bytes_max = 64;
constexpr std::size_t text_words_max = 8'192;
constexpr std::size_t query_words_max = 64;

using code_point = utf8proc_int32_t;

bool is_of_word(code_point code) {
  switch (utf8proc_category(code)) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO:
    return true;
  default:
    return false;
  }
}

// Accents of Latin, Greek and Cyrillic letters. Marks of other scripts are
// vowels and other parts of a word.
bool is_accent(code_point code) {
  return code >= 0x0300 && code <= 0x036f;
}

// Scripts that are written without blanks between words, and Korean, whose
// words have endings without a blank.
bool is_without_blanks(code_point code) {
  constexpr std::array<std::pair<code_point, code_point>, 10> ranges
    = {{{0x0e00, 0x0eff},     // Thai, Lao
        {0x1000, 0x109f},     // Myanmar
        {0x1100, 0x11ff},     // Hangul letters
        {0x1780, 0x17ff},     // Khmer
        {0x3005, 0x3007},     // Han marks
        {0x3040, 0x31ff},     // Kana, Bopomofo
        {0x3400, 0x9fff},     // Han
        {0xac00, 0xd7ff},     // Hangul
        {0xf900, 0xfaff},     // Han
        {0x20000, 0x3ffff}}}; // Han
  return std::ranges::any_of(ranges, [code](const auto& range) {
    return code >= range.first && code <= range.second;
  });
}

// Replaces bytes that are not UTF-8 by blanks.
std::string as_utf8(std::string_view text) {
  std::string sound;
  sound.reserve(text.size());
  while (!text.empty()) {
    code_point code = -1;
    // utf8proc takes unsigned characters.
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    const auto size = utf8proc_iterate(
      bytes, static_cast<utf8proc_ssize_t>(text.size()), &code);
    const auto taken
      = static_cast<std::size_t>(std::max<utf8proc_ssize_t>(size, 1));
    sound += size > 0 ? text.substr(0, taken) : std::string_view(" ");
    text.remove_prefix(taken);
  }
  return sound;
}

// The code points of a text after the case folding of Unicode, with one form of
// each character. A NUL is one of them.
std::vector<code_point> folded(std::string_view text, bool takes_apart) {
  const auto options = static_cast<utf8proc_option_t>(
    UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE
    | (takes_apart ? UTF8PROC_DECOMPOSE : UTF8PROC_COMPOSE));
  utf8proc_uint8_t* made = nullptr;
  const auto size = utf8proc_map(
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
    reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
    static_cast<utf8proc_ssize_t>(text.size()),
    &made,
    options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(
    made, &std::free);
  std::vector<code_point> codes;
  for (utf8proc_ssize_t place = 0; place < size;) {
    code_point code = -1;
    const auto bytes = utf8proc_iterate(made + place, size - place, &code);
    if (bytes <= 0)
      break;
    codes.push_back(code);
    place += bytes;
  }
  return codes;
}

void append(std::string& word, code_point code) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto size = utf8proc_encode_char(code, bytes.data());
  word.append(bytes.begin(), bytes.begin() + size);
}

std::string encoded(const std::vector<code_point>& codes) {
  std::string text;
  for (const auto code : codes)
    append(text, code);
  return text;
}

std::vector<code_point> simplified(std::string_view text) {
  auto codes = folded(as_utf8(text), true);
  std::erase_if(codes, is_accent);
  return folded(encoded(codes), false);
}

// Collects words, each once, up to a number.
class word_list {
public:
  explicit word_list(std::size_t count_max) : count_max_(count_max) {}

  bool is_full() const { return words_.size() >= count_max_; }

  void add(std::string word) {
    if (!is_full() && known_.insert(word).second)
      words_.push_back(std::move(word));
  }

  std::vector<std::string> take() { return std::move(words_); }

private:
  std::size_t count_max_;
  std::vector<std::string> words_;
  std::set<std::string, std::less<>> known_;
};

using code_iterator = std::vector<code_point>::const_iterator;

void add_word(word_list& words, code_iterator first, code_iterator last) {
  std::string word;
  for (; first != last && word.size() < word_bytes_max - 3; ++first)
    append(word, *first);
  words.add(std::move(word));
}

void add_pairs(word_list& words,
               code_iterator first,
               code_iterator last,
               bool is_query) {
  for (auto next = first; next != last; ++next) {
    if (!is_query || last - first == 1)
      words.add(encoded({*next}));
    if (next + 1 != last)
      words.add(encoded({*next, *(next + 1)}));
  }
}

std::vector<std::string>
words_of(std::string_view text, std::size_t count_max, bool is_query) {
  const auto codes = simplified(text);
  word_list words(count_max);
  for (auto next = codes.begin(); next != codes.end() && !words.is_full();) {
    if (!is_of_word(*next)) {
      ++next;
      continue;
    }
    const bool has_pairs = is_without_blanks(*next);
    const auto end
      = std::find_if(next, codes.end(), [has_pairs](code_point code) {
          return !is_of_word(code) || is_without_blanks(code) != has_pairs;
        });
    if (has_pairs)
      add_pairs(words, next, end, is_query);
    else
      add_word(words, next, end);
    next = end;
  }
  return words.take();
}

} // namespace

std::vector<std::string> memory_words(std::string_view text) {
  return words_of(text, text_words_max, false);
}

std::vector<std::string> query_words(std::string_view text) {
  return words_of(text, query_words_max, true);
}

std::string memory_text(const content& said) {
  std::string text;
  for (const auto& each : said.parts)
    if (const auto* line = each.text(); line != nullptr && !each.thought) {
      if (!text.empty())
        text += '\n';
      text += *line;
    }
  return text;
}

std::int64_t word_weight(std::uint64_t memories, std::uint64_t with_word) {
  if (with_word == 0)
    return 1;
  const auto share
    = static_cast<double>(memories) / static_cast<double>(with_word);
  return std::max<std::int64_t>(1, std::llround(1'000 * std::log1p(share)));
}

} // namespace troupe
