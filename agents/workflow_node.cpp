#include "troupe/agents/workflow_node.hpp"

namespace troupe {

json to_json(const route& value) {
  return std::visit([](const auto& held) { return json(held); }, value);
}

result<route> route_from_json(const json& data) {
  if (data.is_string())
    return route(data.get<std::string>());
  if (data.is_boolean())
    return route(data.get<bool>());
  if (data.is_number_unsigned()
      && data.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
    return error(errc::invalid_argument,
                 "a route has more than 64 bits: " + to_text(data));
  if (data.is_number_integer())
    return route(data.get<std::int64_t>());
  return error(errc::invalid_argument,
               "a route is a string, an integer or a boolean, not "
                 + to_text(data));
}

} // namespace troupe
