// A text in a JSON object that another program has written.

#pragma once

#include "troupe/core/json.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// Returns the text of the field `name`. Returns an empty text if the field is
/// missing or is no text, or if `object` is no object.
inline std::string text_in(const json& object, std::string_view name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

} // namespace troupe
