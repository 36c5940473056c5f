// Where Vertex AI serves a model: base URL and resource name. Internal.
//
// The rules and variables are those of googleapis/python-genai, _api_client.py
// and _transformers.py, November 2026.

#pragma once

#include "troupe/models/open_model.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Returns an environment variable that is set and not empty.
using variable_reader
  = std::function<std::optional<std::string>(std::string_view name)>;

struct vertex_target {
  /// Without a slash at its end.
  std::string base_url;
  /// Path of the model without a slash at its beginning, such as
  /// `"projects/P/locations/L/publishers/google/models/M"`.
  std::string resource;
};

/// Returns true if the environment names Vertex AI as the place of Gemini
/// models: `GOOGLE_GENAI_USE_ENTERPRISE`, else `GOOGLE_GENAI_USE_VERTEXAI`, is
/// `true` or `1`.
bool is_vertex_wanted(const variable_reader& variable);

/// Returns true for a full name of a model, `"projects/…"`.
bool is_full_name(std::string_view model);

/// Finds a model by its name at `publisher`, or by its full name
/// (`"projects/P/locations/L/publishers/X/models/M"`, or
/// `"projects/P/locations/L/endpoints/E"`), whose project and location replace
/// those of `place`. Fails with `errc::invalid_argument`.
result<vertex_target> find_target(const vertex_place& place,
                                  std::string_view publisher,
                                  const std::string& model,
                                  const variable_reader& variable);

/// The target of requests that have an API key and no project (express mode).
vertex_target express_target(const std::string& model,
                             const variable_reader& variable);

} // namespace troupe
