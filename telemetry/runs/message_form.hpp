// Messages in the form that OpenTelemetry gives to the contents of models.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/models/model.hpp"

#include <string>

namespace troupe::telemetry {

/// Returns JSON text; bytes that are not UTF-8 are replaced.
std::string text_of(const json& data);

/// Returns `[{"role": "user"|"assistant"|"tool", "parts": [{"type": "text",
/// "content": string} | …]}]`. Bytes of media are left out.
std::string input_messages(const model_request& asked);

/// Returns `[{"role": "assistant", "parts": […], "finish_reason": string}]`.
std::string output_messages(const model_response& answer,
                            const std::string& finish_reason);

/// Returns `[{"type": "text", "content": string}]`.
std::string system_instructions(const model_request& asked);

/// Returns `[{"type": "function", "name": string, "description": string}]`.
std::string tool_definitions(const model_request& asked);

} // namespace troupe::telemetry
