// The whole protocol of the actors, on one page.
//
// Waiting only points upward: invocation → session → user → app. An append
// climbs as far as its delta reaches and comes back as the same letter;
// look-ups go down from the app, each owner adding what it has, and are
// answered by the last.

#pragma once

#include "troupe/actors/inbox.hpp"
#include "troupe/contexts/lane_host.hpp"
#include "troupe/contexts/run_options.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/session_request.hpp"
#include "troupe/core/state.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/typed_actor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class app_actor;
class user_actor;
class session_actor;
class inbox_actor;
class lane_actor;
class load_gate;

enum class letter_kind : std::uint8_t {
  wrapped,  // a CAF message
  finished, // a run is over, for whoever waits for it
  shut_down,   // parent → child: end; nothing is under way any more
  append,      // anyone → session, and back to an invocation
  create,      // anyone → app → user → session
  climb,       // session → user and back
  user_climb,  // user → app and back
  get,         // anyone → app → user → session
  list,        // anyone → app → users → sessions
  read_state,  // anyone → app, or → app → user
  remove,      // anyone → app → user → session → user
  remove_user, // anyone → app → user → app
  start_run,   // invocation → app → user → session, and back
  end_run,     // the same way, so that it cannot overtake
  begin,       // runtime → invocation; parent lane → lane
  cancel,      // anyone → invocation; parent lane → lane
  resume,      // a coroutine goes on on its lane
  emit,        // lane → invocation
  answer,      // model, tool or timer → lane
  lane_ended,  // lane → parent lane
  more_lanes,  // a lane that starts many, to itself
};

// -- letters to owners
// ---------------------------------------------------------

/// A letter that somebody outside of the actors waits for.
struct call : letter {
  using letter::letter;

  /// Hands the answer to the caller; runs off the owners, once.
  virtual void complete() = 0;

  /// What the call counts in until it is complete.
  load_gate* gate = nullptr;
};

template <class T>
struct call_for : call {
  using call::call;

  /// Whoever drops the letter unanswered has answered `errc::internal`.
  ~call_for() override;

  void complete() override;
  void fail(const error& why) override;

  result<T> outcome = error(errc::internal, "a call was dropped");
  completion<T> done;
};

/// One event on its way. Whoever holds the letter is the only one to touch it.
struct append : call_for<event_ptr> {
  explicit append(letter_kind which = letter_kind::append) : call_for(which) {}

  ~append() override { release(); }

  void complete() override;
  void fail(const error& why) override;

  const delta& changes() const noexcept { return said->actions.state_delta; }

  bool touches(scope where) const noexcept {
    return !changes().share(where).empty();
  }

  /// Takes the letter out of the counts of what is under way.
  void release();

  event_ptr said;
  /// The same event while nobody else holds it, so that it can be completed in
  /// place.
  std::shared_ptr<event> own;
  std::optional<std::uint64_t> expected_revision;
  std::vector<resolution> resolved;
  std::size_t bytes = 0;
  /// Set when the session counted it.
  caf::strong_actor_ptr admitted_by;
  /// The invocation that waits for it, instead of a caller.
  caf::strong_actor_ptr reply_to;
  /// Which request of the invocation this answers.
  void* request = nullptr;
  lane_actor* lane = nullptr;
  /// Retries that share this one's fate.
  letter_list followers;
  bool refused = false;
  /// A retry: what it says was or is appended by another letter.
  bool joined = false;
};

/// The append that creates a session: its delta is the initial state, and no
/// event is stored.
struct create : append {
  create() : append(letter_kind::create) {}

  ~create() override;

  void complete() override;
  void fail(const error& why) override;

  session_key key;
  state_map app;
  state_map user;
  result<session> created = error(errc::internal, "a call was dropped");
  completion<session> created_done;
};

/// A session's events that reach its user or further, in order.
struct climb : letter {
  climb() : letter(letter_kind::climb) {}

  void fail(const error&) override {
  } // Owners with a climb under way do not end.

  session_actor* from = nullptr; // Waits for this letter.
  std::vector<append*> events;   // Held by the session meanwhile.
  bool touches_app = false;
  std::optional<error> last_refused;
  /// It was the app that refused it: the user has judged its share.
  bool refused_by_app = false;
  /// On the way down.
  state_map user;
  state_map app;
};

struct user_climb : letter {
  user_climb() : letter(letter_kind::user_climb) {}

  void fail(const error&) override {}

  user_actor* from = nullptr;
  std::vector<std::unique_ptr<climb>> climbs;
  state_map app;
};

struct get : call_for<session> {
  get() : call_for(letter_kind::get) {}

  session_key key;
  get_options options;
  state_map app;
  state_map user;
  /// Renews the view of the session's runs too.
  bool refresh = false;
};

