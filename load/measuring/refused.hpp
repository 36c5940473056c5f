// The error for settings and files of a load test that cannot be used.

#pragma once

#include "troupe/core/error.hpp"

#include <string>
#include <utility>

namespace troupe::load {

/// An `errc::invalid_argument`; `why` names the setting or the file.
inline error refused(std::string why) {
  return {errc::invalid_argument, std::move(why)};
}

} // namespace troupe::load
