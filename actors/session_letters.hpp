// The calls on sessions as letters, checked at the boundary: what the session
// service and the CAF door both send.

#pragma once

#include "troupe/actors/append_letter.hpp"

#include <memory>
#include <string>

namespace troupe::actors {

/// Counts a call as under way. Whether it may go on: once the runtime is
/// closing it is not counted.
bool enter(setup& shared);

/// The same until the call is complete; once the runtime is closing it is
/// failed.
bool enter(call& wanted, setup& shared);

/// Each checks its input and fails with `errc::invalid_argument` (or
/// `errc::too_large`).
result<std::unique_ptr<create>> make_create(create_request request,
                                            setup& shared);
result<std::unique_ptr<get>> make_get(const session_key& key,
                                      const get_options& options);
result<std::unique_ptr<remove>> make_remove(const session_key& key);

/// A partial event is given back and not stored.
bool is_partial(const event& said);
bool is_partial(const event_ptr& said);
event_ptr as_shared(event said);
event_ptr as_shared(event_ptr said);

/// Checks an event and tells it to its session. `done` is called in every case,
/// at once when the event is refused here. An append of a writer has a `place`.
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

} // namespace troupe::actors
