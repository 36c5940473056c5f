// Letters that read or change state: from callers and runs, and between owners.

#pragma once

#include "troupe/actors/letters/look_up.hpp"
#include "troupe/actors/letters/store.hpp"
#include "troupe/actors/parts/write_order.hpp"
#include "troupe/agents/turns/recovery.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/contexts/lanes/basis_check.hpp"
#include "troupe/contexts/pending.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/session.hpp"
#include "troupe/core/shared_write.hpp"
#include "troupe/core/support/scope_state.hpp"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

struct forked_past;

class app_actor;
class user_actor;
class session_actor;
class session_directory;
class lane_actor;

/// The claim of a recovery on its run.
struct run_claim {
  recovery_wish wish;
  /// As `former_holder::silent_for`, for `recovery_wish::free_holder`.
  std::optional<std::chrono::microseconds> silent_for = {};
  /// Number of recoveries of the run before this one, once that is known. Used
  /// only over stores that keep no open runs.
  std::optional<std::uint64_t> recoveries;
  /// True if the last decision refused the claim for a reason that no later
  /// recovery of the run can change.
  bool is_over = false;
  /// The run, once the claim was accepted.
  recorded_run run = {};
};

/// One event on its way to the session's log. Only the holder of the letter may
/// touch it, so it needs no lock.
struct append : call_for<event_ptr> {
  static constexpr auto own_kind = letter_kind::append;

  explicit append(letter_kind which = letter_kind::append) : call_for(which) {}

  ~append() override { release(); }

  void complete() override;
  void fail(const error& why) override;

  const delta& changes() const noexcept { return event->actions.state_delta; }

  bool touches(scope where) const noexcept {
    return !changes().share(where).empty();
  }

  /// Returns true if the owner of `where` may refuse the event. It refuses only
  /// typed operations, and plain writes that must not overwrite unseen changes.
  bool may_be_refused_by(scope where) const noexcept {
    return std::ranges::any_of(changes().share(where), is_typed)
           || (basis && basis->may_refuse(where));
  }

  /// Judges the share of one owner, as `scope_state::judge` does.
  result<void> judge(scope where,
                     scope_state& state,
                     bool undecided,
                     const size_limits& limits) {
    if (basis)
      if (auto based = basis->compare(where, changes(), state.judged_keys());
          !based)
        return based;
    return state.judge(changes().share(where), resolved, undecided, limits);
  }

  /// Takes back all judgements, so that the letter can be judged again.
  void reset() {
    resolved.clear();
    if (basis)
      basis->take_back();
    joined = false;
    if (claims)
      claims->is_over = false;
    place.take_back();
  }

  /// Also marks the places of its retries in their writers' orders as refused.
  void refuse(error why) override;

  /// Gives back the capacity that the letter was counted in.
  void release();

  /// The event as it was appended.
  event_ptr event;
  /// The same event if only this letter holds it, so that it can be changed in
  /// place; else null.
  std::shared_ptr<troupe::event> own;
  std::optional<std::uint64_t> expected_revision;
  /// Outcomes of the typed operations, filled in by the owners that judge them.
  std::vector<resolution> resolved;
  /// The reads that plain writes of the event are based on; null for events
  /// from outside of runs, and for most others.
  std::unique_ptr<basis_check> basis;
  /// Revisions of user and app that the event makes there, if it touches them.
  std::uint64_t user_revision = 0;
  std::uint64_t app_revision = 0;
  std::size_t bytes = 0;
  /// The session that counts the letter; null before.
  ref<session_actor> admitted_by;
  /// The runtime's gate, while only the runtime counts the letter: on the way
  /// to a session that has to be loaded.
  load_gate* admitted_to = nullptr;
  /// The invocation that waits for the answer; null if a caller waits.
  ref<inbox_actor> reply_to;
  /// Set if the event is a rewind: the id of the newest event that it was made
  /// from. A revision alone may mean other events, if a store lost some.
  std::unique_ptr<const std::string> rewound_from;
  /// True if the event is the message of a run, which has `rights`, or claims a
  /// run.
  bool starts_run = false;
  answer_rights rights;
  /// Set if the event claims a run.
  std::unique_ptr<run_claim> claims;
  /// The run that the event opens in the store; null: none.
  std::unique_ptr<const run_mark> mark;
  /// The event of an agent that this letter carries; null for the message of a
  /// run and the release of its claim.
  emit_request* request = nullptr;
  lane_actor* lane = nullptr;
  /// Retries of the same event; they get the same answer.
  letter_list followers;
  /// True if the runtime made the event's id: no earlier event has it.
  bool makes_id = false;
  /// True for a retry: another letter appends the event, or has done so.
  bool joined = false;
  /// True if the letter is refused since the run of its message may not open,
  /// or since its history has to be read. The run stays active in its session.
  bool is_kept_out = false;
  /// True if the message is refused because another run has claimed the pause
  /// that it answers.
  bool is_pause_taken = false;
  /// The place in the order of the writer that sent the letter, if one has.
  write_place place;
  /// Number of the event in its session; set when it is decided.
  std::uint64_t number = 0;
  /// For the message of a run: first event of the runs whose calls it answers,
  /// see `history_start::answered`.
  std::uint64_t answered_from = UINT64_MAX;
};

