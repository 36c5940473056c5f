#include "troupe/server/http/request.hpp"

#include <algorithm>

namespace troupe::serving {

const std::string* request::header(std::string_view name) const {
  const auto found = std::ranges::find_if(
    headers, [name](const auto& field) { return field.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

} // namespace troupe::serving
