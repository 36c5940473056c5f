#include "troupe/server/adk/query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace troupe::serving {

namespace {

std::optional<std::uint64_t> read_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || rest != end)
    return std::nullopt;
  return number;
}

} // namespace

result<std::optional<std::uint64_t>> number_in(const request& asked,
                                               std::string_view name) {
  const auto* text = asked.target.find(name);
  if (text == nullptr)
    return std::optional<std::uint64_t>();
  const auto number = read_number(*text);
  if (!number)
    return error(errc::invalid_argument,
                 fmt::format("'{}' in the query is no number from 0", name));
  return number;
}

result<bool> flag_in(const request& asked, std::string_view name) {
  constexpr std::array<std::string_view, 6> yes
    = {"true", "1", "on", "t", "y", "yes"};
  constexpr std::array<std::string_view, 6> no
    = {"false", "0", "off", "f", "n", "no"};
  const auto* text = asked.target.find(name);
  if (text == nullptr)
    return false;
  auto lower = *text;
  std::ranges::transform(lower, lower.begin(), [](char each) {
    return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a')
                                      : each;
  });
  const bool is_set = std::ranges::find(yes, lower) != yes.end();
  if (!is_set && std::ranges::find(no, lower) == no.end())
    return error(
      errc::invalid_argument,
      fmt::format("'{}' in the query is neither true nor false", name));
  return is_set;
}

result<std::optional<std::uint64_t>> expected_revision(const request& asked) {
  const auto* header = asked.header("if-match");
  if (header == nullptr || *header == "*")
    return std::optional<std::uint64_t>();
  std::string_view text = *header;
  if (text.size() < 3 || !text.starts_with('"') || !text.ends_with('"'))
    return error(errc::invalid_argument,
                 "If-Match is not the ETag of a session, such as \"7\"");
  const auto number = read_number(text.substr(1, text.size() - 2));
  if (!number)
    return error(errc::invalid_argument,
                 "If-Match is not the ETag of a session, such as \"7\"");
  return number;
}

bool wants_stream(const request& asked) {
  const auto* accepted = asked.header("accept");
  return asked.target.find("follow") != nullptr
         || (accepted != nullptr
             && accepted->find("text/event-stream") != std::string::npos);
}

// The place of a client that connects again comes first.
result<std::optional<std::uint64_t>> stream_place(const request& asked) {
  const auto* last = asked.header("last-event-id");
  if (last == nullptr)
    return number_in(asked, "after");
  const auto number = read_number(*last);
  if (!number)
    return error(errc::invalid_argument,
                 "Last-Event-ID is not the id of an element of this stream, a "
                 "whole number");
  return number;
}

} // namespace troupe::serving