/// Creates a session. The delta of `event` is the initial state; `event` itself
/// is not stored.
struct create : append, look_up {
  static constexpr auto own_kind = letter_kind::create;

  create() : append(letter_kind::create) {}

  ~create() override;

  void complete() override;
  void fail(const error& why) override;

  void refuse(error why) override { created = std::move(why); }

  /// Events that the session is created with. All of them take effect, or none.
  std::vector<std::unique_ptr<append>> past;
  /// Set for a fork, which has these events before those of `past`.
  std::shared_ptr<forked_past> fork;
  result<session> created = error(errc::internal, "not answered");
  completion<session> created_done;
};

/// Events of one session that touch its user or app, in their order. Owners
/// with a climb under way do not end.
struct climb : letter_of<letter_kind::climb> {
  session_actor* from = nullptr; // The session; it waits for this letter.
  // The session owns the letters.
  boost::container::small_vector<append*, 4> events;
  /// Over a store: the commit of the batch. The widest owner pushes it where it
  /// decides; the session fills it when the climb is back.
  std::unique_ptr<commit> decided;
  bool touches_app = false;
  /// True if the batch creates a session with its past: one refused event then
  /// refuses all.
  bool all_or_nothing = false;
  /// An owner above could not be loaded; no event of the batch was judged.
  std::optional<error> failed;
  std::optional<error> last_refused;
  /// The app refused the last event, after the user had judged its share.
  bool refused_by_app = false;
  /// Set on the way down.
  scope_version user;
  scope_version app;
};

/// Climbs of one user that reach its app, in their order.
struct user_climb : letter_of<letter_kind::user_climb> {
  user_actor* from = nullptr;
  boost::container::small_vector<std::unique_ptr<climb>, 2> climbs;
  /// As in `climb`.
  std::optional<error> failed;
  scope_version app;
};

/// Carries a letter down to a session that may have to be loaded. Later letters
/// to the session take the same way until this one has arrived, so that they do
/// not overtake it.
struct forward : letter_of<letter_kind::forward, letter>, look_up {
  explicit forward(session_directory& counted) : directory(counted) {}

  ~forward() override;

  void fail(const error& why) override { held->fail(why); }

  session_directory& directory; // Outlives all letters.
  letter_ptr held;
};

/// A trim to a revision, unless another event than this one made it.
struct wanted_trim {
  std::uint64_t to = 0;
  std::string event_id;
};

struct get : letter_of<letter_kind::get, call_for<session>>, look_up {
  void complete() override;

  get_options options;
  /// Set if a fork of the session is to be made: a session without a store
  /// shares its past here.
  std::shared_ptr<forked_past> fork;
  /// Also renews the view of the session's runs.
  bool refresh = false;
  /// Set: the session's runs are cancelled for this reason, also those that
  /// wait for their turn. The session answers when it has none.
  std::shared_ptr<const error> ends_runs;
  /// Trims a session without a store.
  std::optional<wanted_trim> trim;
  pending_view renewed;
};

/// Collects the parts of one `list`.
class list_gather;

struct list : letter_of<letter_kind::list, letter> {
  explicit list(std::shared_ptr<list_gather> into);
  ~list() override;

