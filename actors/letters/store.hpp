// Letters between the owners and the queue to the store.

#pragma once

#include "troupe/actors/engine/ref.hpp"
#include "troupe/actors/letters/call.hpp"
#include "troupe/actors/letters/dispatch.hpp"
#include "troupe/actors/letters/view.hpp"
#include "troupe/actors/parts/id_filter.hpp"
#include "troupe/actors/parts/savepoint.hpp"
#include "troupe/agents/turns/history_search.hpp"
#include "troupe/core/session.hpp"
#include "troupe/stores/store.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::detail {
class run_control;
}

namespace troupe::actors {

class inbox_actor;

/// An owner in memory, as the store's queue knows it. `name` never changes. The
/// owner sets `actor` before its first load, and the queue clears it after
/// `leave`. Only the queue's writer uses the other members.
struct live_owner {
  owner_name name;
  ref<inbox_actor> actor;
  /// The owner's memory differs from the store. No change or answer that is
  /// based on it leaves the queue until the owner has loaded again.
  bool stale = false;
  /// Its stored state may differ from that after the last commit of the owner
  /// that was written.
  bool has_moved = false;
  /// Number of times that the owner became stale.
  std::uint64_t generation = 0;
};

/// The owners that one change touches: session, user, app. Null means that the
/// change does not touch that owner.
using live_owners = std::array<std::shared_ptr<live_owner>, 3>;

/// Loads the state of `owner`. The same letter goes back to it as the answer;
/// the queue answers every load.
struct load : letter_of<letter_kind::load> {
  std::shared_ptr<live_owner> owner;
  load_options options;
  /// Sessions only: number of the oldest event to load, in addition to the
  /// newest ones that `options` asks for. UINT64_MAX: no others.
  std::uint64_t events_from = UINT64_MAX;
  /// The owner can go back in place of a read.
  bool can_go_back = false;
  /// The answer: nothing was read, since the owner has not moved.
  bool goes_back = false;
  std::uint64_t generation = 0;
  /// For an app or a user; unset if the store has no such owner.
  result<std::optional<stored_scope>> scope = std::nullopt;
  result<std::optional<stored_session>> session = std::nullopt;
};

/// Tells an owner that it is stale.
struct reload : letter_of<letter_kind::reload> {
  explicit reload(bool is_needed_ = false) : is_needed(is_needed_) {}

  /// True if a commit that the owner took part in is decided again. The owner
  /// then loads at once, as the session that decides may send it no letter.
  bool is_needed;
};

/// Tells the queue that an owner has left memory.
struct leave : letter_of<letter_kind::leave> {
  std::shared_ptr<live_owner> owner;
};

/// Reads events of a session that are not in memory.
struct read_events : letter_of<letter_kind::read_events> {
  std::shared_ptr<live_owner> owner;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  /// Number of the first event that the session has; a search ends there.
  std::uint64_t oldest = 1;
  result<std::vector<event_ptr>> events = std::vector<event_ptr>();
  /// This is the second attempt. The first one found too few events, possibly
  /// because another process had removed the session.
  bool is_second = false;
  /// If set, the store is searched from event `last` back, page by page, for
  /// the event where a run starts to read. The search stops when the run of
  /// `control` has left. `events` stays empty.
  std::optional<history_search> search;
  /// If `keeps_passed` is set, for a recovery, the search keeps the events that
  /// it reads, at most the newest 16,384 of them. They are in `passed`, newest
  /// first, beginning with event number `asked`.
  std::vector<event_ptr> passed = {};
  std::uint64_t asked = 0;
  bool keeps_passed = false;
  std::shared_ptr<const detail::run_control> control;
  /// The session's `cuts` when it asked. If `cuts` has changed, the session
  /// ignores the answer.
  std::uint64_t cuts = 0;
};

/// Finds events that are not in memory by their ids.
struct find_events : letter_of<letter_kind::find_events> {
  std::shared_ptr<live_owner> owner;
  /// The session's count of loads when it asked. The session ignores the answer
  /// after a later load.
  std::uint64_t load = 0;
  /// The session's revision when it asked; the answer covers all events up to
  /// it.
  std::uint64_t revision = 0;
  std::vector<std::string> ids;
  /// One for each of `ids`; null if no event has the id.
  result<std::vector<event_ptr>> events = std::vector<event_ptr>();
  /// Also asks for a filter of all ids of the session.
  bool wants_filter = false;
  /// Null if the store did not answer.
  std::unique_ptr<id_filter> filter;
};

/// The answer to a `get` that the session sent itself, to see the newest state
/// of user and app.
struct view_refresh : letter_of<letter_kind::view_refresh> {
  std::uint64_t number = 0;
  result<session> seen = error(errc::internal, "the view was not refreshed");
};

/// Changes that an owner has decided, in its order, with the letters to answer
/// once they are durable.
struct commit : letter_of<letter_kind::commit, letter> {
  void fail(const error& why) override;

