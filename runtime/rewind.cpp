// Rewinds a session: reads it as it is and as it was, and appends the event
// that leads from one to the other.
//
// Invariant: the event is appended only to the revision that it was made from.
// So its delta and the number of events that it takes back are exact.

#include "troupe/runtime/rewind.hpp"

#include "troupe/actors/artifact_versions.hpp"
#include "troupe/actors/backend.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/stepwise_call.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/core/rewind.hpp"
#include "troupe/core/session_diff.hpp"
#include "troupe/core/support/artifact_place.hpp"
#include "troupe/core/support/compensation.hpp"
#include "troupe/runtime/session_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace troupe {

namespace {

using backend_ptr = std::shared_ptr<detail::session_backend>;

// Attempts while other callers append to the session.
constexpr int attempts_max = 16;

// Number of events before the place among which cut runs are looked for.
constexpr std::size_t cut_runs_events = 256;

// Number of events that are read at a time.
constexpr std::uint64_t page_size = 1'024;

error no_run(const session_key& key, const std::string& run) {
  return {errc::not_found,
          fmt::format("session {} has no run '{}'", to_string(key), run)};
}

// Number of the first event of a run, among `newest` events.
task<result<std::uint64_t>> find_run(backend_ptr backend,
                                     session_key key,
                                     std::string run,
                                     std::uint64_t oldest,
                                     std::uint64_t newest) {
  const auto is_of_run
    = [&run](const event_ptr& said) { return said->invocation_id == run; };
  for (auto first = oldest; first <= newest; first += page_size) {
    const auto page = co_await actors::load_events(
      backend->share(), key, first, std::min(newest, first + page_size - 1));
    if (!page)
      co_return page.error();
    const auto found = std::ranges::find_if(*page, is_of_run);
    if (found != page->end())
      co_return first + static_cast<std::uint64_t>(found - page->begin());
  }
  co_return no_run(key, run);
}

// A rewind that is about to be appended.
struct rewind_plan {
  std::uint64_t revision = 0; // That it is appended to.
  std::uint64_t newest = 0;   // Revision of the session now.
  std::string newest_id;      // Of the event of that number.
  std::uint64_t to = 0;
  event change;
  event_ptr stored; // Set if the same rewind has taken effect before.
  // Set if the session has gone on while it was read.
  std::optional<error> overtaken;
  std::vector<std::string> kept_keys;
  std::vector<std::string> compensated_keys;
  std::vector<std::string> cut_runs;
};

using artifact_places = std::map<std::string, artifact_place>;

// By state key, the places of artifacts at the earlier revision. That may have
// been behind a rewind itself.
artifact_places places_of(const actors::artifact_versions& saved,
                          const session& past) {
  artifact_places places;
  for (const auto& [name, versions] : saved) {
    artifact_place place{versions.earlier, versions.newest};
    if (const auto earlier = artifact_place_of(past.state(), name))
      place.version = earlier->current(place.version);
    places.emplace(artifact_place_key(name), place);
  }
  return places;
}

// Records the session's earlier values. Keys of user and app are not restored.
result<void> restore(event& change,
                     const session& now,
                     const session& past,
                     const artifact_places& places) {
  for (const auto& [key, place] : places)
    if (auto recorded = change.actions.state_delta.record(
          key, operation_kind::set, to_json(place));
        !recorded)
      return recorded.error();
  for (auto& differing : diff(now, past).keys) {
    if (split_key(differing.key).where != scope::session
        || places.contains(differing.key))
      continue;
    const auto kind
      = differing.after ? operation_kind::set : operation_kind::erase;
    auto recorded = change.actions.state_delta.record(
      differing.key, kind, std::move(differing.after).value_or(json()));
    if (!recorded)
      return recorded.error();
  }
  return {};
}

std::vector<std::string> wide_keys_of(const event_slice& live) {
  std::set<std::string> keys;
  for (const auto& said : live)
    for (const auto where : {scope::user, scope::app})
      for (const auto& done : said->actions.state_delta.share(where))
        keys.insert(std::string(prefix_of(where)) + done.name);
  return {keys.begin(), keys.end()};
}

// Number of the newest event that a fork shares with its parent, if it is among
// these or directly before them; else 0.
std::uint64_t shared_with_parent(const event_slice& events) {
  for (auto index = events.size(); index > 0; --index) {
    const auto before = events.number(index - 1) - 1;
    if (forked_at(*events[index - 1]) == before)
      return before;
  }
  return 0;
}

// Returns a key whose operation in `one` differs from that in `other`, or is
// missing there; empty if there is none.
std::string differing_key(const delta& one, const delta& other) {
  for (const auto where : {scope::user, scope::app})
    for (const auto& done : one.share(where)) {
      const auto* const found = other.find_last(where, done.name);
      if (found == nullptr || *found != done)
        return join_key(where, done.name);
    }
  return {};
}

// The key whose compensation differs between two plans; empty if there is none.
std::string changed_key(const rewind_plan& before, const rewind_plan& now) {
  const auto& then = before.change.actions.state_delta;
  const auto& present = now.change.actions.state_delta;
  auto key = differing_key(present, then);
  return key.empty() ? differing_key(then, present) : key;
}

// Runs with live events on both sides of the place.
std::vector<std::string> cut_runs_of(const event_slice& before,
                                     const event_slice& behind) {
  std::set<std::string> begun;
  for (const auto& said : before)
    begun.insert(said->invocation_id);
  std::set<std::string> cut;
  for (const auto& said : behind)
    if (begun.contains(said->invocation_id))
      cut.insert(said->invocation_id);
  return {cut.begin(), cut.end()};
}

// Cancels the runs of a session, and answers when it has none.
pending<session> end_runs(const backend_ptr& backend, const session_key& key) {
  return actors::make_pending<session>(
    backend->shared(), [backend, key](completion<session> done) {
      auto wanted = actors::make_get(key, {.num_recent_events = 0});
      if (!wanted)
        return done(wanted.error());
      (*wanted)->ends_runs = std::make_shared<error>(
        errc::cancelled,
        fmt::format("session {} is rewound", to_string((*wanted)->key)));
      (*wanted)->done = std::move(done);
      actors::send_get(backend->shared(), std::move(*wanted));
    });
}

class rewind_call {
public:
  rewind_call(backend_ptr backend,
              session_key key,
              rewind_target target,
              const rewind_options& options)
    : backend_(std::move(backend)),
      sessions_(backend_),
      key_(std::move(key)),
      target_(std::move(target)),
      expected_(options.expected_revision),
      cancels_runs_(options.cancel_runs),
      compensates_(options.compensate) {}

