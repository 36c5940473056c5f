#include "troupe/runtime/actors.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/failure.hpp"

namespace troupe {

result<actors::app_handle> app_actor_of(runtime& owner,
                                        const std::string& app) {
  auto name = check_id(app, "app");
  if (!name)
    return name.error();
  const auto found
    = owner.backend()->shared().apps.open(owner.backend()->share(), *name);
  if (!found)
    return actors::closed();
  return caf::actor_cast<actors::app_handle>(found);
}

result<actors::session_handle> session_actor_of(runtime& owner,
                                                const session_key& key) {
  auto checked = check_key(key);
  if (!checked)
    return checked.error();
  const auto found = owner.backend()->shared().directory.find(*checked);
  if (!found)
    return actors::unknown_session(*checked);
  return caf::actor_cast<actors::session_handle>(found);
}

} // namespace troupe
