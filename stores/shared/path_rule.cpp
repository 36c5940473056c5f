#include "troupe/stores/shared/path_rule.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

namespace troupe {

namespace {

// Returns the byte that `%xx` at the start of `text` encodes.
std::optional<char> percent_encoded(std::string_view text) {
  const auto digit = [](char letter) -> int {
    if (letter >= '0' && letter <= '9')
      return letter - '0';
    const auto lower = std::tolower(static_cast<unsigned char>(letter));
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  if (text.size() < 3 || text[0] != '%')
    return std::nullopt;
  const int high = digit(text[1]);
  const int low = digit(text[2]);
  if (high < 0 || low < 0)
    return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

std::string decoded(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const auto byte = percent_encoded(text);
    plain += byte.value_or(text.front());
    text.remove_prefix(byte ? 3 : 1);
  }
  return plain;
}

// Returns the flaw of a path; empty if there is none.
std::string_view flaw_of(std::string_view path) {
  if (path.empty())
    return "names no file";
  if (path.find('\0') != std::string_view::npos)
    return "has a NUL";
  if (path.find('?') != std::string_view::npos)
    return "has a '?'";
  if (path.find('#') != std::string_view::npos)
    return "has a '#'";
  for (std::size_t start = 0; start <= path.size();) {
    const auto end = std::min(path.find_first_of("/\\", start), path.size());
    if (path.substr(start, end - start) == "..")
      return "has a '..'";
    start = end + 1;
  }
  return {};
}

} // namespace

std::string_view path_flaw(std::string path) {
  for (;;) {
    if (const auto flaw = flaw_of(path); !flaw.empty())
      return flaw;
    auto plain = decoded(path);
    if (plain == path)
      return {};
    path = std::move(plain);
  }
}

} // namespace troupe
