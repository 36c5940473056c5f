#include "troupe/core/session.hpp"

namespace troupe {

json to_json(const session& fetched) {
  auto events = json::array();
  for (const auto& said : fetched.events())
    events.push_back(to_json(*said));
  return {{"id", fetched.key().id},
          {"appName", fetched.key().app},
          {"userId", fetched.key().user},
          {"state", fetched.state().all()},
          {"events", std::move(events)},
          {"lastUpdateTime", to_seconds(fetched.last_update_time())},
          {"revision", fetched.revision()}};
}

} // namespace troupe
