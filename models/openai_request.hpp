// What is asked of chat completions. Internal; not installed.

#pragma once

#include "troupe/models/model.hpp"
#include "troupe/models/wire_format.hpp"

#include <string_view>

namespace troupe {

/// Whether the server is OpenAI's own: others know fields that it does not, and
/// the other way round.
bool is_openai(std::string_view base_url);

/// The body of the request. Fails with `errc::invalid_argument`; throws what
/// nlohmann throws on text that is not UTF-8.
result<json> openai_body(const model_request& asked, const wire_options& with);

} // namespace troupe
