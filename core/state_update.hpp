// A function that computes the next value of a key from its present one.

#pragma once

#include "troupe/core/json.hpp"

#include <functional>
#include <optional>

namespace troupe {

/// Returns the next value of a key; null erases the key. `now` is the present
/// value, unset if the key is absent. Called again, with the newer value, if
/// another change came between. It should have no other effect.
using state_update = std::function<json(std::optional<json> now)>;

} // namespace troupe
