// Builds requests to Anthropic's Messages interface. Internal.

#pragma once

#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/model.hpp"

namespace troupe {

/// Returns the body of the request. Fails with `errc::invalid_argument`. Throws
/// `json::exception` on text that is not UTF-8.
result<json> anthropic_body(const model_request& asked,
                            const wire_options& with);

} // namespace troupe
