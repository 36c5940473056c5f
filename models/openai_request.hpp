// What is asked of chat completions. Internal; not installed.

#pragma once

#include "troupe/models/model.hpp"
#include "troupe/models/wire_format.hpp"

#include <array>
#include <string_view>

namespace troupe {

// Marks of parts: in which field a thought came, and what else a call came
// with.
inline constexpr std::string_view openai_marks = "openai";
inline constexpr std::string_view openai_field_mark = "field";
inline constexpr std::string_view openai_extra_mark = "extra_content";

/// The fields of a message that may hold thoughts.
inline constexpr std::array<std::string_view, 2> openai_thought_fields
  = {"reasoning_content", "reasoning"};

/// Whether the server is OpenAI's own: others know fields that it does not, and
/// the other way round.
bool is_openai(std::string_view base_url);

/// The body of the request. Fails with `errc::invalid_argument`; throws what
/// nlohmann throws on text that is not UTF-8.
result<json> openai_body(const model_request& asked, const wire_options& with);

} // namespace troupe