  // A rewind that another append has overtaken is planned again, also one whose
  // compensation another session has overtaken. If neither has changed, the
  // reason is another one, such as an active run. Runs are cancelled only for a
  // rewind that could take effect without them.
  static task<result<rewound_session>> perform(rewind_call held) {
    std::optional<rewind_plan> tried;
    std::string raced; // Key that other sessions have changed meanwhile.
    auto failed = error(errc::internal, "no attempt was made");
    bool is_overtaken = false;
    bool has_cancelled = false;
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
      auto plan = co_await held.make_plan();
      if (!plan)
        co_return plan.error();
      if (plan->stored)
        co_return answer(std::move(*plan));
      if (plan->overtaken) {
        is_overtaken = true;
        failed = *plan->overtaken;
        if (held.expected_)
          break;
        tried = std::move(*plan);
        continue;
      }
      const bool is_same = tried && tried->revision == plan->revision;
      raced = is_same ? changed_key(*tried, *plan) : std::string();
      is_overtaken = has_cancelled || !is_same || !raced.empty();
      if (!is_overtaken)
        break;
      auto stored = co_await held.send(*plan);
      if (stored) {
        plan->stored = std::move(*stored);
        co_return answer(std::move(*plan));
      }
      failed = stored.error();
      const bool may_fit = !held.expected_ || plan->newest == held.expected_;
      tried = std::move(*plan);
      if (failed.code() != errc::conflict || !may_fit)
        break;
      if (!held.cancels_runs_)
        continue;
      const auto ended = co_await end_runs(held.backend_, held.key_);
      if (!ended)
        co_return ended.error();
      has_cancelled = true;
    }
    if (is_overtaken && failed.code() == errc::conflict && !raced.empty())
      co_return held.overtaken(raced, failed);
    if (is_overtaken && failed.code() == errc::conflict && !held.expected_)
      co_return held.overtaken();
    co_return failed;
  }

private:
  static rewound_session answer(rewind_plan plan) {
    return {std::move(plan.stored),
            plan.to,
            plan.revision + 1,
            std::move(plan.kept_keys),
            std::move(plan.compensated_keys),
            std::move(plan.cut_runs)};
  }

