// The calls of an artifact store may block, so each request is answered on a
// thread for such work.

#include "troupe/core/support/artifact_place.hpp"
#include "troupe/server/adk/body.hpp"
#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/forms.hpp"
#include "troupe/server/adk/served.hpp"
#include "troupe/stores/artifact_view.hpp"

#include <fmt/format.h>

#include <charconv>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace troupe::serving {

namespace {

using store_ptr = std::shared_ptr<artifact_store>;

response no_artifact() {
  return detail(404, "Artifact not found").with("troupe-error", "not_found");
}

// Answers by `make`, which gets the store and the exchange.
template <class Make>
route_handler blocking(const served_ptr& on, Make make) {
  return [on, make](exchange asked) {
    const auto kept = on->on.artifacts();
    if (!kept)
      return asked.to.send(detail(400, "Artifact service not configured"));
    on->threads->work([on, kept, make, asked = std::move(asked)] {
      // A store of the user's own may throw.
      try {
        asked.to.send(make(*on, *kept, asked));
      } catch (const std::exception& thrown) {
        asked.to.send(failure({errc::internal, thrown.what()}));
      }
    });
  };
}

// A part on the wire has the form of a part of a message.
json form_of(const part& held) {
  auto message = content("user", {});
  message.parts.push_back(held);
  event carrier(std::move(message));
  return event_form(carrier)["content"]["parts"][0];
}

result<part> part_from(const json& form) {
  auto read = content_from_json({{"parts", json::array({form})}});
  if (!read)
    return read.error();
  return std::move(read->parts.front());
}

std::string mime_type_of(const part& held) {
  if (held.text() != nullptr)
    return "text/plain";
  const auto bytes = blob_of(held);
  return bytes && *bytes ? (*bytes)->mime_type : std::string();
}

std::string place_of(const session_key& key,
                     const std::string& name,
                     std::int64_t version) {
  return fmt::format("/apps/{}/users/{}/sessions/{}/artifacts/{}/versions/{}",
                     percent_encoded(key.app),
                     percent_encoded(key.user),
                     percent_encoded(key.id),
                     percent_encoded(name),
                     version);
}

json description_of(const session_key& key,
                    const std::string& name,
                    std::int64_t version,
                    const part& held) {
  json shown = {{"version", version},
                {"canonicalUri", place_of(key, name, version)},
                {"customMetadata", json::object()}};
  if (const auto type = mime_type_of(held); !type.empty())
    shown["mimeType"] = type;
  return shown;
}

// The version that a path or a query names; unset for the newest one.
struct wanted_version {
  bool is_valid = true;
  std::optional<std::int64_t> number;
};

wanted_version read_version(const std::string& text) {
  if (text == "latest")
    return {};
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc() || rest != end)
    return {.is_valid = false, .number = {}};
  return {.is_valid = true, .number = number};
}

wanted_version version_in(const exchange& asked) {
  if (const auto* text = asked.path.find("version"))
    return read_version(*text);
  if (const auto* text = asked.asked.target.find("version"))
    return read_version(*text);
  return {};
}

response bad_version() {
  return detail(422, "Invalid version ID");
}

// The artifacts as the session shows them. ADK's clients also save files for
// sessions that do not exist.
result<artifact_view>
view_in(const served& on, artifact_store& kept, const exchange& asked) {
  const auto key = key_in(asked.path);
  const auto held = on.on.sessions().get(key, {.num_recent_events = 0}).get();
  if (held)
    return artifact_view(kept, *held);
  if (held.error().code() != errc::not_found)
    return held.error();
  return artifact_view(kept, key, readonly_state());
}

response
list_names(const served& on, artifact_store& kept, const exchange& asked) {
  const auto shown = view_in(on, kept, asked);
  if (!shown)
    return failure(shown.error());
  const auto names = shown->list();
  return names ? json_response(*names) : failure(names.error());
}

// A removed file begins with version 0 again, so a rewind no longer sets
// versions of it aside. `newest` is the newest version now; none is -1.
result<void> forget_place(const served& on,
                          const session_key& key,
                          const std::string& name,
                          std::int64_t newest) {
  const auto held = on.on.sessions().get(key, {.num_recent_events = 0}).get();
  if (!held && held.error().code() != errc::not_found)
    return held.error();
  const auto place = held ? artifact_place_of(held->state(), name)
                          : std::optional<artifact_place>();
  if (!place || newest > place->set_aside)
    return {};
  const auto erased
    = on.on.sessions().state(key).erase(artifact_place_key(name)).get();
  if (!erased)
    return erased.error();
  return {};
}

