#include "troupe/core/support/base64.hpp"

#include <algorithm>
#include <array>

namespace troupe {

namespace {

constexpr std::string_view digits_standard
  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view digits_url
  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::uint8_t no_digit = 64;

// The value of each byte as a digit of either alphabet.
constexpr auto digit_values = [] {
  std::array<std::uint8_t, 256> made{};
  made.fill(no_digit);
  for (const auto alphabet : {digits_standard, digits_url})
    for (std::size_t digit = 0; digit < alphabet.size(); ++digit)
      made[static_cast<unsigned char>(alphabet[digit])]
        = static_cast<std::uint8_t>(digit);
  return made;
}();

std::uint8_t digit_value(char digit) noexcept {
  return digit_values[static_cast<unsigned char>(digit)];
}

std::size_t padding_of(std::string_view text) noexcept {
  if (text.ends_with("=="))
    return 2;
  return text.ends_with('=') ? 1 : 0;
}

} // namespace

std::string to_base64(std::string_view bytes, base64_alphabet alphabet) {
  const auto digits
    = alphabet == base64_alphabet::url ? digits_url : digits_standard;
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  auto* next = text.data();
  // Each group of up to three bytes is up to four digits of six bits.
  for (std::size_t done = 0; done < bytes.size(); done += 3) {
    const auto count = std::min<std::size_t>(3, bytes.size() - done);
    std::uint32_t group = 0;
    for (std::size_t index = 0; index < 3; ++index)
      group = group << 8U
              | (index < count ? static_cast<unsigned char>(bytes[done + index])
                               : 0U);
    for (std::size_t index = 0; index <= count; ++index)
      next[index] = digits[group >> (18U - 6U * index) & 63U];
    next += 4;
  }
  return text;
}

result<std::string> from_base64(std::string_view text) {
  const auto padding = padding_of(text);
  const auto digits = text.substr(0, text.size() - padding);
  if (!std::ranges::all_of(
        digits, [](char digit) { return digit_value(digit) != no_digit; }))
    return error(errc::invalid_argument,
                 "malformed base64: it has a character of neither alphabet");
  if (digits.size() % 4 == 1 || (padding > 0 && text.size() % 4 != 0))
    return error(errc::invalid_argument, "malformed base64: it is cut off");
  std::string bytes;
  bytes.reserve(digits.size() * 3 / 4);
  std::uint32_t bits = 0;
  std::size_t count = 0;
  for (const auto digit : digits) {
    bits = bits << 6U | digit_value(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xffU);
    }
  }
  return bytes;
}

} // namespace troupe
