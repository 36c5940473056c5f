// What owners answer to CAF messages: the door for people who talk to them as
// actors.

#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/setup.hpp"

#include <caf/behavior.hpp>
#include <caf/error.hpp>

#include <memory>

namespace troupe::actors {

caf::behavior session_door(session_actor& self, std::shared_ptr<setup> shared);
caf::behavior app_door(app_actor& self,
                       std::shared_ptr<setup> shared,
                       const std::string& app);

/// For actors that take no CAF messages.
caf::behavior closed_door();

/// A failure as CAF carries it, and back. An error that is none of ours becomes
/// `errc::internal` with CAF's own text.
caf::error to_caf(const error& failure);
error to_error(const caf::error& failure);

} // namespace troupe::actors
