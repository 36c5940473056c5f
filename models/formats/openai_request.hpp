// Builds requests to chat completions, and the parts that requests to OpenAI's
// Responses API share with them. Internal.

#pragma once

#include "troupe/models/formats/request_parts.hpp"
#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/model.hpp"
#include "troupe/models/wire/server_items.hpp"

#include <array>
#include <functional>
#include <optional>
#include <span>
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

/// Returns OpenAI's form of a choice of tools; `function` is the form of one
/// that must be called.
json openai_tool_choice(const tool_choice& choice, json function);

/// Returns `asked` without the part of the request that the answer refuses: a
/// schema that OpenAI cannot enforce, or thoughts. Returns nothing if the
/// answer refuses neither, or the part was left out already.
std::optional<wire_options> without_refused_by_openai(
  int status,
  std::string_view body,
  const wire_options& asked,
  bool (*refuses_thoughts)(int status, std::string_view body));

/// Writes the parts of a user's message, for chat completions or the Responses
/// API.
struct openai_user_form {
  /// The type of an element with text.
  const char* text_type;
  /// Makes the element of media.
  result<json> (*element_of)(const media& which);

  json text(std::string words) const;

  /// Adds an element for each part. Fails with `errc::invalid_argument` on a
  /// part that is neither text nor media.
  result<void> add(std::span<const part> parts, json& elements) const;

  /// Returns the message of a content that is not by the model, or null if it
  /// has no element. Thoughts are left out. `respond` writes a response; it may
  /// add elements to the message. Plain text stays a string, which every server
  /// accepts. Fails as `add`, and with the error of `respond`.
  result<json>
  message_of(const content& said,
             const std::function<result<void>(const function_response&, json&)>&
               respond) const;
};

/// Returns the body of the request. Fails with `errc::invalid_argument`. Throws
/// `json::exception` on text that is not UTF-8.
result<json> openai_body(const model_request& asked, const wire_options& with);

} // namespace troupe
