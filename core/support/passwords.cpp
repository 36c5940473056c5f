#include "troupe/core/support/passwords.hpp"

#include "troupe/core/support/blank.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using namespace std::string_view_literals;

constexpr auto npos = std::string_view::npos;
constexpr std::string_view hidden = "***";

// Spellings of libpq and of other programs.
constexpr std::array keywords
  = {"password"sv, "passwd"sv, "passphrase"sv, "pwd"sv};

bool is_alphanumeric(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int hex_value(char c) {
  if (is_digit(c))
    return c - '0';
  const auto low = std::tolower(static_cast<unsigned char>(c));
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/// The text in lower case and without percent-encoding, with the position of
/// each character in the original.
///
/// Names and starts of passwords are searched in the decoded text, because
/// libpq decodes names too. Ends of passwords are searched in the literal text:
/// an encoded separator is part of the password.
class decoded_text {
public:
  explicit decoded_text(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const bool is_encoded = text[at] == '%' && at + 2 < text.size()
                              && hex_value(text[at + 1]) >= 0
                              && hex_value(text[at + 2]) >= 0;
      const char next = is_encoded
                          ? static_cast<char>(hex_value(text[at + 1]) * 16
                                              + hex_value(text[at + 2]))
                          : text[at];
      text_
        += static_cast<char>(std::tolower(static_cast<unsigned char>(next)));
      literal_ += is_encoded ? encoded : text_.back();
      places_.push_back(at);
      at += is_encoded ? 3 : 1;
    }
    places_.push_back(text.size());
  }

  std::string_view text() const noexcept { return text_; }

  /// The same text with a letter in place of each character that was encoded.
  std::string_view literal() const noexcept { return literal_; }

  std::size_t place_of(std::size_t at) const {
    return places_[std::min(at, text_.size())];
  }

private:
  // A letter that may be in a name and ends nothing.
  static constexpr char encoded = 'x';

  std::string text_;
  std::string literal_;
  std::vector<std::size_t> places_;
};

struct span_of_text {
  std::size_t begin;
  std::size_t end;
};

// Finds the ranges to hide, as positions in the decoded text.
class password_search {
public:
  explicit password_search(const decoded_text& decoded)
    : text_(decoded.text()),
      literal_(decoded.literal()) {}

  std::vector<span_of_text> run() {
    for (auto colon = text_.find(':'); colon != npos;
         colon = text_.find(':', colon + 1))
      look_at_url(colon);
    for (const auto keyword : keywords)
      for (auto at = text_.find(keyword); at != npos;
           at = text_.find(keyword, at + 1))
        look_at_keyword(at, at + keyword.size());
    return std::move(found_);
  }

private:
  std::size_t find_of(std::string_view set, std::size_t from) const {
    return std::min(literal_.find_first_of(set, from), literal_.size());
  }

  /// Returns the last `@` of a range, or `npos`.
  std::size_t last_at(std::size_t begin, std::size_t end) const {
    const auto at = literal_.substr(begin, end - begin).rfind('@');
    return at == npos ? npos : begin + at;
  }

  std::string_view scheme_before(std::size_t colon) const {
    auto begin = colon;
    while (begin > 0
           && (is_alphanumeric(text_[begin - 1])
               || "+-."sv.find(text_[begin - 1]) != npos))
      --begin;
    return text_.substr(begin, colon - begin);
  }

  void look_at_url(std::size_t colon) {
    const auto scheme = scheme_before(colon);
    auto begin = colon + 1;
    while (begin < text_.size() && text_[begin] == '/')
      ++begin;
    const auto slashes = begin - colon - 1;
    if (scheme.ends_with("postgres") || scheme.ends_with("postgresql"))
      return look_at_database(begin);
    // The rest of these addresses is a path, which holds no password.
    if (scheme.empty() || scheme == "sqlite" || scheme == "file")
      return;
    if (scheme == "http" || scheme == "https" ? slashes > 0 : slashes > 1)
      look_at_host(begin, scheme.starts_with("http"));
  }

  // Handles a database URL. Text may quote a URL whose password contains blanks
  // and quotes, so only the last `@` of the line marks its end.
  void look_at_database(std::size_t begin) {
    const auto line = find_of("\n", begin);
    auto user_end = last_at(begin, line);
    if (user_end == npos)
      user_end = last_at_behind(line);
    const auto colon = text_.find(':', begin);
    if (user_end != npos) {
      if (colon < user_end)
        hide(colon + 1, user_end);
      return;
    }
    // Without an `@`, text in place of a port may be a password.
    if (has_bad_port(begin, find_of("/?#\n \t'\"", begin)))
      hide(colon + 1, line);
  }

  // Handles a password with a line break. The next line then begins with the
  // rest of the password up to an `@`, and not with another URL.
  std::size_t last_at_behind(std::size_t line) const {
    const auto next = std::min(line + 1, text_.size());
    const auto found = last_at(next, find_of(white_space, next));
    if (found == npos || text_.substr(next, found - next).find("://") != npos)
      return npos;
    return found;
  }

  void look_at_host(std::size_t begin, bool is_http) {
    const auto end = find_of(white_space, begin);
    const auto host_end = find_of("/?# \t\r\n\v\f", begin);
    if (last_at(begin, host_end) != npos) {
      const auto user_end = last_at(begin, end);
      // A user alone is a token in HTTP, and a name elsewhere.
      if (is_http || text_.substr(begin, user_end - begin).find(':') != npos)
        hide(begin, user_end);
    } else if (is_http && has_bad_port(begin, find_of("'\"`,;)", begin))
               && has_bad_port(begin, host_end)) {
      const auto user_end = last_at(begin, end);
      if (user_end != npos)
        hide(begin, user_end);
    }
  }

  // Returns true if a colon in the range is followed by anything but a port.
  // IPv6 addresses are in brackets.
  bool has_bad_port(std::size_t begin, std::size_t end) const {
    auto hosts = text_.substr(begin, end - begin);
    while (!hosts.empty()) {
      const auto comma = hosts.find(',');
      auto host = hosts.substr(0, comma);
      hosts.remove_prefix(comma == npos ? hosts.size() : comma + 1);
      if (host.starts_with('['))
        host.remove_prefix(std::min(host.find(']'), host.size()));
      const auto colon = host.find(':');
      if (colon == npos)
        continue;
      auto port = host.substr(colon + 1);
      while (!port.empty() && ".;:)"sv.find(port.back()) != npos)
        port.remove_suffix(1); // Punctuation of the sentence around it.
      if (port.size() > 5 || !std::ranges::all_of(port, is_digit))
        return true;
    }
    return false;
  }

  // Handles the keyword between `begin` and `end`; its name may continue after
  // it.
  void look_at_keyword(std::size_t begin, std::size_t end) {
    while (end < text_.size()
           && (is_alphanumeric(text_[end]) || text_[end] == '_'))
      ++end;
    const auto equals = text_.find_first_not_of(" \t", end);
    if (equals == npos || text_[equals] != '=')
      return;
    while (begin > 0
           && (is_alphanumeric(text_[begin - 1]) || text_[begin - 1] == '_'))
      --begin;
    const bool is_parameter
      = begin > 0 && "?&;"sv.find(text_[begin - 1]) != npos;
    const auto from
      = std::min(text_.find_first_not_of(" \t", equals + 1), text_.size());
    hide(from, is_parameter ? end_of_parameter(from) : end_of_value(from));
  }

  // Returns the end of a URL parameter. An `&` without a name after it is part
  // of the password.
  std::size_t end_of_parameter(std::size_t from) const {
    const auto line = find_of("\n", from);
    for (auto at = find_of("&", from); at < line; at = find_of("&", at + 1)) {
      auto name = at + 1;
      while (name < line
             && (is_alphanumeric(text_[name]) || text_[name] == '_'))
        ++name;
      if (name > at + 1 && name < line && literal_[name] == '=')
        return at;
    }
    return line;
  }

  // Returns the end of a value: the closing quote, or a blank. A backslash
  // escapes either.
  std::size_t end_of_value(std::size_t from) const {
    const bool is_quoted = from < literal_.size()
                           && (literal_[from] == '\'' || literal_[from] == '"');
    const auto ends = is_quoted ? literal_.substr(from, 1) : white_space;
    for (auto at = from + (is_quoted ? 1 : 0); at < literal_.size(); ++at) {
      if (literal_[at] == '\\')
        ++at;
      else if (ends.find(literal_[at]) != npos)
        return is_quoted ? at + 1 : at;
    }
    return literal_.size();
  }

  void hide(std::size_t begin, std::size_t end) {
    if (begin < end)
      found_.push_back({begin, end});
  }

  const std::string_view text_;
  const std::string_view literal_;
  std::vector<span_of_text> found_;
};

} // namespace

std::string without_passwords(std::string_view text) {
  const decoded_text decoded(text);
  auto found = password_search(decoded).run();
  std::ranges::sort(found, {}, &span_of_text::begin);
  std::string shown;
  std::size_t copied = 0;
  for (const auto& [begin, end] : found) {
    const auto first = decoded.place_of(begin);
    const auto last = decoded.place_of(end);
    if (last <= copied)
      continue;
    // A range that overlaps the last one extends it.
    if (first >= copied) {
      shown += text.substr(copied, first - copied);
      shown += hidden;
    }
    copied = last;
  }
  return shown += text.substr(copied);
}

} // namespace troupe
