#include "troupe/models/vertex/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

namespace troupe {

namespace {

constexpr std::string_view global = "global";

error bad_place(std::string why) {
  return {errc::invalid_argument, std::move(why)};
}

bool has_only(std::string_view text, std::string_view signs) {
  return !text.empty() && std::ranges::all_of(text, [signs](char next) {
    return (next >= 'a' && next <= 'z') || (next >= '0' && next <= '9')
           || signs.find(next) != std::string_view::npos;
  });
}

// Some projects belong to a domain: "example.com:project".
result<void> check_names(std::string_view project, std::string_view location) {
  if (!has_only(project, "-.:"))
    return bad_place(
      fmt::format("no project of Google is named '{}'", project));
  if (!has_only(location, "-"))
    return bad_place(
      fmt::format("no location of Vertex AI is named '{}'", location));
  return {};
}

std::string base_url_of(std::string_view location,
                        const variable_reader& variable) {
  if (auto own = variable("GOOGLE_VERTEX_BASE_URL"))
    return std::move(*own);
  if (location == global)
    return "https://aiplatform.googleapis.com";
  if (location == "us" || location == "eu")
    return fmt::format("https://aiplatform.{}.rep.googleapis.com", location);
  return fmt::format("https://{}-aiplatform.googleapis.com", location);
}

std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  for (;;) {
    const auto end = path.find('/');
    segments.push_back(path.substr(0, end));
    if (end == std::string_view::npos)
      return segments;
    path.remove_prefix(end + 1);
  }
}

// The name becomes a part of the path of a URL.
result<void> check_model(std::string_view model) {
  const bool is_plain = std::ranges::all_of(model, [](unsigned char next) {
    return next < 0x80
           && (std::isalnum(next) != 0
               || std::string_view("-_./@").find(static_cast<char>(next))
                    != std::string_view::npos);
  });
  if (!is_plain || model.find("..") != std::string_view::npos)
    return bad_place(fmt::format("no model is named '{}'", model));
  return {};
}

result<vertex_target> find_full_name(const std::string& model,
                                     const variable_reader& variable) {
  const auto parts = segments_of(model);
  const bool is_model = parts.size() == 8 && parts[4] == "publishers"
                        && !parts[5].empty() && parts[6] == "models"
                        && !parts[7].empty();
  const bool is_endpoint
    = parts.size() == 6 && parts[4] == "endpoints" && !parts[5].empty();
  if ((!is_model && !is_endpoint) || parts[2] != "locations")
    return bad_place(
      "expected projects/PROJECT/locations/LOCATION/publishers/google/models/"
      "NAME, or projects/PROJECT/locations/LOCATION/endpoints/ID");
  if (auto fit = check_names(parts[1], parts[3]); !fit)
    return fit.error();
  if (auto fit = check_model(parts.back()); !fit)
    return fit.error();
  return vertex_target{base_url_of(parts[3], variable), model};
}

} // namespace

bool is_vertex_wanted(const variable_reader& variable) {
  constexpr std::array<std::string_view, 2> names
    = {"GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI"};
  for (const auto name : names) {
    auto held = variable(name);
    if (!held)
      continue;
    std::ranges::transform(*held, held->begin(), [](unsigned char next) {
      return static_cast<char>(std::tolower(next));
    });
    return *held == "true" || *held == "1";
  }
  return false;
}

bool is_full_name(std::string_view model) {
  return model.starts_with("projects/");
}

result<vertex_target> find_target(const vertex_place& place,
                                  std::string_view publisher,
                                  const std::string& model,
                                  const variable_reader& variable) {
  if (is_full_name(model))
    return find_full_name(model, variable);
  const auto project = place.project.empty() ? variable("GOOGLE_CLOUD_PROJECT")
                                             : std::optional(place.project);
  if (!project)
    return bad_place("Vertex AI needs a project: set GOOGLE_CLOUD_PROJECT, or "
                     "'project' of 'vertex'");
  const auto location
    = place.location.empty()
        ? variable("GOOGLE_CLOUD_LOCATION").value_or(std::string(global))
        : place.location;
  if (auto fit = check_names(*project, location); !fit)
    return fit.error();
  if (auto fit = check_model(model); !fit)
    return fit.error();
  return vertex_target{
    base_url_of(location, variable),
    fmt::format("projects/{}/locations/{}/{}{}",
                *project,
                location,
                model.starts_with("publishers/")
                  ? std::string()
                  : fmt::format("publishers/{}/models/", publisher),
                model)};
}

vertex_target express_target(const std::string& model,
                             const variable_reader& variable) {
  return {base_url_of(global, variable),
          model.starts_with("publishers/")
            ? model
            : "publishers/google/models/" + model};
}

} // namespace troupe
