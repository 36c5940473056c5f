// The whole protocol of the actors, on one page.
//
// Waiting only points upward: invocation → session → user → app → store. An
// append climbs as far as its delta reaches and comes back as the same letter;
// look-ups go down from the app, each owner adding what it has, and are
// answered by the last. Over a store, what an owner has decided goes to the
// store's queue, in the owner's order, and is answered when it is durable.

#pragma once

#include "troupe/actors/directory.hpp"
#include "troupe/actors/id_filter.hpp"
#include "troupe/actors/inbox.hpp"
#include "troupe/actors/write_order.hpp"
#include "troupe/agents/history_search.hpp"
#include "troupe/agents/resumption.hpp"
#include "troupe/contexts/history_extent.hpp"
#include "troupe/contexts/lane_host.hpp"
#include "troupe/contexts/run_options.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/session_request.hpp"
#include "troupe/core/state.hpp"
#include "troupe/stores/store.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/typed_actor.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::detail {
class run_control;
}

namespace troupe::actors {

class app_actor;
class user_actor;
class session_actor;
class inbox_actor;
class lane_actor;
class load_gate;
struct commit;

enum class letter_kind : std::uint8_t {
  wrapped,     // a CAF message
  finished,    // a run is over, for whoever waits for it
  shut_down,   // parent → child: end; nothing is under way any more
  retire,      // child → parent → child → parent: leave memory
  load,        // owner → store and back
  reload,      // store → owner: what it holds is out of date
  leave,       // owner → store: it is no longer in memory
  read_events, // session → store and back
  find_events, // session → store and back
  commit,      // session or user → store and back
  fresh,       // session → app → user → session → store and back
  confirm,     // owner → store: an answer waits for what it is based on
  forward,     // anyone → app → user → session
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
  lane_timer,  // timer → lane, for its fan-out
};

// -- what letters are made of
// ----------------------------------------------------

/// The keys of an owner, as it sends them down.
struct root {
  state_map keys;
  /// How often what the owner holds had been found out of date when it loaded
  /// this.
  std::uint64_t generation = 0;
};

/// The newest that a session has seen, for its runs to read without a message.
class session_view {
public:
  step_view read() const {
    const std::lock_guard guard(mutex_);
    return newest_;
  }

  /// Unless a newer one is there: `number` counts the session's views.
  void write(step_view newest, std::uint64_t number);

private:
  mutable std::mutex mutex_;
  step_view newest_;
  std::uint64_t number_ = 0;
};

/// A view to write once it is durable.
struct fresh_view {
  void publish() {
    if (target)
      target->write(std::move(newest), number);
    target.reset();
  }

  std::shared_ptr<session_view> target;
  step_view newest;
  std::uint64_t number = 0;
  /// Of the roots that it shows.
  std::uint64_t user_generation = 0;
  std::uint64_t app_generation = 0;
};

/// A letter that somebody outside of the actors waits for.
struct call : letter {
  using letter::letter;

  /// Hands the answer to the caller; runs off the owners, once.
  virtual void complete() = 0;

  /// The answer is an error.
  virtual void refuse(error why) = 0;

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

  void refuse(error why) override { outcome = std::move(why); }

  result<T> outcome = error(errc::internal, "a call was dropped");
  completion<T> done;
};

// -- letters to the store's queue
// ----------------------------------------------

/// What the store's queue knows of an owner in memory. The owner writes all but
/// `stale` before its first load; from then on only the queue's thread reads
/// and writes.
struct live_owner {
  owner_name name;
  caf::strong_actor_ptr actor;
  /// What the owner holds is not what is stored: nothing based on it is
  /// written or answered until it has loaded again.
  bool stale = false;
  /// Counts how often it was.
  std::uint64_t generation = 0;
};

/// The owners of one change, session first; those that it has nothing to do
/// with are null.
using live_owners = std::array<std::shared_ptr<live_owner>, 3>;

/// Answered by the same letter, to `owner`.
struct load : letter {
  load() : letter(letter_kind::load) {}