  void fail(const error& why) override;

  std::shared_ptr<list_gather> gather;
  std::optional<std::string> only_user;
  /// The session whose row this part adds; unset before the user has sent the
  /// parts.
  std::optional<std::string> session;
  scope_version app;
  scope_version user;
};

/// Lists the users of an app by name. Used without a store only.
struct list_users
  : letter_of<letter_kind::list_users, call_for<std::vector<std::string>>> {
  list_users() { outcome = std::vector<std::string>(); }

  std::size_t limit = 0;
  std::string behind;
};

/// The keys of an app or a user, and its revision.
struct scope_keys {
  state_map keys;
  std::uint64_t revision = 0;
};

/// Reads the keys of a user, or of the app if `user` is unset.
struct read_state : letter_of<letter_kind::read_state, call_for<scope_keys>> {
  std::optional<std::string> user;
};

/// Writes keys of a user, or of the app if `user` is unset, without an event.
/// Enters at the app, and is decided by the owner of the keys, in its order.
struct write_state
  : letter_of<letter_kind::write_state, call_for<shared_write>> {
  ~write_state() override { release(); }

  void complete() override;
  void fail(const error& why) override;

  /// Gives back the capacity that the letter was counted in.
  void release();

  std::optional<std::string> user;
  /// The operations, as they were sent.
  delta changes;
  /// Erases all keys in place of `changes`, and forgets the remembered writes.
  bool clears = false;
  timestamp time{};
  /// Empty: the write is not remembered.
  std::string id;
  /// `fingerprint` of `changes`; empty without an id.
  std::string operations;
  std::optional<std::uint64_t> expected_revision;
  std::size_t bytes = 0;
  /// The runtime's gate, while it counts the letter.
  load_gate* admitted_to = nullptr;
};

/// Removes a child of an owner. The child ends, and sends the letter back.
template <letter_kind Kind>
struct removal : letter_of<Kind, call_for<bool>> {
  std::string user;
  /// True if the child has the letter or has handled it.
  bool done_by_child = false;
  /// True if the child's actor has ended.
  bool gone = false;
};

/// Removes a session.
struct remove : removal<letter_kind::remove> {
  std::string id;
  remove_options options;

  void fail(const error& why) override {
    while (!left.empty())
      left.pop_front()->fail(why);
    call_for::fail(why);
  }

  /// Letters that were queued after the removal of a session over a store.
  /// Another process may have created the session again, so a new actor handles
  /// them.
  letter_list left;
  /// The owner record of a session that does not exist, or has another
  /// revision than expected. The answer is confirmed against it.
  std::shared_ptr<live_owner> live;
  std::uint64_t generation = 0;
  /// The session is removed as a part of its user's removal.
  bool for_user_removal = false;
};

struct remove_user : removal<letter_kind::remove_user> {};

/// The state of a child without an actor. Its parent keeps it.
struct idle_child {
  virtual ~idle_child() = default;
};

/// Steps by which an owner leaves memory. Only the parent may grant it, and
/// holds back letters from above meanwhile.
struct retire : letter_of<letter_kind::retire, letter> {
  enum class step : std::uint8_t {
    // To the child: it has been idle for long, or memory is short.
    suggested,
    // To the parent: the child is idle and wants to leave.
    asked,
    // To the child: the parent sends no more letters.
    granted,
    // To the child: stay, a letter is on its way.
    kept,
    gone,   // to the parent: the child has left
    stayed, // to the parent: the child stays, it has work
  };

  retire(step now, std::string whose) : at(now), child(std::move(whose)) {}

  void fail(const error& why) override {
    while (!left.empty())
      left.pop_front()->fail(why);
  }

  const step at;
  const std::string child;
  /// True if it is suggested because too many owners are in memory, and not
  /// because of age.
  bool at_once = false;
  /// With `gone`: letters that the child did not handle. Its successor handles
  /// them.
  letter_list left;
  /// With `gone`: the child is a session that exists.
  bool existed = false;
  /// With `gone`: the state of the child, if the parent keeps it.
  std::unique_ptr<idle_child> idle;
};

struct shut_down : letter_of<letter_kind::shut_down> {};

} // namespace troupe::actors
