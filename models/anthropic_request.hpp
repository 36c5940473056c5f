// What is asked of messages. Internal; not installed.

#pragma once

#include "troupe/models/model.hpp"
#include "troupe/models/wire_format.hpp"

namespace troupe {

/// The body of the request. Fails with `errc::invalid_argument`; throws what
/// nlohmann throws on text that is not UTF-8.
result<json> anthropic_body(const model_request& asked,
                            const wire_options& with);

} // namespace troupe
