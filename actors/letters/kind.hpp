// The kinds of letters, and the actors that letters of each kind pass.

#pragma once

#include "troupe/actors/engine/inbox.hpp"

#include <cstdint>

namespace troupe::actors {

enum class letter_kind : std::uint8_t {
  // 0 is the engine's: a CAF message.
  finished = 1, // a completed call; no actor receives it
  shut_down,    // parent → child: end; no work is under way
  retire,       // child → parent → child → parent: leave memory
  load,         // owner → store and back
  reload,       // store → owner: the owner is stale
  leave,        // owner → store: the owner leaves memory
  read_events,  // session → store and back
  find_events,  // session → store and back
  commit,       // session, user or app → store and back
  view_refresh, // session → app → user → session → store and back
  confirm,      // owner → store: answer once it is durable
  look,         // timer → store: ask for changes of other processes
  trim,         // anyone → store: delete old events of a session
  close_run,    // invocation → store: the run has ended
  give_up_run,  // anyone → store: close a run of a process that has ended
  renew,        // timer → store: this process still has open runs
  outdated,   // reader of the store → store: a session was trimmed elsewhere
  forward,    // anyone → app → user → session
  append,     // anyone → session, and back to an invocation
  create,     // anyone → app → user → session
  climb,      // session → user and back
  user_climb, // user → app and back
  get,        // anyone → app → user → session
  follow,     // anyone → session, which may keep it until an event is there
  follow_state, // anyone → app, or → app → user, which may keep it
  list,         // anyone → app → users → sessions
  list_users,   // anyone → app
  read_state,   // anyone → app, or → app → user
  write_state, // anyone → app, or → app → user; over a store on to it and back
  remove,      // anyone → app → user → session → user
  remove_user,    // anyone → app → user → app
  start_run,      // invocation → app → user → session, and back
  refused_run,    // app, user or session → invocation
  end_run,        // the same way, so that it cannot overtake its start_run
  try_again,      // timer → invocation: its session may be free by now
  begin,          // runtime → invocation; parent lane → lane
  cancel,         // anyone → invocation; parent lane → lane
  resume,         // continues a coroutine on its lane
  emit,           // lane → invocation
  answer,         // model, tool or timer → lane
  lane_ended,     // lane → parent lane
  more_lanes,     // a lane with a large fan-out → itself
  lane_timer,     // timer → lane, for its fan-out or workflow
  node_committed, // invocation → lane of a workflow
};

/// Base of letters without an answer. One that is not handled is dropped.
struct note : letter {
  using letter::letter;

  void fail(const error&) override {}
};

/// Base of the letters of one kind.
template <letter_kind Kind, class Base = note>
struct letter_of : Base {
  static constexpr auto own_kind = Kind;

  letter_of() : Base(Kind) {}
};

} // namespace troupe::actors