  void fail(const error&) override {} // Loads are always answered.

  std::shared_ptr<live_owner> owner;
  load_options options;
  /// Of a session: the oldest event to load besides; above all others: none.
  std::uint64_t events_from = UINT64_MAX;
  std::uint64_t generation = 0;
  /// Of an app or user; nothing if there is none.
  result<std::optional<stored_scope>> scope = std::nullopt;
  result<std::optional<stored_session>> session = std::nullopt;
};

struct leave : letter {
  leave() : letter(letter_kind::leave) {}

  void fail(const error&) override {}

  std::shared_ptr<live_owner> owner;
};

/// Events of a session that are not in memory.
struct read_events : letter {
  read_events() : letter(letter_kind::read_events) {}

  void fail(const error&) override {}

  std::shared_ptr<live_owner> owner;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  result<std::vector<event_ptr>> events = std::vector<event_ptr>();
  /// Fewer were found at first.
  bool is_second = false;
  /// Instead of giving the events the store is searched from `last` on, page by
  /// page, for where a run starts to read. Nobody needs the rest once the run
  /// has left.
  std::optional<history_search> search;
  std::shared_ptr<const detail::run_control> control;
  /// Of the session, when it asked: later ones make the answer useless.
  std::uint64_t cuts = 0;
};

/// Events of a session by their ids, which are not in memory.
struct find_events : letter {
  find_events() : letter(letter_kind::find_events) {}

  void fail(const error&) override {}

  std::shared_ptr<live_owner> owner;
  /// Of the session, when it asked: a later load makes the answer useless.
  std::uint64_t load = 0;
  /// The newest event that is written when the store is asked.
  std::uint64_t revision = 0;
  std::vector<std::string> ids;
  /// One for each of `ids`; null where no event has it.
  result<std::vector<event_ptr>> events = std::vector<event_ptr>();
  /// Asks for a filter of all ids, besides.
  bool wants_filter = false;
  /// Null if the store did not answer.
  std::unique_ptr<id_filter> filter;
};

/// A look at the newest that a session has asked for itself.
struct fresh : letter {
  fresh() : letter(letter_kind::fresh) {}

  void fail(const error&) override {}

  std::uint64_t number = 0;
  result<session> seen = error(errc::internal, "nobody has looked");
};

/// What an owner has decided, in its order, with the letters to answer.
struct commit : letter {
  commit() : letter(letter_kind::commit) {}

  void fail(const error& why) override;

  enum class verdict : std::uint8_t {
    durable,
    again,  // nothing was written, since it was based on what is out of date
    failed, // the outcome is unknown
  };

  /// First the one who waits for it.
  std::shared_ptr<live_owner> from;
  live_owners owners;
  std::vector<store_change> changes;
  letter_list letters;
  /// A letter is refused: that may be due to what is out of date.
  bool refuses = false;
  /// Set last, through the queue.
  bool filled = false;
  /// For the session's runs, and the owners above that it, or the session
  /// that is created, is based on.
  fresh_view view;
  std::shared_ptr<live_owner> seen_user;
  std::shared_ptr<live_owner> seen_app;
  verdict outcome = verdict::durable;
  /// What was refused may have been so on what is out of date.
  bool refuses_again = false;
  /// The view shows what is out of date: the runs need another one.
  bool view_is_stale = false;
  error why{errc::internal, ""};
};

/// An answer that leaves the runtime once what it is based on is durable, and
/// is computed again if that is out of date.
struct confirm : letter {
  confirm() : letter(letter_kind::confirm) {}

  void fail(const error& why) override { held->fail(why); }

  live_owners owners;
  /// Of what the answer shows of each.
  std::array<std::uint64_t, 3> generations{};
  /// To send it to again.
  caf::strong_actor_ptr app;
  std::unique_ptr<call> held;
};

// -- letters that change state
// ---------------------------------------------------

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

