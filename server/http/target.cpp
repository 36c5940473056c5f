#include "troupe/server/http/target.hpp"

#include "troupe/core/json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::serving {

namespace {

int digit_of(char text) {
  if (text >= '0' && text <= '9')
    return text - '0';
  if (text >= 'a' && text <= 'f')
    return text - 'a' + 10;
  if (text >= 'A' && text <= 'F')
    return text - 'A' + 10;
  return -1;
}

error bad_target(std::string_view why) {
  return {errc::invalid_argument, fmt::format("the request target {}", why)};
}

result<std::string> checked(std::string text) {
  if (text.find('\0') != std::string::npos)
    return bad_target("holds a NUL byte");
  if (!is_utf8(text))
    return bad_target("is not UTF-8");
  return text;
}

// Calls `take` with each piece of `text` between two separators, until it
// fails.
template <class Take>
result<void> split(std::string_view text, char separator, const Take& take) {
  for (;;) {
    const auto end = text.find(separator);
    if (auto taken = take(text.substr(0, end)); !taken)
      return taken;
    if (end == text.npos)
      return {};
    text.remove_prefix(end + 1);
  }
}

result<void> add_field(request_target& target, std::string_view field) {
  if (field.empty())
    return {};
  const auto sign = field.find('=');
  auto name = percent_decoded(field.substr(0, sign), true);
  if (!name)
    return name.error();
  auto data = sign == field.npos
                ? result<std::string>(std::string())
                : percent_decoded(field.substr(sign + 1), true);
  if (!data)
    return data.error();
  target.query.emplace_back(std::move(*name), std::move(*data));
  return {};
}

} // namespace

const std::string* request_target::find(std::string_view name) const {
  const auto found = std::ranges::find_if(
    query, [name](const auto& field) { return field.first == name; });
  return found == query.end() ? nullptr : &found->second;
}

result<std::string> percent_decoded(std::string_view text, bool form) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (text[index] != '%') {
      decoded += form && text[index] == '+' ? ' ' : text[index];
      continue;
    }
    const bool is_whole = index + 2 < text.size();
    const int high = is_whole ? digit_of(text[index + 1]) : -1;
    const int low = is_whole ? digit_of(text[index + 2]) : -1;
    if (high < 0 || low < 0)
      return bad_target("has a '%' without two hexadecimal digits");
    decoded += static_cast<char>(high * 16 + low);
    index += 2;
  }
  return checked(std::move(decoded));
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view plain = "-._~";
  std::string encoded;
  for (const char each : text) {
    const bool keeps
      = (each >= '0' && each <= '9') || (each >= 'a' && each <= 'z')
        || (each >= 'A' && each <= 'Z') || plain.find(each) != plain.npos;
    if (keeps)
      encoded += each;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(each));
  }
  return encoded;
}

result<request_target> parse_target(std::string_view text) {
  if (!text.starts_with('/'))
    return bad_target("does not start with '/'");
  request_target target;
  const auto mark = text.find('?');
  auto split_path = split(text.substr(1, mark == text.npos ? mark : mark - 1),
                          '/',
                          [&target](std::string_view piece) -> result<void> {
                            auto segment = percent_decoded(piece, false);
                            if (!segment)
                              return segment.error();
                            target.segments.push_back(std::move(*segment));
                            return {};
                          });
  if (!split_path)
    return split_path.error();
  if (mark == text.npos)
    return target;
  auto split_query
    = split(text.substr(mark + 1), '&', [&target](std::string_view field) {
        return add_field(target, field);
      });
  if (!split_query)
    return split_query.error();
  return target;
}

} // namespace troupe::serving
