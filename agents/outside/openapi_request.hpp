// The HTTP request of one call of an operation.

#pragma once

#include "troupe/agents/outside/openapi_operation.hpp"
#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"
#include "troupe/models/http/client.hpp"

namespace troupe {

/// Puts the arguments and the secrets in their places, encoded by the styles of
/// OpenAPI. `args` fits `arguments_schema`. An argument of null is left out of
/// query, headers and cookies.
///
/// Fails with `errc::invalid_argument` for a path argument that would change
/// the path: an empty one, and one with a segment `.` or `..`.
result<http_request> make_request(const openapi_operation& operation,
                                  const json& args);

} // namespace troupe
