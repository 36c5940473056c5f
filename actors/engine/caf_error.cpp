#include "troupe/actors/engine/caf_error.hpp"

#include <caf/atom.hpp>
#include <caf/make_message.hpp>

#include <cstdint>
#include <string>

namespace troupe::actors {

namespace {

constexpr auto category = caf::atom("troupe");

} // namespace

caf::error to_caf(const error& failure) {
  // Code zero means "no error" in CAF.
  return {static_cast<std::uint8_t>(static_cast<unsigned>(failure.code()) + 1),
          category,
          caf::make_message(failure.message())};
}

error from_caf(const caf::error& failure) {
  if (failure.category() == category && failure.code() > 0
      && failure.code() <= static_cast<unsigned>(errc::internal) + 1
      && failure.context().match_elements<std::string>())
    return {static_cast<errc>(failure.code() - 1),
            failure.context().get_as<std::string>(0)};
  return {errc::internal,
          "an actor failed with code " + std::to_string(failure.code())};
}

} // namespace troupe::actors
