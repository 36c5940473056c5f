#include "troupe/core/support/base64.hpp"

#include <openssl/evp.h>

#include <algorithm>

namespace troupe {

namespace {

// OpenSSL counts in `int`, so longer input is processed in steps.
constexpr std::size_t group_step = std::size_t{1} << 24;
constexpr std::size_t bytes_step = 3 * group_step;
constexpr std::size_t text_step = 4 * group_step;

bool is_digit(char letter) noexcept {
  return (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z')
         || (letter >= '0' && letter <= '9') || letter == '+' || letter == '/'
         || letter == '-' || letter == '_';
}

std::size_t padding_of(std::string_view text) noexcept {
  if (text.ends_with("=="))
    return 2;
  return text.ends_with('=') ? 1 : 0;
}

// Converts to the standard alphabet with padding, the only form that OpenSSL
// reads.
std::string as_standard(std::string_view digits) {
  std::string text;
  text.reserve(digits.size() + 2);
  text = digits;
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

const unsigned char* as_bytes(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* as_bytes(std::string& text, std::size_t offset) noexcept {
  return reinterpret_cast<unsigned char*>(text.data() + offset);
}

} // namespace

std::string to_base64(std::string_view bytes, base64_alphabet alphabet) {
  // OpenSSL ends each step with a NUL. The next step overwrites it; the last
  // NUL is the string's own.
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  for (std::size_t done = 0; done < bytes.size(); done += bytes_step) {
    const auto step = bytes.substr(done, bytes_step);
    EVP_EncodeBlock(as_bytes(text, done / 3 * 4),
                    as_bytes(step),
                    static_cast<int>(step.size()));
  }
  if (alphabet == base64_alphabet::url) {
    std::ranges::replace(text, '+', '-');
    std::ranges::replace(text, '/', '_');
  }
  return text;
}

result<std::string> from_base64(std::string_view text) {
  const auto padding = padding_of(text);
  const auto digits = text.substr(0, text.size() - padding);
  if (!std::ranges::all_of(digits, is_digit))
    return error(errc::invalid_argument,
                 "malformed base64: it has a character of neither alphabet");
  if (digits.size() % 4 == 1 || (padding > 0 && text.size() % 4 != 0))
    return error(errc::invalid_argument, "malformed base64: it is cut off");
  const auto standard = as_standard(digits);
  std::string bytes(standard.size() / 4 * 3, '\0');
  for (std::size_t done = 0; done < standard.size(); done += text_step) {
    const auto step = std::string_view(standard).substr(done, text_step);
    if (EVP_DecodeBlock(as_bytes(bytes, done / 4 * 3),
                        as_bytes(step),
                        static_cast<int>(step.size()))
        < 0)
      return error(errc::invalid_argument, "malformed base64");
  }
  // OpenSSL decodes padding to zero bytes.
  bytes.resize(digits.size() * 3 / 4);
  return bytes;
}

} // namespace troupe
