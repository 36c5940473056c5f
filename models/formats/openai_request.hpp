// Builds requests to chat completions, and the parts that requests to OpenAI's
// Responses API share with them. Internal.

#pragma once

#include "troupe/models/formats/request_parts.hpp"
#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/model.hpp"
#include "troupe/models/wire/server_items.hpp"

#include <array>
#include <string>
#include <string_view>

namespace troupe {

inline constexpr std::string_view openai_vendor = "OpenAI";

// Marks of parts: the field in which a thought came, and the `extra_content` of
// a call.
inline constexpr std::string_view openai_field_mark = "field";
inline constexpr std::string_view openai_extra_mark = "extra_content";

/// Fields of a message that may hold thoughts.
inline constexpr std::array<std::string_view, 2> openai_thought_fields
  = {"reasoning_content", "reasoning"};

/// Returns true if the server is OpenAI's own. Other servers know fields that
/// OpenAI refuses, and the reverse.
bool is_openai(std::string_view base_url);

/// Checks the names of tools. Fails with `errc::invalid_argument`.
result<void> check_openai_tool_names(const model_request& asked);

/// Returns the address of media: its own, or a `data:` URL.
std::string openai_url_of(const media& which);

/// Returns a name for a PDF without one.
std::string openai_file_name(const media& which);

/// Returns the `thinkingLevel` of ADK's `thinkingConfig` as OpenAI's effort;
/// null if it is not set. Fails with `errc::invalid_argument` on a field
/// besides it and `includeThoughts`.
result<json> openai_effort(const json& config);

/// Takes `responseMimeType`, and returns the form of the answer: `{"type":
/// "json_schema", "name", "strict", "schema"}`, `{"type": "json_object"}` or
/// null for text. Fails with `errc::invalid_argument`.
result<json> openai_answer_form(generation_settings& settings,
                                const model_request& asked,
                                const wire_options& with);

/// Returns true if the answer refuses a schema that OpenAI cannot enforce.
bool openai_refuses_schema(int status, std::string_view body);

/// Returns the body of the request. Fails with `errc::invalid_argument`. Throws
/// `json::exception` on text that is not UTF-8.
result<json> openai_body(const model_request& asked, const wire_options& with);

} // namespace troupe