  // Everything is read as of one revision, which the append expects.
  task<result<rewind_plan>> make_plan() {
    rewind_plan plan;
    auto newest = co_await sessions_.get(key_, {.num_recent_events = 0});
    if (!newest)
      co_return newest.error();
    auto to = co_await find_place(*newest);
    if (!to && to.error().code() == errc::gone) {
      // A trim came first. The session loads again now.
      newest = co_await sessions_.get(key_, {.num_recent_events = 0});
      if (!newest)
        co_return newest.error();
      to = co_await find_place(*newest);
    }
    plan.newest = newest->revision();
    plan.revision = expected_.value_or(plan.newest);
    if (!to)
      co_return to.error();
    plan.to = *to;
    if (auto checked = check(plan, newest->revision()); !checked)
      co_return checked.error();
    const auto now = co_await sessions_.get(
      key_,
      {.num_recent_events = plan.revision - plan.to, .at = plan.revision});
    if (!now)
      co_return now.error();
    const auto past = co_await sessions_.get(
      key_, {.num_recent_events = cut_runs_events, .at = plan.to});
    if (!past)
      co_return past.error();
    if (now->events().empty()) {
      plan.overtaken = moved_on(plan); // It was trimmed meanwhile.
      co_return plan;
    }
    plan.newest_id = now->events().back()->id;
    const auto behind = now->events().live();
    if (!target_.revision() && behind.hides(plan.to + 1))
      co_return taken_back_already();
    plan.cut_runs = cut_runs_of(past->events().live(), behind);
    plan.change = make_change(plan);
    if (!compensates_) {
      plan.kept_keys = wide_keys_of(behind);
    } else {
      const auto compensated = co_await compensate(plan, *now);
      if (!compensated)
        co_return compensated.error();
      if (plan.stored || plan.overtaken)
        co_return plan;
    }
    auto saved = actors::saved_by(now->events());
    const auto found = co_await actors::find_earlier(
      backend_->share(), key_, past->first_revision(), plan.to, saved);
    if (!found)
      co_return found.error();
    if (backend_->shared().artifacts && !saved.empty()) {
      const auto noted
        = co_await actors::note_stored(backend_->share(), key_, saved);
      if (!noted)
        co_return noted.error();
    }
    if (auto restored
        = restore(plan.change, *now, *past, places_of(saved, *past));
        !restored)
      co_return restored.error();
    co_return plan;
  }

  // A rewind that was stored before has undone the operations already, so it is
  // found by its id and not planned again.
  task<result<bool>> compensate(rewind_plan& plan, const session& now) {
    const wide_changes behind(
      now.events(), plan.to, shared_with_parent(now.events()));
    if (plan.newest > plan.revision) {
      const auto next = co_await actors::load_events(
        backend_->share(), key_, plan.revision + 1, plan.revision + 1);
      if (!next)
        co_return next.error();
      const auto is_same = [&plan](const event_ptr& said) {
        return said->id == plan.change.id
               && taken_back_by(*said) == taken_back_by(plan.change);
      };
      if (!next->empty() && is_same(next->front()))
        plan.stored = next->front();
    }
    if (!plan.stored)
      if (auto undone = behind.undo(now.state(), plan.change); !undone) {
        // The state may be that of a later event than those that were read.
        if (!now.is_earlier())
          co_return undone.error();
        plan.overtaken = moved_on(plan);
        co_return true;
      }
    plan.kept_keys = behind.kept_keys();
    plan.compensated_keys
      = behind.undone_keys(plan.stored ? *plan.stored : plan.change);
    co_return true;
  }

