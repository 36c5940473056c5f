#include "troupe/server/http/request.hpp"

#include <algorithm>

namespace troupe::serving {

std::string lower_case(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), [](char each) {
    return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a')
                                      : each;
  });
  return made;
}

const std::string* request::header(std::string_view name) const {
  const auto found = std::ranges::find_if(
    headers, [name](const auto& field) { return field.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

} // namespace troupe::serving
