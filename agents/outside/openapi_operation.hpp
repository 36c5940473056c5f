// The operations of an OpenAPI document: their names, parameters, addresses and
// secrets.

#pragma once

#include "troupe/agents/openapi_tools.hpp"
#include "troupe/agents/outside/openapi_document.hpp"
#include "troupe/models/http/client.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// The place of an argument in a request.
enum class openapi_place : std::uint8_t {
  path,
  query,
  header,
  cookie,
  property, ///< Of an object that is the body.
  body,     ///< The whole body.
};

struct openapi_parameter {
  std::string name;    ///< For the model.
  std::string written; ///< In the document.
  openapi_place place = openapi_place::query;
  json schema;
  bool is_required = false;
  std::string style; ///< Of OpenAPI: `form`, `simple`, …
  bool explodes = false;
  bool is_json = false; ///< Sent as JSON, in any place.
};

/// A secret in its place in the request: path and body have none.
struct openapi_secret {
  openapi_place place;
  std::string name;
  std::string text;
};

struct openapi_operation {
  std::string name; ///< Of the tool, with the prefix.
  std::string description;
  http_method method = http_method::get;
  std::string method_name; ///< `GET`.
  std::string server;      ///< Address without a `/` at its end.
  std::string path;        ///< With places `{NAME}`; begins with `/`.
  std::string media;       ///< Media type of the body; empty: no body.
  std::vector<openapi_parameter> parameters;
  std::vector<openapi_secret> secrets;
};

/// Reads the operations that `source` chooses. Throws as `openapi_tools`.
std::vector<openapi_operation> read_operations(const openapi_source& source);

/// The JSON Schema of an operation's arguments.
json arguments_schema(const openapi_operation& operation);

/// Converts `listPets` and `list pets` to `list_pets`, as ADK does.
std::string to_snake_case(std::string_view text);

} // namespace troupe
