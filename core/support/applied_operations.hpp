// Records of typed operations on `user:` and `app:` keys: made from the owners'
// outcomes, and read from their wire form.

#pragma once

#include "troupe/core/event.hpp"

#include <span>
#include <vector>

namespace troupe {

/// Returns the records of an event with the operations `changes`, whose
/// outcomes are `resolved`. A key that the event also sets or erases has none.
/// Several exact operations on one key (all but `add`, `append` and
/// `add_to_set`) are recorded as one.
std::vector<applied_operation> applied_by(const delta& changes,
                                          std::span<const resolution> resolved);

/// Returns `[{"op": string, "key": string, "value": any, "former": any}]`.
/// Fields that are null are left out.
json to_json(const std::vector<applied_operation>& applied);

/// Reads the list. Fails with `errc::invalid_argument`.
result<std::vector<applied_operation>> applied_from_json(const json& list);

} // namespace troupe
