#include "troupe/cli/options/state_option.hpp"

#include <fmt/format.h>

namespace troupe::cli {

result<json> read_state(const std::string& text) {
  auto state = parse_json(text);
  if (state && !state->is_object())
    return error(errc::invalid_argument,
                 fmt::format("expected an object, not {} {}",
                             state->is_array() ? "an" : "a",
                             state->type_name()));
  return state;
}

} // namespace troupe::cli
