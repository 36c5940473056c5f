// Adds sessions to the memory of their users, and removes the memory of users.
//
// Invariant: no addition outlives the removal of its user, unless the process
// ends between the two steps of the addition, or the session was created again
// under its id. A removal deletes the memory, then the state, then the memory
// again. An addition asks whether its session exists after the memories are
// stored: the removal has then seen them, or the addition sees the removal and
// takes them back.

#include "troupe/actors/artifact_call.hpp"
#include "troupe/actors/backend.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/stepwise_call.hpp"
#include "troupe/runtime/session_service.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using backend_ptr = std::shared_ptr<detail::session_backend>;

// Stores memories, and returns the number of new ones.
using memory_work = std::function<result<std::size_t>(memory_service& kept)>;
// Removes them again.
using memory_undo = std::function<result<bool>(memory_service& kept)>;

// `undo` is called if the session is not found after `work`, or may be gone.
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
  const auto undone
    = co_await actors::make_memory_call<bool>(backend->share(), undo);
  if (!undone)
    co_return undone.error();
  if (found.error().code() != errc::not_found)
    co_return found.error();
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

// Ids of the memories that were not remembered before.
using new_ids = std::shared_ptr<std::vector<std::string>>;

// Adds parts of a session, or texts of its user. `of` is the session of the
// memories, empty for texts. `work` sets `added`.
task<result<std::size_t>> add_parts(backend_ptr backend,
                                    session_key wanted,
                                    std::string of,
                                    new_ids added,
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
    = [key = *key, of, added](memory_service& kept) -> result<bool> {
    if (added->empty())
      return false;
    const auto removed = kept.remove(key.app, key.user, of, *added);
    return removed ? result<bool>(*removed > 0) : removed.error();
  };
  co_return co_await add_while_there(backend, *key, work, undo);
}

} // namespace

pending<std::size_t> session_service::add_to_memory(session_key key) {
  return actors::make_stepwise(add_session(backend_, std::move(key)));
}

pending<std::size_t>
session_service::add_to_memory(session_key key, std::vector<event_ptr> events) {
  const auto added = std::make_shared<std::vector<std::string>>();
  const memory_work work
    = [key, added, events = std::move(events)](memory_service& kept) {
        return kept.add_events(key, events, added.get());
      };
  return actors::make_stepwise(add_parts(backend_, key, key.id, added, work));
}

pending<std::size_t>
session_service::add_to_memory(session_key key,
                               std::vector<memory_entry> entries) {
  const auto added = std::make_shared<std::vector<std::string>>();
  const memory_work work
    = [key, added, entries = std::move(entries)](memory_service& kept) {
        return kept.add(key.app, key.user, entries, added.get());
      };
  return actors::make_stepwise(
    add_parts(backend_, std::move(key), {}, added, work));
}

} // namespace troupe
