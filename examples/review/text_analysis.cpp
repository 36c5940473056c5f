#include "text_analysis.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

namespace review {

namespace {

constexpr std::string_view blank = " \t\r\v\f";
// Characters that may follow the last mark of a sentence.
constexpr std::string_view closing = ")]\"'*_`";

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

struct row {
  std::string_view text;
  std::size_t line;
};

// The lines outside of fenced code. Code lines are kept as blank lines, which
// separate paragraphs.
std::vector<row> rows_of(std::string_view text) {
  std::vector<row> rows;
  std::string_view fence;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    const auto shown = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto trimmed = trim(shown);
    const bool is_fence
      = trimmed.starts_with("```") || trimmed.starts_with("~~~");
    if (!fence.empty()) {
      if (trimmed.starts_with(fence))
        fence = {};
      rows.push_back({{}, line});
    } else if (is_fence) {
      fence = trimmed.substr(0, 3);
      rows.push_back({{}, line});
    } else {
      rows.push_back({shown, line});
    }
  }
  return rows;
}

bool is_blank(const row& shown) {
  return trim(shown.text).empty();
}

std::size_t heading_level(std::string_view text) {
  const auto level = std::min(text.find_first_not_of('#'), text.size());
  return level <= 6 && level < text.size() && text[level] == ' ' ? level : 0;
}

bool is_underline(std::string_view text, char mark) {
  const auto trimmed = trim(text);
  return trimmed.size() >= 3
         && trimmed.find_first_not_of(mark) == std::string_view::npos;
}

bool is_word_byte(char next) {
  const auto byte = static_cast<unsigned char>(next);
  return byte >= 0x80 || std::isalnum(byte) != 0;
}

char lower(char next) {
  return next >= 'A' && next <= 'Z' ? static_cast<char>(next - 'A' + 'a')
                                    : next;
}

struct placed_word {
  std::string text;
  std::size_t begin;
  std::size_t end;
};

// Words are letters and digits; an apostrophe or hyphen between two of them
// belongs to the word.
std::vector<placed_word> placed_words(std::string_view text) {
  std::vector<placed_word> found;
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (!is_word_byte(text[index]))
      continue;
    placed_word word{{}, index, index};
    while (
      index < text.size()
      && (is_word_byte(text[index])
          || ((text[index] == '\'' || text[index] == '-')
              && index + 1 < text.size() && is_word_byte(text[index + 1]))))
      word.text += lower(text[index++]);
    word.end = index;
    found.push_back(std::move(word));
  }
  return found;
}

bool is_prose(const row& shown) {
  const auto trimmed = trim(shown.text);
  return !trimmed.empty() && heading_level(trimmed) == 0
         && !trimmed.starts_with('|') && !is_underline(trimmed, '=')
         && !is_underline(trimmed, '-') && !is_underline(trimmed, '*');
}

bool is_list_item(std::string_view text) {
  const auto trimmed = trim(text);
  return trimmed.starts_with("- ") || trimmed.starts_with("* ")
         || trimmed.starts_with("+ ");
}

void add_sentence(std::vector<sentence>& found,
                  std::string& collected,
                  std::size_t line) {
  const auto count = placed_words(collected).size();
  if (count > 0)
    found.push_back({{std::string(trim(collected)), line}, count});
  collected.clear();
}

// A full stop ends a sentence unless a lower-case letter follows, as after
// "e.g.".
bool ends_sentence(std::string_view text, std::size_t index) {
  if (text[index] != '.' && text[index] != '!' && text[index] != '?')
    return false;
  const auto behind = text.find_first_not_of(closing, index + 1);
  if (behind == std::string_view::npos)
    return true;
  if (blank.find(text[behind]) == std::string_view::npos)
    return false;
  const auto next = text.find_first_not_of(blank, behind);
  return next == std::string_view::npos || text[next] < 'a' || text[next] > 'z';
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9')
    return digit - '0';
  digit = lower(digit);
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

std::string percent_decode(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    if (text.size() >= 3 && text[0] == '%' && hex_digit(text[1]) >= 0
        && hex_digit(text[2]) >= 0) {
      decoded
        += static_cast<char>(hex_digit(text[1]) * 16 + hex_digit(text[2]));
      text.remove_prefix(3);
    } else {
      decoded += text.front();
      text.remove_prefix(1);
    }
  }
  return decoded;
}

// The path of a link; unset if it is absolute, within the page, or not a file.
std::optional<std::string> relative_path(std::string_view target) {
  const auto has_scheme = [target] {
    const auto colon = target.find_first_of(":/?#");
    return colon != std::string_view::npos && target[colon] == ':';
  };
  if (target.empty() || target.front() == '/' || target.front() == '#'
      || has_scheme())
    return std::nullopt;
  const auto path = target.substr(0, target.find_first_of("?#"));
  return path.empty() ? std::nullopt : std::optional(percent_decode(path));
}

// The text from the bracket to the end of the target, in `](target "title")` or
// `](<target>)`.
std::string_view link_target(std::string_view behind) {
  constexpr std::size_t bytes_max = 4096;
  behind = behind.substr(0, bytes_max);
  behind
    = behind.substr(std::min(behind.find_first_not_of(blank), behind.size()));
  if (behind.starts_with('<'))
    return behind.substr(1, behind.find('>') - 1);
  std::size_t open = 0;
  for (std::size_t index = 0; index < behind.size(); ++index) {
    if (behind.substr(index).starts_with("]("))
      return {}; // The next link begins first.
    if (behind[index] == '(')
      ++open;
    else if (blank.find(behind[index]) != std::string_view::npos
             || (behind[index] == ')' && open-- == 0))
      return behind.substr(0, index);
  }
  return {};
}

