#include "troupe/actors/running/user_failure.hpp"

#include <fmt/format.h>

#include <exception>

namespace troupe::actors {

error current_failure(errc code, const std::string& who) {
  try {
    throw;
  } catch (const error& failure) {
    return code == errc::tool_failed ? error(
             failure.code(), fmt::format("{}: {}", who, failure.message()))
                                     : failure;
  } catch (const std::exception& failure) {
    return {code, fmt::format("{}: {}", who, failure.what())};
  } catch (...) {
    return {
      code,
      fmt::format("{} threw an exception that is not a std::exception", who)};
  }
}

} // namespace troupe::actors
