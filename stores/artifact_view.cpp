#include "troupe/stores/artifact_view.hpp"

#include "troupe/core/support/artifact_place.hpp"

namespace troupe {

result<std::optional<std::int64_t>>
artifact_view::current(std::string_view name) const {
  const auto versions = kept_->versions(key_, name);
  if (!versions)
    return versions.error();
  std::optional<std::int64_t> newest;
  if (!versions->empty())
    newest = versions->back();
  const auto place = artifact_place_of(state_, name);
  return place ? place->current(newest) : newest;
}

result<std::optional<part>>
artifact_view::load(std::string_view name,
                    std::optional<std::int64_t> version) const {
  if (!version && artifact_place_of(state_, name)) {
    const auto shown = current(name);
    if (!shown)
      return shown.error();
    if (!*shown)
      return std::optional<part>();
    version = *shown;
  }
  return kept_->load(key_, name, version);
}

result<std::vector<std::string>> artifact_view::list() const {
  auto names = kept_->list(key_);
  if (!names)
    return names;
  std::vector<std::string> shown;
  for (auto& name : *names) {
    if (artifact_place_of(state_, name)) {
      const auto version = current(name);
      if (!version)
        return version.error();
      if (!*version)
        continue;
    }
    shown.push_back(std::move(name));
  }
  return shown;
}

} // namespace troupe
