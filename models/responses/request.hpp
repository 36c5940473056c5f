// Builds requests to OpenAI's Responses API. Internal.

#pragma once

#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/model.hpp"

namespace troupe {

/// Returns the body of the request. Fails with `errc::invalid_argument`. Throws
/// `json::exception` on text that is not UTF-8.
result<json> responses_body(const model_request& asked,
                            const wire_options& with);

} // namespace troupe