std::vector<located> link_targets(std::string_view text) {
  std::vector<located> found;
  for (const auto& [shown, line] : rows_of(text)) {
    bool in_code = false;
    for (std::size_t index = 0; index < shown.size(); ++index) {
      if (shown[index] == '`')
        in_code = !in_code;
      else if (!in_code && shown.substr(index).starts_with("]("))
        found.push_back(
          {std::string(link_target(shown.substr(index + 2))), line});
    }
    // A reference: `[name]: target`.
    const auto trimmed = trim(shown);
    const auto close = trimmed.find("]: ");
    if (trimmed.starts_with('[') && close != std::string_view::npos) {
      const auto target = trim(trimmed.substr(close + 3));
      found.push_back(
        {std::string(target.substr(0, target.find_first_of(blank))), line});
    }
  }
  return found;
}

constexpr std::array<std::string_view, 42> common_words{
  "about", "also",  "because", "been",  "before", "could", "does",
  "each",  "from",  "have",    "here",  "into",   "just",  "more",
  "most",  "much",  "only",    "other", "over",   "same",  "should",
  "some",  "such",  "than",    "that",  "their",  "them",  "then",
  "there", "these", "they",    "this",  "those",  "under", "what",
  "when",  "where", "which",   "will",  "with",   "would", "your"};

} // namespace

std::vector<heading> outline(std::string_view text) {
  const auto rows = rows_of(text);
  std::vector<heading> marked;
  std::vector<heading> standing;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const auto& [shown, line] = rows[index];
    const auto trimmed = trim(shown);
    if (trimmed.empty())
      continue;
    const auto* next = index + 1 < rows.size() ? &rows[index + 1] : nullptr;
    if (const auto level = heading_level(shown); level > 0) {
      marked.push_back(
        {{std::string(trim(trimmed.substr(level))), line}, level});
    } else if (next != nullptr && is_underline(next->text, '=')) {
      marked.push_back({{std::string(trimmed), line}, 1});
    } else if ((index == 0 || is_blank(rows[index - 1]))
               && (next == nullptr || is_blank(*next)) && trimmed.size() <= 72
               && is_word_byte(trimmed.front())
               && trimmed.find_first_of("<>:;") == std::string_view::npos) {
      // A full stop ends a sentence, but also a number: "0. Definitions."
      const bool numbered = trimmed.front() >= '0' && trimmed.front() <= '9';
      if (numbered || trimmed.back() != '.')
        standing.push_back(
          {{std::string(trimmed), line}, numbered ? std::size_t{2} : 1});
    }
  }
  return marked.empty() ? standing : marked;
}

std::vector<sentence> sentences(std::string_view text) {
  std::vector<sentence> found;
  std::string collected;
  std::size_t line = 0;
  for (const auto& shown : rows_of(text)) {
    if (!is_prose(shown) || is_list_item(shown.text))
      add_sentence(found, collected, line);
    if (!is_prose(shown))
      continue;
    const auto prose = trim(shown.text);
    for (std::size_t index = 0; index < prose.size(); ++index) {
      if (collected.empty())
        line = shown.line;
      collected += prose[index];
      if (!ends_sentence(prose, index))
        continue;
      while (index + 1 < prose.size()
             && closing.find(prose[index + 1]) != std::string_view::npos)
        collected += prose[++index];
      add_sentence(found, collected, line);
    }
    if (!collected.empty())
      collected += ' ';
  }
  add_sentence(found, collected, line);
  return found;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  for (const auto& shown : rows_of(text))
    for (auto& word : placed_words(shown.text))
      found.push_back(std::move(word.text));
  return found;
}

std::vector<located> broken_links(std::string_view text,
                                  const std::filesystem::path& folder) {
  std::vector<located> broken;
  for (auto& target : link_targets(text)) {
    const auto path = relative_path(target.text);
    std::error_code failed;
    if (path && !std::filesystem::exists(folder / *path, failed))
      broken.push_back(std::move(target));
  }
  return broken;
}

std::vector<located> doubled_words(std::string_view text) {
  std::vector<located> found;
  std::string last;
  for (const auto& shown : rows_of(text)) {
    if (!is_prose(shown)) {
      last.clear();
      continue;
    }
    std::size_t end = 0;
    for (const auto& word : placed_words(shown.text)) {
      // Only white space or a line break may be between the two words.
      const auto between = shown.text.substr(end, word.begin - end);
      const bool is_letter
        = std::isalpha(static_cast<unsigned char>(word.text.front())) != 0;
      if (word.text == last && is_letter && trim(between).empty())
        found.push_back({word.text, shown.line});
      last = word.text;
      end = word.end;
    }
    if (!trim(shown.text.substr(end)).empty())
      last.clear();
  }
  return found;
}

std::vector<repeated_word> frequent_words(std::string_view text,
                                          std::size_t count) {
  std::map<std::string, std::size_t> counts;
  for (const auto& word : words(text))
    if (word.size() >= 4
        && std::ranges::find(common_words, word) == common_words.end())
      ++counts[word];
  std::vector<repeated_word> found;
  for (const auto& [word, times] : counts)
    if (times > 1)
      found.push_back({word, times});
  std::ranges::stable_sort(
    found, std::ranges::greater(), &repeated_word::count);
  found.resize(std::min(found.size(), count));
  return found;
}

} // namespace review
