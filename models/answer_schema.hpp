// A JSON Schema of answers in the forms that vendors can hold a model to.
// Internal; not installed.

#pragma once

#include "troupe/core/json.hpp"

namespace troupe {

/// Closes all objects of the schema that do not say whether they are open: what
/// fits the closed schema fits `schema` as well. Both OpenAI's and Anthropic's
/// constrained decoding demand it.
json closed_schema(const json& schema);

/// Whether a closed schema keeps within what OpenAI's `strict` demands: an
/// object at its root, all objects closed, all properties required, no keyword
/// beyond those of the guide "Structured Outputs", and its limits.
bool is_strict_schema(const json& closed);

/// A closed schema for Anthropic: keywords that it cannot hold a model to stand
/// in descriptions instead, `oneOf` becomes `anyOf`
/// (anthropic-sdk-python, lib/_parse/_transform.py).
json anthropic_schema(const json& closed);

} // namespace troupe
