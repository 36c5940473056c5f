// A report as a page for browsers: one file that needs nothing else.

#pragma once

#include "troupe/core/json.hpp"

#include <string>
#include <string_view>

namespace troupe::load {

/// A report as one line of JSON; what is not UTF-8 in it is replaced.
std::string to_line(const json& report);

/// The page of a report, which is what `--json` writes, with its `kind`:
/// `load`, `sweep`, `trace` or `experiment` (docs/load_testing.md,
/// docs/experiments.md). `summary` is what a browser shows that runs no
/// scripts.
std::string
to_page(std::string_view title, std::string_view summary, const json& report);

} // namespace troupe::load
