// Makes and sends the letters of calls on sessions, with all checks of the
// input. Used by the session service and the CAF interface.

#pragma once

#include "troupe/actors/owners/append_letter.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace troupe::actors {

/// Counts a call as under way. Returns false, and counts nothing, once the
/// runtime is closing.
bool admit_call(setup& shared);

/// Counts `wanted` until it is complete. Once the runtime is closing, fails it
/// and returns false.
bool admit_call(call& wanted, setup& shared);

/// Each of these checks its input, and fails with `errc::invalid_argument`
/// or `errc::too_large`.
result<std::unique_ptr<create>> make_create(create_request request,
                                            setup& shared);
/// A fork with the key `key`, which was checked.
result<std::unique_ptr<create>> make_fork(session_key key,
                                          std::shared_ptr<forked_past> past,
                                          bool keeps_open_calls,
                                          setup& shared);
result<std::unique_ptr<get>> make_get(const session_key& key,
                                      const get_options& options);
/// Sends it to its app. It is always answered once.
void send_get(setup& shared, std::unique_ptr<get> wanted);

result<std::unique_ptr<remove>> make_remove(const session_key& key,
                                            const remove_options& options);

/// Partial events are returned to the caller and not stored.
bool is_partial(const event& said);
bool is_partial(const event_ptr& said);
event_ptr as_shared(event&& said);
event_ptr as_shared(event_ptr&& said);

/// Checks an event and sends it to its session. `done` is always called once:
/// on this thread, before the function returns, if the event is refused here.
/// `place` belongs to appends of an ordered writer.
template <class Event>
void append_event(setup& shared,
                  const session_key& key,
                  Event said,
                  const append_options& options,
                  completion<event_ptr> done,
                  const write_place& place = {});

extern template void append_event<event>(setup&,
                                         const session_key&,
                                         event,
                                         const append_options&,
                                         completion<event_ptr>,
                                         const write_place&);
extern template void append_event<event_ptr>(setup&,
                                             const session_key&,
                                             event_ptr,
                                             const append_options&,
                                             completion<event_ptr>,
                                             const write_place&);

/// The same for a rewind.
void append_rewind(setup& shared,
                   const session_key& key,
                   event said,
                   rewind_basis from,
                   completion<event_ptr> done);

/// Checks the key and sends the letter to its session, behind the appends that
/// this thread has sent. It is always answered once: on this thread, before the
/// function returns, if it is refused here.
void follow_session(setup& shared, std::unique_ptr<follow> wanted);

// -- state without a session --------------------------------------------------

/// Id of a write, which may be empty, and the revision that it expects.
struct write_conditions {
  std::string id;
  std::optional<std::uint64_t> expected_revision;
};

/// Checks the names of an app and, if it is set, of a user.
result<owner_name> check_names(const std::string& app,
                               const std::optional<std::string>& user);

/// Sends the letter of a reader to the app or user that it names. It is always
/// answered once, as in `follow_session`.
void follow_state_of(const std::shared_ptr<setup>& shared,
                     std::unique_ptr<follow_state> wanted);

/// Reads the state of a user, or of the app if `user` is unset. `done` is
/// always called once.
void read_state_of(setup& shared,
                   const std::string& app,
                   const std::optional<std::string>& user,
                   completion<scope_keys> done);

/// Checks a write of `changes`, whose keys belong to the user or app, and sends
/// it to its app. `done` is always called once.
void write_state_of(const std::shared_ptr<setup>& shared,
                    const std::string& app,
                    const std::optional<std::string>& user,
                    delta changes,
                    write_conditions conditions,
                    completion<shared_write> done);

/// Erases all keys of an app, and forgets its remembered writes, in one write.
/// `done` is always called once. The name must have been checked.
void clear_state_of(setup& shared,
                    const std::string& app,
                    completion<shared_write> done);

} // namespace troupe::actors
