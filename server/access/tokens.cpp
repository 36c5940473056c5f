#include "troupe/server/access/tokens.hpp"

#include "troupe/core/key.hpp"
#include "troupe/core/support/blank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace troupe::serving {

namespace {

// Shorter tokens can be guessed.
constexpr std::size_t token_bytes_min = 16;

std::optional<role> role_of(std::string_view name) {
  if (name == "reader")
    return role::reader;
  if (name == "user")
    return role::user;
  if (name == "admin")
    return role::admin;
  return std::nullopt;
}

bool is_token(std::string_view text) {
  return std::ranges::all_of(
    text, [](char each) { return each > ' ' && each < '\x7f'; });
}

error bad_line(std::size_t number, std::string_view why) {
  return {errc::invalid_argument, fmt::format("line {} {}", number, why)};
}

bool is_equal(std::string_view left, std::string_view right) {
  if (left.size() != right.size())
    return false;
  unsigned char difference = 0;
  for (std::size_t index = 0; index < left.size(); ++index)
    difference = static_cast<unsigned char>(
      difference | static_cast<unsigned char>(left[index] ^ right[index]));
  return difference == 0;
}

} // namespace

result<token_table> token_table::parse(std::string_view text) {
  token_table made;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (is_blank(line) || line.starts_with('#'))
      continue;
    std::istringstream words(line);
    std::string token;
    std::string user;
    std::string role_name;
    std::string rest;
    if (!(words >> token >> user >> role_name) || words >> rest)
      return bad_line(number, "is not TOKEN USER ROLE");
    const auto rights = role_of(role_name);
    if (!rights)
      return bad_line(number, "has a role other than reader, user and admin");
    if (token.size() < token_bytes_min || !is_token(token))
      return bad_line(number,
                      "has a token with fewer than 16 characters, or with "
                      "others than those of ASCII");
    if (auto checked = check_id(user, "the user"); !checked)
      return bad_line(number, "has a bad user");
    if (made.find(token))
      return bad_line(number, "repeats a token");
    made.entries_.push_back({std::move(token), {std::move(user), *rights}});
  }
  return made;
}

std::optional<caller> token_table::find(std::string_view token) const {
  std::optional<caller> found;
  for (const auto& each : entries_)
    if (is_equal(each.token, token))
      found = each.who;
  return found;
}

} // namespace troupe::serving
