// The writes of the store's queue: one group of commits and answers at a time,
// by the thread that is the writer.
//
// Invariants:
// - No commit is written, and no answer given, that is based on a stale owner.
// - An owner becomes stale when a commit of it fails or is not written, or when
//   the store reports that another process changed it. It is fresh again when
//   its next load passes the queue, after all that it had decided.
// - Databases of one store fail alone: an error, a moved owner and lost commits
//   of one concern the apps in it.

#include "troupe/actors/engine/inbox_actor.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/parts/guarded.hpp"
#include "troupe/actors/setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_set>
#include <utility>

namespace troupe::actors {

namespace {

// Returns true if `left` leaves a run that one of the changes opens.
bool is_taken_up(const store_change& left,
                 std::span<const store_change> changes) {
  const auto& mark = left.runs.front();
  return mark.opens
         && std::ranges::any_of(changes, [&](const store_change& change) {
              return change.owner == left.owner
                     && std::ranges::any_of(
                       change.runs, [&](const run_mark& opened) {
                         return opened.opens
                                && opened.invocation_id == mark.invocation_id;
                       });
            });
}

// Returns true if the version that an owner sent down has become stale since.
bool is_behind(const live_owner& owner, std::uint64_t generation) noexcept {
  return owner.stale || owner.generation != generation;
}

// Returns true if the commit contains only refusals, and wider owners took part
// in them.
bool is_refusal(const commit& decided) noexcept {
  return decided.refuses && decided.changes.empty()
         && (decided.owners[1] || decided.owners[2]);
}

} // namespace

// The order between kinds does not matter within a group: an owner that loads
// has no commit under way, and an answer or a read may show more than the
// commits before it.
void store_queue::handle(group& next) {
  if (next.renews)
    renew_holder();
  // First check for changes of other processes: state that they changed must be
  // stale before anything based on it is written or answered.
  if (!next.commits.empty() || !next.confirms.empty() || !next.reads.empty()
      || next.looks || next.renews)
    refuse_unwritten(next, check_other_processes(next));
  for (const auto& owner : next.outdated_owners)
    if (const auto found = live_.find(owner); found != live_.end())
      make_stale(found->second);
  take_closed_runs(std::move(next.closed_runs), std::move(next.restored_runs));
  forget_holders(next.dead_holders);
  const bool has_written = write(next.commits);
  count_done(next);
  // Others may have written between the first check and the commit. Answers and
  // refusals next to the commit must be as new as the commit itself, so check
  // again.
  unseen_parts unseen(parts_.count());
  if (has_written
      && (shows_others(next)
          || std::ranges::any_of(next.commits, [](const auto& settled) {
               return is_refusal(*settled);
             }))) {
    const auto losses = part_losses_;
    unseen = check_other_processes(next);
    if (part_losses_ != losses)
      fail_written(next, losses);
  }
  refuse_again(next, unseen);
  // Answered in the order of decision, whatever the outcome.
  for (auto& settled : next.commits) {
    settled->view_is_stale
      = settled->seen_user
        && (unseen[parts_.of(settled->from->name.app)]
            || is_behind(*settled->seen_user, settled->view.user_generation)
            || is_behind(*settled->seen_app, settled->view.app_generation));
    const auto from = settled->from->actor;
    from->tell(std::move(settled));
  }
  for (auto& held : next.confirms)
    if (held)
      answer(std::move(held));
  for (auto& wanted : next.trims)
    write(std::move(wanted));
  for (auto& wanted : next.given_up)
    write(std::move(wanted));
  for (auto& wanted : next.loads)
    start(std::move(wanted));
  for (auto& wanted : next.reads)
    if (wanted)
      start(std::move(wanted));
  for (auto& wanted : next.finds)
    start(std::move(wanted));
  for (const auto& left : next.leaves) {
    if (const auto found = live_.find(left->owner->name);
        found != live_.end() && found->second == left->owner)
      live_.erase(found);
    left->owner->actor = nullptr; // Actor and record hold each other.
  }
  if (!answered_.empty())
    complete_later(shared_, std::exchange(answered_, letter_list()));
}

// Counts admitted appends and writes only. Events of agents are not admitted,
// and letters that are decided again stay under way.
void store_queue::count_done(const group& settled) {
  settled_ = {.under_way = shared_.appends.held()};
  for (const auto& each : settled.commits) {
    if (each->outcome == commit::verdict::again) {
      settled_.is_decided_again = true;
      continue;
    }
    const auto& letters = each->letters;
    for (const auto* next = letters.empty() ? nullptr : &letters.front();
         next != nullptr;
         next = next->next) {
      const auto* const answered = as<append>(*next);
      const auto* const written = as<write_state>(*next);
      if (written == nullptr && (answered == nullptr || !answered->admitted_by))
        continue;
      ++settled_.done.count;
      settled_.done.bytes
        += written != nullptr ? written->bytes : answered->bytes;
    }
  }
}

// Fails commits that refuse something or have no changes. They may be based on
// stale owners, and no write will detect it.
void store_queue::refuse_unwritten(group& next, const unseen_parts& unseen) {
  if (std::ranges::none_of(unseen,
                           [](const auto& why) { return why.has_value(); }))
    return;
  for (const auto& each : next.commits) {
    const auto& why = unseen[parts_.of(each->from->name.app)];
    if (!why || (!each->refuses && !each->changes.empty()))
      continue;
    for (const auto& owner : each->owners)
      make_stale(owner);
    each->why = *why;
    each->outcome = commit::verdict::failed;
    each->refuses = false; // All letters fail; none is decided again.
  }
}

// Fails commits that were written but lost by the store before they were
// answered. Their owners load again, so a retry is decided on the stored state.
// `losses` are those of each database before.
void store_queue::fail_written(group& next,
                               const std::vector<std::uint64_t>& losses) {
  for (const auto& each : next.commits) {
    if (each->outcome != commit::verdict::durable || each->changes.empty())
      continue;
    const auto part = parts_.of(each->from->name.app);
    if (part_losses_[part] == losses[part])
      continue;
    each->why = error(errc::store_failed,
                      "the store has lost its last commits; it is not known "
                      "whether this change is among them: send it again");
    each->outcome = commit::verdict::failed;
  }
}

bool store_queue::shows_others(const group& next) {
  return !next.confirms.empty()
         || std::ranges::any_of(next.commits, [](const auto& settled) {
              return settled->seen_user != nullptr;
            });
}

// Marks refusals that are based on stale owners: the session decides them
// again, and with them its later refusals. A refusal is final if a commit of
// the same session is written with it or after it, since deciding it again
// would let that commit overtake it.
void store_queue::refuse_again(group& next, const unseen_parts& unseen) {
  // Most groups refuse nothing, and every commit passes here.
  if (std::ranges::none_of(next.commits, &commit::refuses))
    return;
  std::unordered_set<const live_owner*> written;
  std::vector<commit*> last; // Refusals after all that is written.
  for (auto at = next.commits.rbegin(); at != next.commits.rend(); ++at) {
    auto& settled = *at;
    const auto* session = settled->from.get();
    if (settled->outcome == commit::verdict::durable
        && !settled->changes.empty())
      written.insert(session);
    if (settled->refuses && !written.contains(session))
      last.push_back(settled.get());
  }
  for (auto at = last.rbegin(); at != last.rend(); ++at) {
    auto* settled = *at;
    // An earlier refusal may have made its session stale.
    settled->refuses_again
      = is_stale(settled->owners)
        || (unseen[parts_.of(settled->from->name.app)] && is_refusal(*settled));
    if (settled->refuses_again)
      load_stale(settled->owners);
  }
}

bool store_queue::is_stale(const live_owners& owners) const noexcept {
  return std::ranges::any_of(
    owners, [](const auto& owner) { return owner && owner->stale; });
}

void store_queue::make_stale(const std::shared_ptr<live_owner>& owner,
                             bool has_moved) {
  if (!owner)
    return;
  owner->has_moved = owner->has_moved || has_moved;
  if (owner->stale || !owner->actor)
    return;
  owner->stale = true;
  ++owner->generation;
  owner->actor->tell(std::make_unique<reload>());
}

// Makes all owners of a commit that is decided again load now. An owner that
// was stale before may have put its load off, and the others contain the
// commit.
void store_queue::load_stale(const live_owners& owners) {
  for (const auto& owner : owners) {
    make_stale(owner, false);
    if (owner && owner->actor)
      owner->actor->tell(std::make_unique<reload>(true));
  }
}

// Writes to one database after the other. Returns true if one was written.
bool store_queue::write(std::vector<std::unique_ptr<commit>>& commits) {
  bool has_written = false;
  std::vector<commit*> chosen;
  for (std::size_t part = 0; part < parts_.count(); ++part) {
    chosen.clear();
    for (const auto& each : commits)
      if (parts_.of(each->from->name.app) == part)
        chosen.push_back(each.get());
    has_written = write(part, chosen) || has_written;
  }
  return has_written;
}

// Writes all commits to one database that are not based on stale owners, and
// sets the outcome of each. A commit that is not written makes its other owners
// stale, too, since their memory contains it. Returns true if one was written.
bool store_queue::write(std::size_t part, const std::vector<commit*>& commits) {
  using verdict = commit::verdict;
  std::vector<store_change> changes;
  std::vector<commit*> written;
  bool closes = true;
  while (true) {
    changes.clear();
    written.clear();
    // A later commit may make an owner of an earlier one stale. All commits of
    // that session are then decided again, in order.
    for (bool found = true; std::exchange(found, false);)
      for (auto* each : commits) {
        if (each->outcome != verdict::durable || !is_stale(each->owners))
          continue;
        load_stale(each->owners);
        each->outcome = verdict::again;
        found = true;
      }
    for (auto* each : commits) {
      if (each->outcome != verdict::durable || each->changes.empty())
        continue;
      std::ranges::move(each->changes, std::back_inserter(changes));
      written.push_back(each);
    }
    const auto closed = closes ? add_closed_runs(part, changes) : 0;
    if (changes.empty())
      return false;
    auto outcome = guarded([&] { return parts_.at(part).commit(changes); });
    const bool has_lost = leave_lost_history(part);
    if (outcome && outcome->moved.empty() && outcome->kept_out.empty()) {
      const auto count = changes.size() - closed;
      keep_taken_up({changes.data(), count});
      if (shared_.on_commit && count > 0)
        shared_.on_commit(count);
      // After a loss the runs may be open again: closed twice does no harm.
      if (closed > 0 && !has_lost)
        forget_closed_runs(part);
      return !written.empty();
    }
    if (written.empty())
      return false; // The next group closes the runs.
    closes = closes && outcome;
    auto next = changes.begin();
    for (auto* each : written)
      for (auto& change : each->changes)
        change = std::move(*next++);
    bool found = has_lost;
    if (outcome)
      for (auto* each : written) {
        found = fail_forks(*each, written, outcome->moved) || found;
        if (keep_out(*each, outcome->kept_out)) {
          // The session's memory has the event that starts the run.
          make_stale(each->from);
          found = true;
        }
      }
    for (const auto* each : written)
      for (const auto& owner : each->owners)
        if (owner
            && (!outcome
                || std::ranges::find(outcome->moved, owner->name)
                     != outcome->moved.end())) {
          make_stale(owner);
          found = true;
        }
    if (outcome && !found)
      outcome = error(errc::internal,
                      "the store reports a moved scope that the commit "
                      "does not touch, or a run that it does not open");
    if (outcome)
      continue;
    for (auto* each : written) {
      for (const auto& owner : each->owners)
        make_stale(owner);
      each->why = parts_.named(error(outcome.error().code() == errc::corrupt
                                       ? errc::corrupt
                                       : errc::store_failed,
                                     outcome.error().message()),
                               part);
      each->outcome = verdict::failed;
    }
  }
}

// Runs that were closed or left are kept until a commit has written that. They
// are last in it, so a run that the same commit opens and closes ends closed.
void store_queue::take_closed_runs(std::vector<store_change> closed,
                                   std::vector<store_change> restored) {
  std::ranges::move(closed, std::back_inserter(closed_runs_));
  for (auto& each : restored)
    if (is_executed(each))
      --open_runs_;
    else
      closed_runs_.push_back(std::move(each));
  while (closed_runs_.size() > closed_runs_max) {
    {
      const std::lock_guard guard(mutex_);
      forget_closing(closed_runs_.front());
    }
    closed_runs_.pop_front();
    --open_runs_;
  }
}

// Also true for a run that has just ended, whose close may be behind the leave,
// and during the end of the runtime, which may end runs or leave them. In this
// order: a run tells the queue of its end first, and the backend forgets its
// runs after `closing` is set.
bool store_queue::is_executed(const store_change& left) {
  const auto& id = left.runs.front().invocation_id;
  const auto& of = left.owner;
  return shared_.has_run(id) || is_closing({of.app, of.user, of.session}, id)
         || shared_.closing;
}

// Drops the queued leaves of runs that this process has recovered since.
void store_queue::keep_taken_up(std::span<const store_change> changes) {
  if (!closed_runs_.empty())
    open_runs_ -= std::erase_if(closed_runs_, [&](const store_change& each) {
      return is_taken_up(each, changes);
    });
}

// Adds the runs to close in one database, and returns their number. A run that
// the changes open is not left by the same commit.
std::size_t
store_queue::add_closed_runs(std::size_t part,
                             std::vector<store_change>& changes) const {
  const auto before = changes.size();
  for (const auto& each : closed_runs_)
    if (parts_.of(each.owner.app) == part
        && !is_taken_up(each, {changes.data(), before}))
      changes.push_back(each);
  return changes.size() - before;
}

// The holder of a left run is no process, so the store need not wait for its
// silence.
void store_queue::forget_closed_runs(std::size_t part) {
  std::set<std::string> left;
  {
    const std::lock_guard guard(mutex_);
    open_runs_ -= std::erase_if(closed_runs_, [&](const store_change& each) {
      const bool is_here = parts_.of(each.owner.app) == part;
      if (is_here) {
        forget_closing(each);
        for (const auto& mark : each.runs)
          if (mark.opens)
            left.insert(mark.holder);
      }
      return is_here;
    });
  }
  for (const auto& holder : left)
    static_cast<void>(
      guarded([&] { return parts_.at(part).remove_holder(holder); }));
}

void store_queue::forget_closing(const store_change& closed) {
  for (const auto& mark : closed.runs)
    closing_.erase({closed.owner, mark.invocation_id});
}

// After a failure, the next renewal comes before the lease ends.
void store_queue::renew_holder() {
  static_cast<void>(
    guarded([this] { return store_->renew_holder(shared_.holder_id); }));
}

// A holder that has died never opens a run again.
void store_queue::forget_holders(const std::set<std::string>& died) {
  for (const auto& holder : died)
    static_cast<void>(guarded([&] { return store_->remove_holder(holder); }));
}

// Writes the trim as a separate commit: trims are rare, and no other change
// depends on them. A session in memory then loads again, because it still has
// the deleted events, or because another process has removed it.
void store_queue::write(std::unique_ptr<trim> wanted) {
  if (wanted->losses != losses_) {
    wanted->outcome = false;
    answered_.push_back(std::move(wanted));
    return;
  }
  auto outcome = guarded([&] { return store_->commit({&wanted->change, 1}); });
  leave_lost_history(parts_.of(wanted->change.owner.app));
  if (const auto found = live_.find(wanted->change.owner); found != live_.end())
    make_stale(found->second);
  if (outcome)
    wanted->outcome = outcome->moved.empty();
  else
    wanted->outcome = outcome.error();
  if (shared_.on_commit && outcome && outcome->moved.empty())
    shared_.on_commit(1);
  answered_.push_back(std::move(wanted));
}

// Written as a separate commit, so that a failure is known. Nothing moves.
void store_queue::write(std::unique_ptr<give_up_run> wanted) {
  auto outcome = guarded([&] { return store_->commit({&wanted->change, 1}); });
  leave_lost_history(parts_.of(wanted->change.owner.app));
  if (outcome)
    wanted->outcome = outcome->moved.empty();
  else
    wanted->outcome = outcome.error();
  answered_.push_back(std::move(wanted));
}

// Fails a commit that creates a fork of a session that has moved, and returns
// true then. The parent takes no part in the commit: its shared events were
// durable when it was asked. A parent with a commit of its own beside the fork
// may have moved for that one alone; the next try tells.
bool store_queue::fail_forks(commit& decided,
                             const std::vector<commit*>& written,
                             const std::vector<owner_name>& moved) {
  for (const auto& change : decided.changes) {
    if (!change.past)
      continue;
    const owner_name parent{
      change.owner.app, change.owner.user, change.past->session};
    if (std::ranges::find(moved, parent) == moved.end())
      continue;
    // A fork may have the name of its parent, which was removed before.
    if (change.owner != parent
        && std::ranges::any_of(written, [&parent](const commit* other) {
             return other->from->name == parent;
           }))
      continue;
    decided.why = error(
      errc::not_found,
      fmt::format("session {}, which was to be forked, has been removed, or "
                  "has lost its revision {}",
                  to_string(parent),
                  change.past->revision));
    decided.outcome = commit::verdict::failed;
    for (const auto& owner : decided.owners)
      make_stale(owner);
    return true;
  }
  return false;
}

// Notes the runs of a commit that are kept out, and returns true if there are
// any. The session is decided again without them.
bool store_queue::keep_out(commit& decided,
                           const std::vector<kept_out_run>& found) {
  for (const auto& each : found)
    for (const auto& change : decided.changes)
      if (change.owner == each.session
          && std::ranges::find(
               change.runs, each.invocation_id, &run_mark::invocation_id)
               != change.runs.end())
        decided.kept_out.push_back(each);
  return !decided.kept_out.empty();
}

// Returns the database of an answer. All owners of an answer are of one app.
std::size_t store_queue::part_of(const confirm& held) const {
  for (const auto& owner : held.owners)
    if (owner)
      return parts_.of(owner->name.app);
  return 0; // It shows no owner.
}

// Returns the databases that the letters concern, or nothing for all: a
// database that is down does not delay letters of others. A look concerns all,
// and so does a renewal: a loss may have opened runs that had ended.
std::vector<bool> store_queue::parts_of(const group& next) const {
  if (next.looks || next.renews || parts_.count() == 1)
    return {};
  std::vector<bool> parts(parts_.count());
  for (const auto& each : next.commits)
    parts[parts_.of(each->from->name.app)] = true;
  for (const auto& held : next.confirms)
    if (held)
      parts[part_of(*held)] = true;
  for (const auto& wanted : next.reads)
    if (wanted)
      parts[parts_.of(wanted->owner->name.app)] = true;
  return parts;
}

// Makes owners that other processes changed stale, before anything that is
// based on them is written or answered. Comparing revisions in the store is not
// enough: a scope that was removed and made again may have reached the same
// revision. After a failure, no answer of an app in that database is confirmed.
store_queue::unseen_parts store_queue::check_other_processes(group& next) {
  unseen_parts unseen(parts_.count());
  const auto concerned = parts_of(next);
  bool is_whole = true;
  for (std::size_t part = 0; part < parts_.count(); ++part) {
    if (!concerned.empty() && !concerned[part])
      continue;
    if (const auto seen = check_other_processes(part); !seen) {
      unseen[part] = parts_.named(seen.error(), part);
      is_whole = false;
    }
  }
  if (!is_whole)
    refuse_unseen(next, unseen);
  return unseen;
}

// Looks at one database.
result<void> store_queue::check_other_processes(std::size_t part) {
  const auto moved
    = guarded([this, part] { return parts_.at(part).changed_elsewhere(); });
  leave_lost_history(part);
  if (!moved)
    return moved.error();
  if (!moved->empty())
    has_rivals_ = true;
  for (const auto& each : *moved) {
    if (parts_.of(each.owner.app) != part)
      continue; // The app is kept in another database.
    // Noted before the owner is stale: readers that it serves after its load
    // are told of the removal.
    if (!each.revision)
      shared_.removals.note(each.owner);
    if (const auto found = live_.find(each.owner); found != live_.end())
      make_stale(found->second);
  }
  return {};
}

// Fails answers, and reads that need to know of a removal.
void store_queue::refuse_unseen(group& next, const unseen_parts& unseen) {
  for (auto& held : next.confirms) {
    if (!held)
      continue;
    const auto& why = unseen[part_of(*held)];
    if (!why)
      continue;
    held->held->refuse(*why);
    answered_.push_back(std::move(held->held));
    held.reset();
  }
  for (auto& wanted : next.reads) {
    if (!wanted || !wanted->is_second || !wanted->owner->actor)
      continue;
    const auto& why = unseen[parts_.of(wanted->owner->name.app)];
    if (!why)
      continue;
    const auto actor = wanted->owner->actor;
    wanted->events = *why;
    actor->tell(std::move(wanted));
  }
}

// Makes all owners in a database stale if it has lost commits, so that
// unanswered work is decided on the stored state. Returns true if it has.
bool store_queue::leave_lost_history(std::size_t part) {
  const auto lost
    = guarded([this, part]() -> result<std::optional<lost_history>> {
        return parts_.at(part).take_lost_history();
      });
  if (lost && !*lost)
    return false;
  ++losses_;
  ++part_losses_[part];
  for (const auto& [name, owner] : live_)
    if (parts_.of(name.app) == part)
      make_stale(owner);
  leave_restored_runs(part);
  if (shared_.on_warning) {
    const error told(errc::store_failed,
                     lost ? (*lost)->warning : lost.error().message());
    shared_.on_warning(parts_.named(told, part).message());
  }
  return true;
}

void store_queue::answer(std::unique_ptr<confirm> held) {
  for (std::size_t index = 0; index < held->owners.size(); ++index)
    if (held->owners[index]
        && is_behind(*held->owners[index], held->generations[index]))
      return held->app->tell(std::move(held->held));
  answered_.push_back(std::move(held->held));
}

} // namespace troupe::actors
