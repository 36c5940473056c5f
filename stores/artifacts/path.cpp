#include "troupe/stores/artifacts/path.hpp"

#include <fmt/format.h>

#include <charconv>

namespace troupe {

namespace {

constexpr std::size_t component_bytes_max = 128;
constexpr char continuation = '+';
// Small enough that the next number also fits into 64 bits.
constexpr std::size_t version_digits_max = 18;

bool stays(char letter, bool begins_component) noexcept {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9')
         || letter == '-' || letter == '_'
         || (letter == '.' && !begins_component);
}

std::string encoded(std::string_view name) {
  std::string text;
  for (const char letter : name) {
    if (stays(letter, text.size() % component_bytes_max == 0))
      text += letter;
    else
      text += fmt::format("%{:02x}", static_cast<unsigned char>(letter));
  }
  return text;
}

void add(folder_path& path, std::string_view name) {
  const auto whole = encoded(name);
  std::string_view rest = whole;
  for (; rest.size() > component_bytes_max;
       rest.remove_prefix(component_bytes_max))
    path.push_back(std::string(rest.substr(0, component_bytes_max))
                   + continuation);
  path.emplace_back(rest);
}

} // namespace

folder_path path_of(const owner_name& owner) {
  folder_path path;
  add(path, owner.app);
  if (owner.where() == scope::app)
    return path;
  add(path, owner.user);
  if (owner.where() == scope::session) {
    path.emplace_back("sessions");
    add(path, owner.session);
  }
  return path;
}

folder_path artifacts_path_of(const owner_name& owner) {
  auto path = path_of(owner);
  if (owner.where() == scope::user)
    path.emplace_back("own");
  return path;
}

folder_path path_of(const artifact_key& key) {
  auto path = artifacts_path_of(key.owner);
  add(path, key.name);
  return path;
}

bool is_continued(std::string_view component) noexcept {
  return component.ends_with(continuation);
}

std::optional<std::string> decoded_name(std::string_view text) {
  std::string name;
  for (auto rest = text; !rest.empty();) {
    if (rest.front() != '%') {
      name += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    unsigned int byte = 0;
    const auto digits = rest.substr(1, 2);
    const auto* const end = digits.data() + digits.size();
    if (digits.size() < 2
        || std::from_chars(digits.data(), end, byte, 16).ptr != end)
      return std::nullopt;
    name += static_cast<char>(byte);
    rest.remove_prefix(3);
  }
  // Several texts decode to this name, but only one is its encoding.
  if (encoded(name) != text)
    return std::nullopt;
  return name;
}

std::optional<std::int64_t> version_of(std::string_view component) noexcept {
  std::int64_t version = 0;
  const auto* const end = component.data() + component.size();
  const auto read = std::from_chars(component.data(), end, version);
  if (read.ec != std::errc() || read.ptr != end || version < 0
      || component.size() > version_digits_max
      || (component.front() == '0' && component.size() > 1))
    return std::nullopt;
  return version;
}

} // namespace troupe
