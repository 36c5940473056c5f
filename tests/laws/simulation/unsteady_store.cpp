#include "unsteady_store.hpp"

#include "troupe/agents/turns/recovery.hpp"

#include <utility>

namespace troupe::testing {

namespace {

error broken(const char* what) {
  return {errc::store_failed, what};
}

} // namespace

unsteady_store::unsteady_store(world& in,
                               history& told,
                               shared_place& place,
                               store_habits habits,
                               std::uint64_t seed)
  : forwarding_store(place.open()),
    world_(in),
    told_(told),
    place_(place),
    habits_(habits),
    program_(seed),
    chance_(seed) {}

result<commit_outcome>
unsteady_store::commit(std::span<const store_change> changes) {
  world_.pause(chance_.time(habits_.commit_time));
  if (is_dead_)
    return broken("the process has ended");
  if (chance_.one_in(habits_.commit_fails)) {
    ++told_.failed_commits;
    return broken("told to fail");
  }
  if (chance_.one_in(habits_.place_loses))
    lose_newest_commits();
  auto outcome = write(changes);
  const bool is_written
    = outcome && outcome->moved.empty() && outcome->kept_out.empty();
  world_.pause(chance_.time(habits_.commit_time));
  if (is_dead_)
    return broken("the process has ended");
  if (is_written && chance_.one_in(habits_.commit_is_unknown)) {
    ++told_.lost_answers;
    return broken("told to say that it failed");
  }
  return outcome;
}

result<commit_outcome>
unsteady_store::write(std::span<const store_change> changes) {
  auto outcome = kept().commit(changes);
  if (outcome && outcome->moved.empty() && outcome->kept_out.empty()) {
    told_.note_commit(changes, {program_, world_.elapsed()});
    for (const auto& each : changes) {
      world_.note("written "
                  + (each.event ? each.event->id : std::string("no event"))
                  + " in " + to_string(each.owner));
      for (const auto& mark : each.runs)
        world_.note((mark.opens ? "open for " : "closed by ") + mark.holder
                    + ": " + mark.invocation_id);
    }
  }
  return outcome;
}

void unsteady_store::lose_newest_commits() {
  const auto moment = told_.lose_commits(1 + chance_.below(3));
  if (!moment)
    return;
  world_.note("the place goes back to moment " + std::to_string(*moment));
  place_.lose_all_but(told_.kept());
}

result<std::vector<moved_owner>> unsteady_store::changed_elsewhere() {
  if (is_dead_)
    return broken("the process has ended");
  if (chance_.one_in(habits_.look_fails)) {
    ++told_.failed_reads;
    return broken("told not to look");
  }
  auto moved = kept().changed_elsewhere();
  world_.pause(chance_.time(habits_.load_time / 8));
  return moved;
}

template <class Read>
auto unsteady_store::read(const Read& from) -> decltype(from()) {
  world_.pause(chance_.time(habits_.load_time));
  if (is_dead_)
    return broken("the process has ended");
  if (chance_.one_in(habits_.load_fails)) {
    ++told_.failed_reads;
    return broken("told not to load");
  }
  auto found = from();
  world_.pause(chance_.time(habits_.load_time));
  return found;
}

result<std::optional<stored_scope>>
unsteady_store::load_scope(const owner_name& owner) {
  return read([&] { return kept().load_scope(owner); });
}

result<std::optional<stored_session>>
unsteady_store::load_session(const session_key& key,
                             const load_options& options) {
  return read([&] { return kept().load_session(key, options); });
}

result<std::optional<stored_session>> unsteady_store::load_session_at(
  const session_key& key, std::uint64_t revision, std::size_t events_max) {
  return read(
    [&] { return kept().load_session_at(key, revision, events_max); });
}

result<std::vector<event_ptr>> unsteady_store::load_events(
  const session_key& key, std::uint64_t first, std::uint64_t last) {
  return read([&] { return kept().load_events(key, first, last); });
}

result<std::vector<event_ptr>>
unsteady_store::find_events(const session_key& key,
                            std::span<const std::string> ids) {
  return read([&] { return kept().find_events(key, ids); });
}

result<std::vector<session_row>> unsteady_store::list(const row_query& query) {
  return read([&] { return kept().list(query); });
}

result<std::vector<open_run>>
unsteady_store::list_runs(const run_query& query) {
  return read([&] { return kept().list_runs(query); });
}

result<void> unsteady_store::renew_holder(const std::string& id) {
  if (is_dead_)
    return broken("the process has ended");
  if (chance_.one_in(habits_.renewal_fails))
    return broken("told not to renew");
  told_.signs[program_].push_back(world_.elapsed());
  return kept().renew_holder(id);
}

result<void> unsteady_store::remove_holder(const std::string& id) {
  if (is_dead_ && habits_.keeps_dead_holders)
    return broken("the process has ended");
  if (!is_dead_ && !is_left(id))
    told_.left[program_] = world_.elapsed();
  return kept().remove_holder(id);
}

} // namespace troupe::testing
