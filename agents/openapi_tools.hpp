// The operations of an HTTP API as tools, from its OpenAPI document.
//
//   auto pets = troupe::openapi_tools(
//     {.document = troupe::read_openapi(text).value(),
//      .credentials = {{"api_key", key}}});
//   auto keeper = troupe::llm({.name = "keeper", …, .tools = pets});

#pragma once

#include "troupe/agents/tool.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The document of an API, and the settings of its tools.
struct openapi_source {
  /// OpenAPI document of version 3.0 or 3.1, as JSON (`read_openapi`).
  json document = {};
  /// Names of the tools to offer, without the prefix; empty: all.
  std::vector<std::string> tool_filter = {};
  /// Put before the name of each tool, with a `_` between them; empty: none.
  std::string tool_name_prefix = {};
  /// Secrets by the names of the document's `securitySchemes`: the key of
  /// `apiKey`, the token of `http` with `bearer`, `oauth2` and `openIdConnect`,
  /// and `USER:PASSWORD` of `http` with `basic`.
  std::map<std::string, std::string> credentials = {};
  /// Headers of each request.
  std::map<std::string, std::string> headers = {};
  /// Values of the variables in the addresses of servers, in place of their
  /// defaults.
  std::map<std::string, std::string> server_variables = {};
  /// True keeps the names of parameters; by default they become snake_case.
  bool preserve_property_names = false;
  /// Time limit of one call. Unset: `run_options::tool_timeout`.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Limit of the bytes of an answer. A larger one fails the call. A result has
  /// to fit in an event with others.
  std::size_t answer_bytes_max = std::size_t{256} << 10U;
  /// Effect of a failed call on the agent.
  tool_failure on_failure = tool_failure::tell_model;
  /// Calls that the user has to allow, as in `tool_options`.
  confirmation_rule require_confirmation = {};
};

/// Reads an OpenAPI document: JSON if it begins with `{`, otherwise YAML. Fails
/// with `errc::invalid_argument`; the message names the line.
result<json> read_openapi(const std::string& text);

/// Makes one tool for each operation with GET, PUT, POST, DELETE or PATCH, as
/// ADK does. Its name is the operation's id in snake_case, at most 60
/// characters, or made of path and method without one. Its arguments are the
/// parameters of the operation and the properties of a body that is an object;
/// any other body is the argument `body`, or `array` for a list. Names become
/// snake_case; a name that comes again gets `_0`, `_1` and so on.
///
/// A call sends one request to the first server of the operation, and to no
/// other host: redirects are not followed. It holds no thread meanwhile. The
/// result is the answer: JSON, or other text, or `{"status": number}` without a
/// body. A call fails with `errc::tool_failed` for a status of 300 or above,
/// with the beginning of the answer, and for a broken connection; with
/// `errc::too_large` above `answer_bytes_max`; with `errc::invalid_argument`
/// for an argument that cannot be sent.
///
/// Throws `errc::invalid_argument` for another version, a reference to another
/// document, an operation that it cannot offer (choose others with
/// `tool_filter`), a name of `tool_filter`, `credentials` or `server_variables`
/// that the document does not have, a missing credential, two tools of one
/// name, a server without an absolute address, secrets over plain HTTP to
/// another machine, and without the option TROUPE_HTTP_MODELS.
std::vector<tool> openapi_tools(const openapi_source& source);

} // namespace troupe
