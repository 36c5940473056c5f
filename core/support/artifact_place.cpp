#include "troupe/core/support/artifact_place.hpp"

#include "troupe/core/key.hpp"

namespace troupe {

namespace {

constexpr auto version_field = "version";
constexpr auto set_aside_field = "setAside";

bool is_version(const json& data) {
  return data.is_number_integer() && data.get<std::int64_t>() >= 0;
}

} // namespace

std::string artifact_place_key(std::string_view name) {
  std::string key(key_prefix_artifact);
  key += name;
  return key;
}

json to_json(const artifact_place& place) {
  return {{version_field, place.version ? json(*place.version) : json()},
          {set_aside_field, place.set_aside}};
}

std::optional<artifact_place> artifact_place_from(const json& data) {
  if (!data.is_object() || data.size() != 2)
    return std::nullopt;
  const auto version = data.find(version_field);
  const auto set_aside = data.find(set_aside_field);
  if (version == data.end() || set_aside == data.end()
      || !is_version(*set_aside)
      || !(version->is_null() || is_version(*version)))
    return std::nullopt;
  artifact_place place;
  if (!version->is_null())
    place.version = version->get<std::int64_t>();
  place.set_aside = set_aside->get<std::int64_t>();
  return place;
}

std::optional<artifact_place> artifact_place_of(const readonly_state& state,
                                                std::string_view name) {
  const auto held = state.find(artifact_place_key(name));
  return held ? artifact_place_from(held->data()) : std::nullopt;
}

} // namespace troupe
