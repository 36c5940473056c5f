// CAF interface of owners: answers requests that users send as CAF messages.

#pragma once

#include "troupe/actors/engine/caf_error.hpp"
#include "troupe/actors/handles.hpp"
#include "troupe/actors/setup.hpp"

#include <caf/behavior.hpp>

#include <memory>

namespace troupe::actors {

class app_actor;
class session_actor;

caf::behavior session_interface(session_actor& self,
                                std::shared_ptr<setup> shared);
caf::behavior app_interface(app_actor& self,
                            std::shared_ptr<setup> shared,
                            const std::string& app);

/// For actors that accept no CAF messages.
caf::behavior closed_interface();

} // namespace troupe::actors