  enum class verdict : std::uint8_t {
    durable,
    // Nothing was written, because the commit was based on stale owners.
    again,
    failed, // the outcome is unknown
  };

  /// The session, user or app that waits for the answer.
  std::shared_ptr<live_owner> from;
  live_owners owners;
  std::vector<store_change> changes;
  letter_list letters;
  /// At least one letter is refused. The refusal may be due to stale owners, so
  /// the queue confirms it.
  bool refuses = false;
  /// The commit may be written. Set under the queue's lock, as the last step.
  bool filled = false;
  /// The session's revision with these changes; 0 if they are not a session's,
  /// and for refusals alone.
  std::uint64_t revision = 0;
  /// Memory of the session before these changes; null if it was not kept.
  std::unique_ptr<savepoint> before;
  /// The view for the session's runs, and the wider owners whose versions the
  /// view or a created session shows.
  pending_view view;
  std::shared_ptr<live_owner> seen_user;
  std::shared_ptr<live_owner> seen_app;
  verdict outcome = verdict::durable;
  /// The refusals may be due to stale owners: decide them again.
  bool refuses_again = false;
  /// Runs that the changes were to open, and that another process' run keeps
  /// out. The outcome is then `again`.
  std::vector<kept_out_run> kept_out;
  /// The view shows stale state: the runs need a newer one.
  bool view_is_stale = false;
  error why{errc::internal, ""};
};

/// Asks the store for changes of other processes.
struct look : letter_of<letter_kind::look> {};

/// Tells that the store has answered a read of a session with `errc::gone`. If
/// the session is in memory, it loads again.
struct outdated : letter_of<letter_kind::outdated> {
  owner_name owner;
};

/// Deletes old events of a session, which need not be in memory. The letter
/// passes the queue without the session's owner, whose decisions do not depend
/// on these events. An owner in memory then loads again. The answer is false if
/// the session is not there, or is another one by now.
struct trim : letter_of<letter_kind::trim, call_for<bool>> {
  store_change change;
  /// `store_queue::losses` before the session was read.
  std::uint64_t losses = 0;
};

/// Closes a run in the store. It is written with the next group of commits, and
/// has no answer: the end of a run does not wait for the disk.
struct close_run : letter_of<letter_kind::close_run> {
  store_change change;
  /// No effect if this process executes the run when the letter is taken.
  bool is_restored = false;
};

/// Closes a run of a process that has ended, by a commit of its own. The answer
/// comes when the store has closed it, or found that it has another holder.
struct give_up_run : letter_of<letter_kind::give_up_run, call_for<bool>> {
  store_change change;
};

/// A sign of life of this process, which has open runs in the store.
struct renew : letter_of<letter_kind::renew> {};

/// Holds an answer until the commits that it is based on are durable. If its
/// owners have become stale by then, `held` goes to `app` again and is computed
/// anew.
struct confirm : letter_of<letter_kind::confirm, letter> {
  void fail(const error& why) override { held->fail(why); }

  live_owners owners;
  /// Generations of the versions that the answer shows.
  std::array<std::uint64_t, 3> generations{};
  /// Receives `held` if the answer is stale.
  ref<inbox_actor> app;
  std::unique_ptr<call> held;
};

} // namespace troupe::actors