  /// Whether a wider owner may refuse it.
  bool has_typed(scope where) const noexcept {
    return std::ranges::any_of(changes().share(where), is_typed);
  }

  /// As it was before it was judged.
  void reset() {
    resolved.clear();
    joined = false;
    place.mend();
  }

  /// Its retries fail with it.
  void refuse(error why) override;

  /// Takes the letter out of the counts of what is under way.
  void release();

  event_ptr said;
  /// The same event while nobody else holds it, so that it can be completed in
  /// place.
  std::shared_ptr<event> own;
  std::optional<std::uint64_t> expected_revision;
  std::vector<resolution> resolved;
  /// Those that it makes in the wider scopes that it touches.
  std::uint64_t user_revision = 0;
  std::uint64_t app_revision = 0;
  std::size_t bytes = 0;
  /// Set when the session counted it.
  caf::strong_actor_ptr admitted_by;
  /// Set while only the runtime counts it, on its way to a session that has to
  /// be loaded.
  load_gate* admitted_to = nullptr;
  /// The invocation that waits for it, instead of a caller.
  caf::strong_actor_ptr reply_to;
  /// It is the message of a run; and what that may do.
  bool starts_run = false;
  answer_rights rights;
  /// Which request of the invocation this answers.
  void* request = nullptr;
  lane_actor* lane = nullptr;
  /// Retries that share this one's fate.
  letter_list followers;
  /// The runtime made the id of its event, so that no earlier event has it.
  bool makes_id = false;
  /// A retry: what it says was or is appended by another letter.
  bool joined = false;
  /// In the order of a writer, if one has sent it.
  write_place place;
  /// Of the event in its session, once it is decided.
  std::uint64_t number = 0;
  /// Of the message of a run: see `history_start`.
  std::uint64_t answered_from = UINT64_MAX;
};

/// The append that creates a session: its delta is the initial state, and no
/// event is stored.
struct create : append {
  create() : append(letter_kind::create) {}

  ~create() override;

  void complete() override;
  void fail(const error& why) override;

  void refuse(error why) override { created = std::move(why); }

  session_key key;
  /// The events that the session is created with.
  std::vector<std::unique_ptr<append>> past;
  root app;
  root user;
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
  /// Over a store: enters the store's queue where the climb is decided, and
  /// is filled when it is back.
  std::unique_ptr<commit> decided;
  bool touches_app = false;
  /// A session with its past: a refusal of one event refuses all of them.
  bool is_whole = false;
  /// Nothing of it was judged: an owner above could not be loaded.
  std::optional<error> failed;
  std::optional<error> last_refused;
  /// It was the app that refused it: the user has judged its share.
  bool refused_by_app = false;
  /// On the way down.
  root user;
  root app;
};

struct user_climb : letter {
  user_climb() : letter(letter_kind::user_climb) {}

  void fail(const error&) override {}

  user_actor* from = nullptr;
  std::vector<std::unique_ptr<climb>> climbs;
  /// As of a climb.
  std::optional<error> failed;
  root app;
};

/// A letter to a session that may have to be loaded for it. As long as one is
/// on its way, all that comes for the session goes the same way, behind it.
struct forward : letter {
  explicit forward(session_directory& counted)
    : letter(letter_kind::forward),
      directory(counted) {}

  ~forward() override { directory.arrive(key); }

  void fail(const error& why) override { held->fail(why); }

  session_directory& directory; // Outlives all letters.
  session_key key;
  root app;
  root user;
  letter_ptr held;
};

struct get : call_for<session> {
  get() : call_for(letter_kind::get) {}

  void complete() override;

  session_key key;
  get_options options;
  root app;
  root user;
  /// Renews the view of the session's runs too.
  bool refresh = false;
  fresh_view renewed;
};

/// What all parts of one `list` fill together.
class list_gather;

