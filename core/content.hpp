// Content of messages: a role and parts, in the form that models and events
// share.
//
// A part with bytes, such as an image, a document or the output of a tool,
// keeps them in wire form: `{"inlineData": {"mimeType": string, "data": base64,
// "displayName"?: string}}`. Events carry it like all other parts.

#pragma once

#include "troupe/core/value.hpp"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// A model's request to run a tool; `args` is an object.
struct function_call {
  function_call() = default;

  /// Makes a call from its id, the name of the tool, and the arguments.
  function_call(std::string call_id, std::string tool, value arguments = {})
    : id(std::move(call_id)),
      name(std::move(tool)),
      args(std::move(arguments)) {}

  /// Id that the response repeats. An empty id is left out of the wire form.
  std::string id;
  /// Name of the tool.
  std::string name;
  /// Arguments by parameter name. A call without any on the wire gets `{}`.
  value args;
  /// Further wire fields (`partialArgs`, `willContinue`, …) as an object, or
  /// null.
  value extra;

  friend bool operator==(const function_call&, const function_call&) = default;
};

/// The result of a call. `response` is an object; it is `{"result": any}` or
/// `{"error": string}` if the tool returned no object.
struct function_response {
  function_response() = default;

  /// Makes a response from the id of its call, the name of the tool, and the
  /// result.
  function_response(std::string call_id, std::string tool, value result = {})
    : id(std::move(call_id)),
      name(std::move(tool)),
      response(std::move(result)) {}

  /// Id of the answered call. An empty id is left out of the wire form.
  std::string id;
  /// Name of the tool that was called.
  std::string name;
  /// The tool's result as an object.
  value response;
  /// Further wire fields (`parts`, `willContinue`, `scheduling`, …) as an
  /// object, or null.
  value extra;

  friend bool operator==(const function_response&, const function_response&)
    = default;
};

/// One piece of a message: text, a call, a response, or another thing. A new
/// part is empty text.
struct part {
  part() = default;

  /// Makes a text part.
  part(std::string text) : body(std::move(text)) {}

  /// Makes a text part from a NUL-terminated string, which must not be null.
  part(const char* text) : body(std::string(text)) {}

  /// Makes a part that asks for a tool.
  part(function_call call) : body(std::move(call)) {}

  /// Makes a part that answers a call.
  part(function_response response) : body(std::move(response)) {}

  /// Text, a call, a response, or any other part (inline data, code, …) as an
  /// object in wire form.
  std::variant<std::string, function_call, function_response, value> body;
  /// True for the model's thoughts, which are not part of its answer.
  bool thought = false;
  /// Further wire fields (`thoughtSignature`, …) as an object, or null.
  value extra;

  /// Returns the text; null for a part of another kind. Thoughts are text, too.
  const std::string* text() const { return std::get_if<std::string>(&body); }

  /// Returns the call; null for a part of another kind.
  const function_call* call() const {
    return std::get_if<function_call>(&body);
  }

  /// Returns the response; null for a part of another kind.
  const function_response* response() const {
    return std::get_if<function_response>(&body);
  }

  friend bool operator==(const part&, const part&) = default;
};

/// Bytes with their type.
struct blob {
  /// The raw bytes, not base64; may contain NUL.
  std::string bytes;
  /// For example `"image/png"`; empty if unknown.
  std::string mime_type;
  /// The name to show to a user; may be empty.
  std::string display_name;

  friend bool operator==(const blob&, const blob&) = default;
};

/// Makes a part of these bytes.
part inline_data(std::string_view bytes,
                 std::string mime_type,
                 std::string display_name = {});

/// Returns the bytes of a part; nothing for a part of another kind. Reads
/// camelCase and snake_case, and base64 in the standard and the URL alphabet. A
/// missing `data` gives no bytes. Fails with `errc::invalid_argument` on data
/// that is not base64.
result<std::optional<blob>> blob_of(const part& said);

/// Returns the media that came with a response, in order: the list `parts` of
/// its further fields. Each is a part in wire form, such as inline data. Empty
/// if there are none; an element that is no object is left out.
std::vector<part> attached_parts(const function_response& answer);

/// A message: its role and its parts.
struct content {
  content() = default;

  /// Makes a message with the role `by` and the parts `said`.
  content(std::string by, std::vector<part> said)
    : role(std::move(by)),
      parts(std::move(said)) {}

  /// `"user"` or `"model"`; may be empty in input.
  std::string role;
  /// Parts in order; may be empty.
  std::vector<part> parts;

  /// Returns true if there is neither a part nor a role.
  bool empty() const noexcept { return parts.empty() && role.empty(); }

  /// Joins the text parts, except thoughts, without a separator.
  std::string text() const;

  friend bool operator==(const content&, const content&) = default;
};

/// Makes model content of one text part, formatted by `fmt::format`.
template <class... Args>
content text(fmt::format_string<Args...> format, Args&&... args) {
  content said("model", {});
  // Not a list in braces, which would copy the text.
  said.parts.emplace_back(fmt::format(format, std::forward<Args>(args)...));
  return said;
}

/// Makes user content of one text part.
content user_text(std::string text);

/// Returns the wire form: `{"role": string, "parts": [{"text": string} |
/// {"functionCall": {…}} | …]}`.
json to_json(const content& said);

/// Parses the wire form, camelCase or snake_case. Fails with
/// `errc::invalid_argument`.
result<content> content_from_json(json data);

} // namespace troupe
