// Builds requests to chat completions. Internal.

#pragma once

#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/model.hpp"

#include <array>
#include <string_view>

namespace troupe {

// Marks of parts: the field in which a thought came, and the `extra_content` of
// a call.
inline constexpr std::string_view openai_marks = "openai";
inline constexpr std::string_view openai_field_mark = "field";
inline constexpr std::string_view openai_extra_mark = "extra_content";

/// Fields of a message that may hold thoughts.
inline constexpr std::array<std::string_view, 2> openai_thought_fields
  = {"reasoning_content", "reasoning"};

/// Returns true if the server is OpenAI's own. Other servers know fields that
/// OpenAI refuses, and the reverse.
bool is_openai(std::string_view base_url);

/// Returns the body of the request. Fails with `errc::invalid_argument`. Throws
/// `json::exception` on text that is not UTF-8.
result<json> openai_body(const model_request& asked, const wire_options& with);

} // namespace troupe
