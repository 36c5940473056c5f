// The common part of checking tools that a vendor runs. Internal.

#pragma once

#include "troupe/models/model.hpp"

#include <initializer_list>
#include <string_view>
#include <vector>

namespace troupe {

/// Checks that each tool has one of these names, and an object or null as
/// settings. Fails with `errc::invalid_argument`, naming the tool and all
/// names, but not the model.
result<void> check_tools(const std::vector<vendor_tool>& wanted,
                         std::initializer_list<std::string_view> known);

} // namespace troupe
