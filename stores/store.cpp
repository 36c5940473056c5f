#include "troupe/stores/store.hpp"

#include <boost/container_hash/hash.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>

namespace troupe {

std::string to_string(const owner_name& owner) {
  auto text = owner.app;
  for (const auto* part : {&owner.user, &owner.session})
    if (!part->empty())
      text.append("/").append(*part);
  return text;
}

result<std::optional<stored_session>>
store::load_session_at(const session_key&, std::uint64_t, std::size_t) {
  return error(errc::invalid_argument,
               "this store cannot read a session at an earlier revision: it "
               "does not override store::load_session_at");
}

result<std::optional<earlier_shared_state>>
store::load_shared_state_at(const session_key&, std::uint64_t) {
  return std::nullopt;
}

result<std::vector<event_ptr>>
store::find_events(const session_key& key, std::span<const std::string> ids) {
  // Small enough to fit in memory if each event has a megabyte.
  constexpr std::uint64_t events_at_once = 32;
  std::vector<event_ptr> found(ids.size());
  auto missing = ids.size();
  const auto present = load_session(key, {.events_max = 0, .ids_max = 0});
  if (!present)
    return present.error();
  if (!*present)
    return found;
  for (auto first = (*present)->first_revision + 1; missing > 0;
       first += events_at_once) {
    auto events = load_events(key, first, first + events_at_once - 1);
    if (!events)
      return events.error();
    for (const auto& each : *events)
      for (std::size_t index = 0; index < ids.size(); ++index)
        if (!found[index] && each->id == ids[index]) {
          found[index] = each;
          --missing;
        }
    if (events->size() < events_at_once)
      break;
  }
  return found;
}

// One page, because a page shows one moment: a session that is updated between
// two pages would be on neither.
result<std::vector<session_row>> store::list_by_name(const name_query& query) {
  auto rows = list({.app = query.app,
                    .user = query.user,
                    .limit = std::numeric_limits<std::size_t>::max()});
  if (!rows)
    return rows;
  const auto name_of
    = [](const session_row& row) { return std::tie(row.key.user, row.key.id); };
  if (query.behind)
    std::erase_if(*rows, [&](const session_row& row) {
      return name_of(row) <= std::tie(query.behind->user, query.behind->id);
    });
  std::ranges::sort(*rows, {}, name_of);
  if (rows->size() > query.limit)
    rows->erase(rows->begin() + static_cast<std::ptrdiff_t>(query.limit),
                rows->end());
  return rows;
}

result<std::vector<std::string>> store::list_users(const user_query& query) {
  const auto rows = list_by_name(
    {.app = query.app, .limit = std::numeric_limits<std::size_t>::max()});
  if (!rows)
    return rows.error();
  std::vector<std::string> names;
  for (const auto& row : *rows)
    if (names.size() < query.limit && row.key.user > query.behind
        && (names.empty() || names.back() != row.key.user))
      names.push_back(row.key.user);
  return names;
}

result<std::vector<std::string>> store::list_apps(const app_query&) {
  return error(errc::invalid_argument,
               "this store cannot list its apps: it does not override "
               "store::list_apps");
}

run_position position_of(const open_run& listed) {
  return {listed.opened, listed.invocation_id, listed.key};
}

namespace {

error keeps_no_runs(std::string_view member) {
  return {errc::invalid_argument,
          fmt::format("this store keeps no open runs: it does not override "
                      "store::{}",
                      member)};
}

} // namespace

result<std::vector<open_run>> store::list_runs(const run_query&) {
  return keeps_no_runs("list_runs");
}

result<void> store::renew_holder(const std::string&) {
  return keeps_no_runs("renew_holder");
}

result<void> store::remove_holder(const std::string&) {
  return keeps_no_runs("remove_holder");
}

std::uint32_t id_hash(std::string_view id) noexcept {
  // FNV-1a: short, and the same on every machine.
  std::uint32_t hash = 2'166'136'261U;
  for (const auto byte : id)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 16'777'619U;
  return hash & 0x7fff'ffffU;
}

} // namespace troupe

std::size_t std::hash<troupe::owner_name>::operator()(
  const troupe::owner_name& owner) const noexcept {
  std::size_t seed = 0;
  boost::hash_combine(seed, owner.app);
  boost::hash_combine(seed, owner.user);
  boost::hash_combine(seed, owner.session);
  return seed;
}
