#include "troupe/stores/store_options.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace troupe {

namespace {

constexpr std::array durability_names = {
  std::pair{durability::durable, std::string_view("durable")},
  std::pair{durability::os, std::string_view("os")},
  std::pair{durability::none, std::string_view("none")},
};

} // namespace

std::string_view to_string(durability promised) noexcept {
  return durability_names[static_cast<std::size_t>(promised)].second;
}

result<durability> durability_from(std::string_view name) {
  for (const auto& [promised, spelling] : durability_names)
    if (spelling == name)
      return promised;
  return error(errc::invalid_argument,
               fmt::format("unknown durability '{}'; expected durable, "
                           "os or none",
                           name));
}

} // namespace troupe
