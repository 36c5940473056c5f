#include "troupe/stores/shared/session_order.hpp"

namespace troupe {

namespace {

template <class Map, class Key, class Place>
void erase(Map& from, const Key& key, const Place& place) {
  const auto found = from.find(key);
  if (found == from.end())
    return;
  found->second.erase(place);
  if (found->second.empty())
    from.erase(found);
}

template <class Map, class Key>
auto* find(const Map& in, const Key& key) {
  const auto found = in.find(key);
  return found == in.end() ? nullptr : &found->second;
}

} // namespace

session_order::place session_order::place_of(timestamp updated,
                                             const std::string& user,
                                             const std::string& session) {
  // The complement reverses the order; a minus would overflow.
  return {~updated.time_since_epoch().count(), user, session};
}

void session_order::add(const owner_name& session, timestamp updated) {
  const auto added = place_of(updated, session.user, session.session);
  apps_[session.app].insert(added);
  users_[{session.app, session.user}].insert(added);
}

void session_order::remove(const owner_name& session, timestamp updated) {
  const auto removed = place_of(updated, session.user, session.session);
  erase(apps_, session.app, removed);
  erase(users_, std::pair(session.app, session.user), removed);
}

std::vector<owner_name> session_order::page(const row_query& query) const {
  std::vector<owner_name> found;
  const auto* const shown = query.user
                              ? find(users_, std::pair(query.app, *query.user))
                              : find(apps_, query.app);
  if (shown == nullptr)
    return found;
  auto next = shown->begin();
  if (const auto& behind = query.behind)
    next = shown->upper_bound(
      place_of(behind->last_update_time, behind->user, behind->session));
  for (; next != shown->end() && found.size() < query.limit; ++next)
    found.push_back({query.app, std::get<1>(*next), std::get<2>(*next)});
  return found;
}

} // namespace troupe
