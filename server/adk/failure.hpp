// Answers to requests that fail, with the bodies of ADK.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/json.hpp"
#include "troupe/server/http/response.hpp"

#include <string>
#include <string_view>

namespace troupe::serving {

/// Returns `{"detail": text}`.
response detail(int status, std::string_view text);

/// Returns the answer to a failed call: the status by the error's code, which
/// the header `troupe-error` names. Passwords are removed from the message.
response failure(const error& why);

/// Returns the message of an error without passwords.
std::string shown_message(const error& why);

/// Returns the status that `failure` answers with.
int status_of(errc code) noexcept;

/// Returns the last line of a stream that fails: `{"error": "CODE: text",
/// "error_details": {"error_type", "error_message", "timestamp"}}`.
json error_line(const error& why, timestamp now);

/// Returns one problem of a body or a query, as FastAPI writes it: `{"type",
/// "loc", "msg", "input"}`. `place` is the path to the field.
json problem(std::string_view type,
             json place,
             std::string_view text,
             json input);

/// Returns status 422, `{"detail": [problem, …]}`.
response invalid(json problems);

} // namespace troupe::serving
