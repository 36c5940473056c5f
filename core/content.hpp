// What was said: a role and parts, in the form that models and events share.

#pragma once

#include "troupe/core/value.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// A model's wish to have a tool run; `args` is an object.
struct function_call {
  std::string id;
  std::string name;
  value args;

  friend bool operator==(const function_call&, const function_call&) = default;
};

/// What came of a call; `response` is an object, `{"result": any}` or
/// `{"error": string}` when the tool gave no object.
struct function_response {
  std::string id;
  std::string name;
  value response;

  friend bool operator==(const function_response&, const function_response&)
    = default;
};

struct part {
  part() = default;

  part(std::string text) : body(std::move(text)) {}

  part(const char* text) : body(std::string(text)) {}

  part(function_call call) : body(std::move(call)) {}

  part(function_response response) : body(std::move(response)) {}

  /// Text, a call, a response, or any other part (inline data, code, …) as an
  /// object in wire form.
  std::variant<std::string, function_call, function_response, value> body;
  /// The model was thinking aloud; not part of its answer.
  bool thought = false;
  /// Further wire fields (`thoughtSignature`, …) as an object, or null.
  value extra;

  const std::string* text() const { return std::get_if<std::string>(&body); }

  const function_call* call() const {
    return std::get_if<function_call>(&body);
  }

  const function_response* response() const {
    return std::get_if<function_response>(&body);
  }

  friend bool operator==(const part&, const part&) = default;
};

struct content {
  content() = default;

  content(std::string by, std::vector<part> said)
    : role(std::move(by)),
      parts(std::move(said)) {}

  /// `"user"` or `"model"`; may be empty on the way in.
  std::string role;
  std::vector<part> parts;

  bool empty() const noexcept { return parts.empty() && role.empty(); }

  /// The text parts that are no thoughts, joined without a separator.
  std::string text() const;

  friend bool operator==(const content&, const content&) = default;
};

/// Model content of one text part, formatted as by `fmt::format`.
template <class... Args>
content text(fmt::format_string<Args...> format, Args&&... args) {
  return {"model", {fmt::format(format, std::forward<Args>(args)...)}};
}

/// User content of one text part.
content user_text(std::string text);

/// Wire form: `{"role": string, "parts": [{"text": string} | {"functionCall":
/// {…}} | …]}`.
json to_json(const content& said);

/// Reads the wire form, camelCase or snake_case. Fails with
/// `errc::invalid_argument`.
result<content> content_from_json(const json& data);

} // namespace troupe
