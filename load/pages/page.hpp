// A report as a web page in one file, without external parts.

#pragma once

#include "troupe/core/json.hpp"

#include <string>
#include <string_view>

namespace troupe::load {

/// A report as one line of JSON, as `visible_json` writes it.
std::string to_line(const json& report);

/// Makes the page of a report, in the form that `--json` writes; its `kind` is
/// `load`, `sweep`, `trace` or `experiment` (docs/load_testing.md,
/// docs/experiments.md). `summary` is shown by browsers that run no scripts.
std::string
to_page(std::string_view title, std::string_view summary, const json& report);

} // namespace troupe::load