struct list : letter {
  explicit list(std::shared_ptr<list_gather> into);
  ~list() override;

  void fail(const error& why) override;

  std::shared_ptr<list_gather> gather;
  std::optional<std::string> only_user;
  root app;
  root user;
};

struct read_state : call_for<json> {
  read_state() : call_for(letter_kind::read_state) {}

  void complete() override;

  void refuse(error why) override { refusal = std::move(why); }

  state_map keys;
  std::optional<std::string> user;
  /// The answer, instead of the keys.
  std::optional<error> refusal;
};

struct remove : call_for<bool> {
  remove() : call_for(letter_kind::remove) {}

  std::string user;
  std::string id;
  bool done_by_session = false;

  void fail(const error& why) override {
    while (!left.empty())
      left.pop_front()->fail(why);
    call_for::fail(why);
  }

  /// Of a session over a store that is gone: what stood behind the removal. It
  /// may have been created again since, by another program.
  letter_list left;
  /// What a session is based on that is not there.
  std::shared_ptr<live_owner> live;
  std::uint64_t generation = 0;
  /// The session's actor has ended.
  bool gone = false;
  bool for_user_removal = false;
};

struct remove_user : call_for<bool> {
  remove_user() : call_for(letter_kind::remove_user) {}

  std::string user;
  bool done_by_user = false;
  /// The user's actor has ended.
  bool gone = false;
};

/// How an owner leaves memory: only its parent lets it go, so that nobody asks
/// for it meanwhile.
struct retire : letter {
  enum class step : std::uint8_t {
    suggested, // to the child: it has been idle for long, or memory is short
    asked,     // to the parent, by an idle child
    granted,   // to the child: nothing more will come from above
    kept,      // to the child: something is on its way
    gone,      // to the parent: it has left
    stayed,    // to the parent: something came meanwhile
  };

  retire(step now, std::string whose)
    : letter(letter_kind::retire),
      at(now),
      child(std::move(whose)) {}

  void fail(const error& why) override {
    while (!left.empty())
      left.pop_front()->fail(why);
  }

  const step at;
  const std::string child;
  /// Suggested since there are too many, and not for age.
  bool at_once = false;
  /// Of one that is gone: what it did not handle any more, for the one that
  /// takes its place.
  letter_list left;
};

struct shut_down : letter {
  shut_down() : letter(letter_kind::shut_down) {}

  void fail(const error&) override {}
};

// -- letters of runs
// -----------------------------------------------------------

struct start_run : letter {
  start_run() : letter(letter_kind::start_run) {}

  void fail(const error& why) override;

  session_key key;
  root app;
  root user;
  /// The session that was meant; one that took its place since is another.
  /// Null: whichever there is.
  const session_actor* session = nullptr;
  caf::strong_actor_ptr invocation;
  std::shared_ptr<const detail::run_control> control;
  run_policy policy = run_policy::queue;
  /// What its agents read, and from where on.
  history_extent reads = history_extent::all();
  history_start history;
  /// The cuts of the session when `history` was found, if it was.
  std::optional<std::uint64_t> searched;
  /// The user's message, appended when the run gets its turn.
  std::unique_ptr<append> message;
  std::shared_ptr<session_view> view;
  /// On the way back: where its events go.
  caf::strong_actor_ptr granted_by;
};

struct end_run : letter {
  end_run() : letter(letter_kind::end_run) {}

  void fail(const error&) override {
  } // The session is gone, and its runs with it.

  session_key key;
  root app;
  root user;
  /// Not its address, which the next one may get.
  caf::actor_id invocation = 0;
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
  result<agent_end> outcome = agent_end();
  /// The last event of the lane that said something, if any did.
  event_ptr last_said;
};

struct lane_timer : letter {
  lane_timer() : letter(letter_kind::lane_timer) {}

  void fail(const error&) override {}

  /// Which fan-out of the lane it is for.
  std::uint64_t fan_out = 0;
  std::function<void()> due;
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