/// What all parts of one `list` fill together.
class list_gather;

struct list : letter {
  explicit list(std::shared_ptr<list_gather> into);
  ~list() override;

  void fail(const error& why) override;

  std::shared_ptr<list_gather> gather;
  std::optional<std::string> only_user;
  state_map app;
  state_map user;
};

struct read_state : call_for<json> {
  read_state() : call_for(letter_kind::read_state) {}

  void complete() override;

  state_map keys;
  std::optional<std::string> user;
};

struct remove : call_for<bool> {
  remove() : call_for(letter_kind::remove) {}

  std::string user;
  std::string id;
  bool done_by_session = false;
  bool for_user_removal = false;
};

struct remove_user : call_for<bool> {
  remove_user() : call_for(letter_kind::remove_user) {}

  std::string user;
  bool done_by_user = false;
};

struct shut_down : letter {
  shut_down() : letter(letter_kind::shut_down) {}

  void fail(const error&) override {}
};

// -- letters of runs
// -----------------------------------------------------------

/// The newest that a session has seen, for its runs to read without a message.
class session_view {
public:
  step_view read() const {
    const std::lock_guard guard(mutex_);
    return newest_;
  }

  void write(step_view newest) {
    const std::lock_guard guard(mutex_);
    newest_ = std::move(newest);
  }

private:
  mutable std::mutex mutex_;
  step_view newest_;
};

struct start_run : letter {
  start_run() : letter(letter_kind::start_run) {}

  void fail(const error& why) override;

  session_key key;
  state_map app;
  state_map user;
  /// The session that was meant; one that took its place since is another.
  const session_actor* session = nullptr;
  caf::strong_actor_ptr invocation;
  run_policy policy = run_policy::queue;
  /// The user's message, appended when the run gets its turn.
  std::unique_ptr<append> message;
  std::shared_ptr<session_view> view;
};

struct end_run : letter {
  end_run() : letter(letter_kind::end_run) {}

  void fail(const error&) override {
  } // The session is gone, and its runs with it.

  session_key key;
  state_map app;
  state_map user;
  inbox_actor* invocation = nullptr;
};

/// A letter without content.
struct signal : letter {
  using letter::letter;

  void fail(const error&) override {}
};

struct cancel : letter {
  explicit cancel(error why)
    : letter(letter_kind::cancel),
      reason(std::move(why)) {}

  void fail(const error&) override {} // Already over.

  error reason;
};

struct resume : letter {
  explicit resume(std::coroutine_handle<> waiting)
    : letter(letter_kind::resume),
      suspended(waiting) {}

  void fail(const error&) override {} // Lanes end after their coroutine.

  std::coroutine_handle<> suspended;
};

struct emit : letter {
  emit() : letter(letter_kind::emit) {}

  void fail(const error&) override {} // Invocations end after their lanes.

  lane_actor* from = nullptr;
  emit_request* request = nullptr;
};

/// The end of one wait of a lane: `wait` says which, so that late answers are
/// told apart.
struct answer : letter {
  answer() : letter(letter_kind::answer) {}

  void fail(const error&) override {} // Nobody waits any more.

  std::uint64_t wait = 0;
  /// What came, for the lane to put into the request.
  std::function<void()> deliver;
};

struct lane_ended : letter {
  lane_ended() : letter(letter_kind::lane_ended) {}

  void fail(const error&) override {}

  std::size_t index = 0;
  result<bool> outcome = false;
};

// -- the door for CAF users
// ----------------------------------------------------

using append_atom = caf::atom_constant<caf::atom("append")>;
using get_atom = caf::atom_constant<caf::atom("get")>;
using create_atom = caf::atom_constant<caf::atom("create")>;
using remove_atom = caf::atom_constant<caf::atom("remove")>;
using session_ptr = std::shared_ptr<const session>;

} // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::event_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::session_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::session_key)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::json)

namespace troupe::actors {

/// What a session's actor understands as a CAF actor. Failures are
/// `caf::error`s that `to_error` turns back.
using session_handle
  = caf::typed_actor<caf::replies_to<append_atom, event_ptr>::with<event_ptr>,
                     caf::replies_to<get_atom>::with<session_ptr>>;

/// What an app's actor understands as a CAF actor: the way to the sessions, by
/// their full key.
using app_handle = caf::typed_actor<
  caf::replies_to<create_atom, session_key, json>::with<session_ptr>,
  caf::replies_to<get_atom, session_key>::with<session_ptr>,
  caf::replies_to<append_atom, session_key, event_ptr>::with<event_ptr>,
  caf::replies_to<remove_atom, session_key>::with<bool>>;

} // namespace troupe::actors
