#include "troupe/cli/options/number_check.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cmath>

namespace troupe::cli {

std::function<std::string(const std::string&)> number_from(double least) {
  return [least](const std::string& text) {
    double number = 0;
    const bool fits = CLI::detail::lexical_cast(text, number)
                      && std::isfinite(number) && number >= least;
    return fits
             ? std::string()
             : fmt::format("'{}' is not a number of {} or more", text, least);
  };
}

} // namespace troupe::cli
