// Adds sessions to the memory of their users, and removes the memory of users.
//
// Invariant: no addition outlives the removal of its user. A removal deletes
// the memory, then the state, then the memory again. An addition asks whether
// its session exists after the memories are stored: the removal has then seen
// them, or the addition sees the removal and takes them back.

#include "troupe/actors/artifact_call.hpp"
#include "troupe/actors/backend.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/stepwise_call.hpp"
#include "troupe/runtime/session_service.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe {

namespace {

using backend_ptr = std::shared_ptr<detail::session_backend>;

// Stores memories, and returns the number of new ones.
using memory_work = std::function<result<std::size_t>(memory_service& kept)>;
// Removes them again.
using memory_undo = std::function<result<bool>(memory_service& kept)>;

// `undo` is called if the session is gone after `work`.
task<result<std::size_t>> add_while_there(backend_ptr backend,
                                          session_key key,
                                          memory_work work,
                                          memory_undo undo) {
  session_service sessions(backend);
  const auto added
    = co_await actors::make_memory_call<std::size_t>(backend->share(), work);
  if (!added)
    co_return added.error();
  const get_options nothing{.num_recent_events = 0};
  const auto found = co_await sessions.get(key, nothing);
  if (found)
    co_return *added;
  if (found.error().code() != errc::not_found)
    co_return found.error();
  const auto undone
    = co_await actors::make_memory_call<bool>(backend->share(), undo);
  if (!undone)
    co_return undone.error();
  co_return error(errc::not_found,
                  fmt::format("session {} was removed while it was added to "
                              "memory",
                              to_string(key)));
}

task<result<std::size_t>> add_session(backend_ptr backend, session_key wanted) {
  if (!backend->shared().memory)
    co_return without_memory();
  session_service sessions(backend);
  const auto fetched = co_await sessions.get(wanted);
  if (!fetched)
    co_return fetched.error();
  const auto key = fetched->key();
  const memory_work work = [fetched = *fetched](memory_service& kept) {
    return kept.add_session(fetched);
  };
  const memory_undo undo
    = [key](memory_service& kept) { return kept.remove_session(key); };
  co_return co_await add_while_there(backend, key, work, undo);
}

// Adds parts of a session, or texts of its user. `of` is the session of the
// memories, empty for texts; `ids` are their ids.
task<result<std::size_t>> add_parts(backend_ptr backend,
                                    session_key wanted,
                                    std::string of,
                                    std::vector<std::string> ids,
                                    memory_work work) {
  if (!backend->shared().memory)
    co_return without_memory();
  const auto key = check_key(wanted);
  if (!key)
    co_return key.error();
  session_service sessions(backend);
  const get_options nothing{.num_recent_events = 0};
  const auto found = co_await sessions.get(*key, nothing);
  if (!found)
    co_return found.error();
  const memory_undo undo
    = [key = *key, of, ids](memory_service& kept) -> result<bool> {
    for (const auto& id : ids)
      if (auto removed = kept.remove(key.app, key.user, of, id); !removed)
        return removed;
    return true;
  };
  co_return co_await add_while_there(backend, *key, work, undo);
}

} // namespace

pending<std::size_t> session_service::add_to_memory(session_key key) {
  return actors::make_stepwise(add_session(backend_, std::move(key)));
}

pending<std::size_t>
session_service::add_to_memory(session_key key, std::vector<event_ptr> events) {
  std::vector<std::string> ids;
  for (const auto& each : events)
    if (each && !each->id.empty())
      ids.push_back(each->id);
  const memory_work work
    = [key, events = std::move(events)](memory_service& kept) {
        return kept.add_events(key, events);
      };
  return actors::make_stepwise(
    add_parts(backend_, key, key.id, std::move(ids), work));
}

pending<std::size_t>
session_service::add_to_memory(session_key key,
                               std::vector<memory_entry> entries) {
  std::vector<std::string> ids;
  for (const auto& each : entries)
    if (!each.id.empty())
      ids.push_back(each.id);
  const memory_work work
    = [key, entries = std::move(entries)](memory_service& kept) {
        return kept.add(key.app, key.user, entries);
      };
  return actors::make_stepwise(
    add_parts(backend_, std::move(key), {}, std::move(ids), work));
}

} // namespace troupe