  task<result<std::uint64_t>> find_place(session newest) {
    if (target_.revision())
      co_return *target_.revision();
    const auto first = co_await find_run(backend_,
                                         key_,
                                         target_.run(),
                                         newest.first_revision() + 1,
                                         newest.revision());
    if (!first)
      co_return first.error();
    co_return *first - 1;
  }

  result<void> check(const rewind_plan& plan, std::uint64_t newest) const {
    if (plan.revision > newest)
      return error(errc::conflict,
                   fmt::format("session {} is at revision {}, not {}",
                               to_string(key_),
                               newest,
                               plan.revision));
    if (plan.to > plan.revision)
      return detail::no_revision(key_, plan.to, plan.revision);
    if (plan.to == plan.revision)
      return error(errc::invalid_argument,
                   fmt::format("session {} is at revision {}: there is nothing "
                               "to take back",
                               to_string(key_),
                               plan.revision));
    return {};
  }

  error moved_on(const rewind_plan& plan) const {
    return {errc::conflict,
            fmt::format("session {} is not at revision {} any more",
                        to_string(key_),
                        plan.revision)};
  }

  error overtaken() const {
    return {errc::conflict,
            fmt::format("session {} was changed during each of {} attempts to "
                        "rewind it; stop its writers, or try again later",
                        to_string(key_),
                        attempts_max)};
  }

  error overtaken(const std::string& key, const error& newest) const {
    return {errc::conflict,
            fmt::format("the operations of session {} on '{}' were not undone "
                        "in {} attempts: others changed the key during the "
                        "last one; stop other writers of the key, try again "
                        "later, or rewind without compensate (the last "
                        "attempt: {})",
                        to_string(key_),
                        key,
                        attempts_max,
                        newest.message())};
  }

  error taken_back_already() const {
    return {errc::conflict,
            fmt::format("the run '{}' of session {} was taken back already; "
                        "rewind to a revision to go further back or forward",
                        target_.run(),
                        to_string(key_))};
  }

  // The id follows from the rewind, so one that is sent twice takes effect
  // once.
  event make_change(const rewind_plan& plan) const {
    event made;
    made.id = fmt::format("rewind-{}-{}-{}{}",
                          plan.revision,
                          target_.revision() ? "to" : "before-run-at",
                          plan.to,
                          compensates_ ? "-compensating" : "");
    made.author = "user";
    take_back(made, plan.revision - plan.to, target_.run());
    return made;
  }

  pending<event_ptr> send(const rewind_plan& plan) const {
    return actors::make_pending<event_ptr>(
      backend_->shared(),
      [backend = backend_,
       key = key_,
       change = plan.change,
       from = actors::rewind_basis{plan.revision, plan.newest_id}](
        completion<event_ptr> done) mutable {
        actors::append_rewind(backend->shared(),
                              key,
                              std::move(change),
                              std::move(from),
                              std::move(done));
      });
  }

  backend_ptr backend_;
  session_service sessions_;
  session_key key_;
  rewind_target target_;
  std::optional<std::uint64_t> expected_;
  bool cancels_runs_;
  bool compensates_;
};

} // namespace

pending<rewound_session> session_service::rewind(session_key key,
                                                 rewind_target target,
                                                 rewind_options options) {
  return actors::make_stepwise(rewind_call::perform(
    rewind_call(backend_, std::move(key), std::move(target), options)));
}

} // namespace troupe
