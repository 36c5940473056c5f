#include "troupe/models/trace_context.hpp"

#include "troupe/core/support/blank.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace troupe {

namespace {

// Length of a text of version 00. A later version may have more behind it.
constexpr std::size_t traceparent_size = 55;

constexpr std::string_view small_hex_digits = "0123456789abcdef";

// Capital letters are not valid.
bool read_bytes(std::string_view text, std::span<std::uint8_t> into) {
  for (std::size_t at = 0; at < into.size(); ++at) {
    const auto high = small_hex_digits.find(text[2 * at]);
    const auto low = small_hex_digits.find(text[2 * at + 1]);
    if (high == small_hex_digits.npos || low == small_hex_digits.npos)
      return false;
    into[at] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

void write_bytes(std::span<const std::uint8_t> from, std::string& into) {
  for (const auto each : from) {
    into += small_hex_digits[each / 16U];
    into += small_hex_digits[each % 16U];
  }
}

bool is_zero(std::span<const std::uint8_t> bytes) {
  return std::ranges::all_of(bytes,
                             [](std::uint8_t each) { return each == 0; });
}

bool is_small_or_digit(char each) {
  return (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9');
}

bool is_state_key(std::string_view key) {
  constexpr std::size_t size_max = 256;
  return !key.empty() && key.size() <= size_max
         && is_small_or_digit(key.front())
         && std::ranges::all_of(key, [](char each) {
              return is_small_or_digit(each)
                     || std::string_view("_-*/@").find(each)
                          != std::string_view::npos;
            });
}

bool is_state_value(std::string_view text) {
  constexpr std::size_t size_max = 256;
  return !text.empty() && text.size() <= size_max && text.back() != ' '
         && std::ranges::all_of(text, [](char each) {
              return each >= ' ' && each <= '~' && each != ',' && each != '=';
            });
}

} // namespace

std::optional<trace_parent> read_traceparent(std::string_view text) {
  if (text.size() < traceparent_size || text[2] != '-' || text[35] != '-'
      || text[52] != '-')
    return std::nullopt;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  trace_parent made;
  if (!read_bytes(text, version) || !read_bytes(text.substr(3), made.trace)
      || !read_bytes(text.substr(36), made.span)
      || !read_bytes(text.substr(53), flags))
    return std::nullopt;
  constexpr std::uint8_t no_version = 0xff;
  const bool is_longer = text.size() > traceparent_size;
  const bool is_plain
    = std::ranges::all_of(text.substr(traceparent_size),
                          [](char each) { return each > ' ' && each <= '~'; });
  if (version[0] == no_version || !is_plain
      || (is_longer && (version[0] == 0 || text[traceparent_size] != '-'))
      || is_zero(made.trace) || is_zero(made.span))
    return std::nullopt;
  made.is_sampled = (flags[0] & 1U) != 0;
  return made;
}

std::string to_traceparent(const trace_parent& from) {
  std::string made = "00-";
  made.reserve(traceparent_size);
  write_bytes(from.trace, made);
  made += '-';
  write_bytes(from.span, made);
  made += from.is_sampled ? "-01" : "-00";
  return made;
}

bool is_tracestate(std::string_view text) {
  constexpr std::size_t members_max = 32;
  // Servers refuse long headers. W3C asks for at least 512.
  constexpr std::size_t bytes_max = 4'096;
  if (text.size() > bytes_max)
    return false;
  std::size_t members = 0;
  while (true) {
    const auto comma = text.find(',');
    const auto member = trimmed(text.substr(0, comma), " \t");
    // Members may be empty.
    if (!member.empty()) {
      const auto equals = member.find('=');
      if (equals == member.npos || ++members > members_max
          || !is_state_key(member.substr(0, equals))
          || !is_state_value(member.substr(equals + 1)))
        return false;
    }
    if (comma == text.npos)
      return true;
    text.remove_prefix(comma + 1);
  }
}

trace_context accept_trace_context(std::string parent, std::string state) {
  const auto read = read_traceparent(parent);
  if (!read)
    return {};
  trace_context accepted;
  accepted.parent
    = parent.starts_with("00-") ? std::move(parent) : to_traceparent(*read);
  if (is_tracestate(state))
    accepted.state = std::move(state);
  return accepted;
}

result<void> check_trace_context(const trace_context& given) {
  if (!given.parent.empty() && !read_traceparent(given.parent))
    return error(errc::invalid_argument,
                 "the traceparent is not valid: expected 00-TRACE-SPAN-FLAGS "
                 "with 32, 16 and 2 small hexadecimal digits");
  if (given.parent.empty() && !given.state.empty())
    return error(errc::invalid_argument,
                 "there is a tracestate without a traceparent");
  if (!is_tracestate(given.state))
    return error(errc::invalid_argument,
                 "the tracestate is not valid: expected KEY=VALUE,KEY=VALUE "
                 "with at most 32 members and 4096 bytes");
  return {};
}

} // namespace troupe
