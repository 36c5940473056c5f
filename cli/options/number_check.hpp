// A check for options whose value is a number.

#pragma once

#include <functional>
#include <string>

namespace troupe::cli {

/// Returns a check for one finite number of at least `least`. The check returns
/// an error text, or an empty text if the number is valid.
///
/// CLI11's own checks name the largest number of the type, in 309 digits.
std::function<std::string(const std::string&)> number_from(double least);

} // namespace troupe::cli
