#include "troupe/runtime/actors.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/engine/caf_error.hpp"
#include "troupe/actors/engine/scheduler.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/owners/directory.hpp"

namespace troupe {

void use_fair_scheduler(caf::actor_system_config& config, std::size_t threads) {
  actors::install_scheduler(config, threads);
}

error to_error(const caf::error& failure) {
  return actors::from_caf(failure);
}

result<actors::app_handle> app_actor_of(runtime& owner,
                                        const std::string& app) {
  auto name = check_id(app, "app");
  if (!name)
    return name.error();
  const auto found = detail::backend_of(owner)->shared().apps->open(
    detail::backend_of(owner)->share(), *name);
  if (!found)
    return actors::closed();
  return caf::actor_cast<actors::app_handle>(found.as_caf());
}

result<actors::session_handle> session_actor_of(runtime& owner,
                                                const session_key& key) {
  auto checked = check_key(key);
  if (!checked)
    return checked.error();
  const auto found
    = detail::backend_of(owner)->shared().directory->find(*checked);
  if (!found)
    return actors::unknown_session(*checked);
  return caf::actor_cast<actors::session_handle>(found.as_caf());
}

} // namespace troupe
