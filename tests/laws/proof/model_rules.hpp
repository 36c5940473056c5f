// The rules by which the session model evaluates operations. They share no code
// with the owners.

#pragma once

#include "troupe/core/delta.hpp"
#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <map>
#include <span>
#include <string>

namespace troupe::testing::model_rules {

/// The keys of one owner, without prefix.
using keys = std::map<std::string, json>;

/// Compares JSON. Numbers are compared by value.
bool is_same(const json& left, const json& right);

/// True if the result depends on the present value.
bool needs_what_is_there(const operation& done);

/// Returns the keys that a share of a delta touches, with their new values;
/// null means erased.
result<keys> judge(std::span<const operation> share,
                   const keys& state,
                   const size_limits& limits);

/// Makes judged keys visible.
void install(keys& state, const keys& touched);

json as_object(const keys& state);

} // namespace troupe::testing::model_rules
