// Converts a JSON Schema of answers to the forms that vendors can enforce.
// Internal.

#pragma once

#include "troupe/core/json.hpp"

namespace troupe {

/// Closes all objects of the schema that do not say whether they are open.
/// Everything that fits the closed schema fits `schema` too. The constrained
/// decoding of OpenAI and of Anthropic needs closed objects.
json closed_schema(const json& schema);

/// Returns true if a closed schema obeys the rules of OpenAI's `strict`: an
/// object at its root, all objects closed, all properties required, only
/// keywords of the guide "Structured Outputs", and its limits.
bool is_strict_schema(const json& closed);

/// Converts a closed schema for Anthropic. Keywords that Anthropic cannot
/// enforce move into descriptions, and `oneOf` becomes `anyOf`
/// (anthropic-sdk-python, lib/_parse/_transform.py).
json anthropic_schema(const json& closed);

} // namespace troupe