response save(const served& on, artifact_store& kept, const exchange& asked) {
  body given(asked.asked.body);
  const auto name = given.required_text("filename");
  const auto* form = given.required_object("artifact");
  if (auto refused = given.refusal())
    return std::move(*refused);
  const auto held = part_from(*form);
  if (!held)
    return failure(held.error());
  const auto key = key_in(asked.path);
  const auto version = kept.save(key, name, *held);
  if (!version)
    return failure(version.error());
  if (const auto forgotten = forget_place(on, key, name, *version); !forgotten)
    return failure(forgotten.error());
  auto shown = description_of(key, name, *version, *held);
  shown["createTime"] = to_seconds(on.on.environment()->now());
  return json_response(shown);
}

response load(const served& on, artifact_store& kept, const exchange& asked) {
  const auto version = version_in(asked);
  if (!version.is_valid)
    return bad_version();
  const auto shown = view_in(on, kept, asked);
  if (!shown)
    return failure(shown.error());
  const auto held = shown->load(asked.path["name"], version.number);
  if (!held)
    return failure(held.error());
  return *held ? json_response(form_of(**held)) : no_artifact();
}

response
list_versions(const served&, artifact_store& kept, const exchange& asked) {
  const auto versions = kept.versions(key_in(asked.path), asked.path["name"]);
  return versions ? json_response(*versions) : failure(versions.error());
}

// The description of one version. Nothing if it does not exist.
result<std::optional<json>> describe(artifact_store& kept,
                                     const session_key& key,
                                     const std::string& name,
                                     std::int64_t version) {
  const auto held = kept.load(key, name, version);
  if (!held)
    return held.error();
  if (!*held)
    return std::optional<json>();
  return std::optional(description_of(key, name, version, **held));
}

response
describe_all(const served&, artifact_store& kept, const exchange& asked) {
  const auto key = key_in(asked.path);
  const auto versions = kept.versions(key, asked.path["name"]);
  if (!versions)
    return failure(versions.error());
  auto all = json::array();
  for (const auto version : *versions) {
    auto shown = describe(kept, key, asked.path["name"], version);
    if (!shown)
      return failure(shown.error());
    if (*shown)
      all.push_back(std::move(**shown));
  }
  return json_response(all);
}

response
describe_one(const served& on, artifact_store& kept, const exchange& asked) {
  auto wanted = version_in(asked);
  if (!wanted.is_valid)
    return bad_version();
  const auto& name = asked.path["name"];
  if (!wanted.number) {
    const auto view = view_in(on, kept, asked);
    if (!view)
      return failure(view.error());
    const auto newest = view->current(name);
    if (!newest)
      return failure(newest.error());
    if (!*newest)
      return no_artifact();
    wanted.number = *newest;
  }
  const auto shown = describe(kept, key_in(asked.path), name, *wanted.number);
  if (!shown)
    return failure(shown.error());
  return *shown ? json_response(**shown) : no_artifact();
}

response remove(const served& on, artifact_store& kept, const exchange& asked) {
  const auto key = key_in(asked.path);
  const auto& name = asked.path["name"];
  const auto removed = kept.remove(key, name);
  if (!removed)
    return failure(removed.error());
  const auto forgotten = forget_place(on, key, name, -1);
  return forgotten ? json_text_response("null") : failure(forgotten.error());
}

} // namespace

void add_artifacts(router& routes, const served_ptr& on) {
  const std::string all
    = "/apps/{app}/users/{user}/sessions/{session}/artifacts";
  const auto one = all + "/{name}";
  routes.add("GET", all, blocking(on, list_names));
  routes.add("POST", all, blocking(on, save));
  routes.add("GET", one, blocking(on, load));
  routes.add("DELETE", one, blocking(on, remove));
  routes.add("GET", one + "/versions", blocking(on, list_versions));
  // Before the route of a version, whose pattern fits as well.
  routes.add("GET", one + "/versions/metadata", blocking(on, describe_all));
  routes.add("GET", one + "/versions/{version}", blocking(on, load));
  routes.add(
    "GET", one + "/versions/{version}/metadata", blocking(on, describe_one));
}

} // namespace troupe::serving
