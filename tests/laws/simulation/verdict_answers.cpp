// Checks that each answer was true at some moment of its call.

#include "verdict.hpp"
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace troupe::testing {

namespace {

// Returns the keys of one scope of a merged view, without their prefix.
json part_of(const json& all, scope where) {
  auto part = json::object();
  for (const auto& [name, data] : all.items())
    if (const auto key = split_key(name); key.where == where)
      part[std::string(key.name)] = data;
  return part;
}

// The earlier revision that a call names, and the fork that it makes.
std::string shown_place(const call_record& call) {
  const auto& at
    = call.kind == call_kind::fork ? call.fork.how.at : call.wanted.at;
  return (at ? "@" + std::to_string(*at) : std::string())
         + (call.fork.id.empty() ? "" : " as " + call.fork.id);
}

bool has_ids(const event_slice& events, const std::vector<event_ptr>& model) {
  return std::ranges::equal(
    events, model, [](const event_ptr& one, const event_ptr& other) {
      return one->id == other->id;
    });
}

} // namespace

std::vector<std::string> verdict::judge() {
  judge_writers();
  for (const auto& call : told_.calls)
    judge(call);
  for (const auto& run : told_.runs)
    judge_run(run);
  judge_refused_writes();
  for (const auto& reader : told_.readers)
    judge(reader);
  judge_order();
  for (const auto& [invocation, what] : told_.complaints)
    if (const auto run
        = std::ranges::find(told_.runs, invocation, &run_record::invocation_id);
        run != told_.runs.end()
        && !was_removed(run->key, run->before, run->after)
        && !was_rewound(run->key, run->before, run->after)
        && !was_lost(run->before, run->after))
      find(what + ", run " + invocation);
  return findings_;
}

std::string verdict::name(const call_record& call) const {
  return std::string(to_string(call.kind)) + " " + call.event.id + call.write.id
         + " " + to_string(call.key) + shown_place(call) + " ("
         + std::to_string(call.before) + " to " + std::to_string(call.after)
         + ", " + call.code + ": " + call.reason + ")";
}

void verdict::judge(const call_record& call) {
  if (call.answers != 1)
    find("answered " + std::to_string(call.answers) + " times: " + name(call));
  // The answer reached no client.
  if (call.was_dead)
    return;
  if (call.code != "ok")
    return judge_refusal(call);
  switch (call.kind) {
  case call_kind::append:
    return judge_append(call);
  case call_kind::create:
    return judge_create(call);
  case call_kind::get:
    return judge_get(call);
  case call_kind::list:
    return judge_list(call);
  case call_kind::remove:
  case call_kind::remove_user:
    return judge_removal(call);
  case call_kind::write:
    return judge_write(call);
  case call_kind::rewind:
    return judge_rewind(call);
  case call_kind::fork:
    return judge_fork(call);
  case call_kind::user_state:
    if (!once(call, [&](std::size_t moment) {
          return at_[moment].get_user_state(call.key.app, call.key.user).value()
                 == call.state;
        }))
      find("shows a state that never existed: " + call.state.dump() + ", "
           + name(call));
    return;
  case call_kind::app_state:
    if (!once(call, [&](std::size_t moment) {
          return at_[moment].get_app_state(call.key.app).value() == call.state;
        }))
      find("shows a state that never existed: " + call.state.dump() + ", "
           + name(call));
    return;
  }
}

// -- refusals ----

bool verdict::is_model_refusing(const call_record& call,
                                std::size_t moment) const {
  auto model = at_[moment];
  const auto is_code = [&call](const auto& outcome) {
    return !outcome && to_string(outcome.error().code()) == call.code;
  };
  switch (call.kind) {
  case call_kind::append:
    return is_code(model.append(call.key, call.event, call.how));
  case call_kind::create:
    return is_code(model.create(call.created));
  case call_kind::get:
    return is_code(model.get(call.key, call.wanted));
  case call_kind::remove:
    return is_code(model.remove(call.key));
  case call_kind::write:
    return is_code(write_in(model, call));
  case call_kind::rewind:
    return is_rewind_refused(call, moment);
  case call_kind::fork:
    return is_fork_refused(call, moment);
  default:
    return false;
  }
}

void verdict::judge_refusal(const call_record& call) {
  const bool creates
    = call.kind == call_kind::create || call.kind == call_kind::fork;
  if (call.code == "cancelled") {
    if (!call.was_closing && !behind_failures_.contains(&call))
      find("cancelled for no reason: " + name(call));
    return;
  }
  if (call.code == "store_failed") {
    // The store must have failed. For a change, a loss before the answer also
    // explains the failure.
    if (call.faults_after == call.faults_before
        && (call.kind == call_kind::get || !was_lost(call.before, call.after))
        && (!creates
            || !is_being_removed(call.target(), call.before, call.after)))
      find("store_failed, but no store has failed: " + name(call));
    return;
  }
  if (call.code == "busy") {
    if ((call.kind != call_kind::append && call.kind != call_kind::write
         && call.kind != call_kind::rewind)
        || plan_.options.session_appends_max
             == runtime_options().session_appends_max)
      find("busy for no reason: " + name(call));
    return;
  }
  // The session was created, and removed or lost before the answer was read.
  if (creates && call.code == "not_found"
      && (was_removed(call.target(), call.before, call.after)
          || was_lost(call.before, call.after)))
    return;
  // The session was removed, or lost, between the steps of the call.
  const bool has_steps
    = call.kind == call_kind::fork
      || (call.kind == call_kind::get && call.wanted.at.has_value());
  if (has_steps && call.code == "conflict"
      && (was_removed(call.key, call.before, call.after)
          || was_lost(call.before, call.after)))
    return;
  if (!once(call, [&](std::size_t moment) {
        return is_model_refusing(call, moment);
      }))
    find("refused for no reason: " + name(call));
}

// -- appends and creations ----

void verdict::judge_append(const call_record& call) {
  const auto found = events_.find({call.key, call.event.id});
  const bool was_stored = is_stored(call.key, *call.stored, call.after);
  if (!was_stored)
    find("answered before it was stored, or with another event: " + name(call));
  if (call.stored->content != call.event.content)
    find("an id with other content was taken for a retry: " + name(call));
  // The event must have been sent by the time it was stored.
  if (was_stored && call.before > found->second.back().place) {
    const auto [first, last] = calls_by_id_.equal_range(call.event.id);
    if (std::none_of(first, last, [&](const auto& each) {
          return each.second->before <= found->second.back().place;
        }))
      find("was stored before it was sent: " + name(call));
  }
}

void verdict::judge_create(const call_record& call) {
  const auto& token = call.created.state.at("born");
  for (auto place = call.before; place < call.after; ++place) {
    const auto& change = told_.written[place];
    if (change.kind != change_kind::create || change.past
        || key_of(change.owner) != call.key)
      continue;
    const auto* born
      = change.event->actions.state_delta.find_last(scope::session, "born");
    if (born != nullptr && born->operand.data() == token) {
      check_cut(call, false);
      return;
    }
  }
  find("answered before it was stored: " + name(call));
}

// Returns true if the session had the event before `moment`.
bool verdict::is_stored(const session_key& key,
                        const event& said,
                        std::size_t moment) const {
  const auto found = events_.find({key, said.id});
  return found != events_.end()
         && std::ranges::any_of(found->second, [&](const stored_event& each) {
              return each.place < moment && *each.event == said;
            });
}

// A retry gets the answer of the write that was stored, except for a large
// value.
void verdict::judge_write(const call_record& call) {
  constexpr std::size_t value_bytes_kept = 1'024;
  const auto [first, last] = writes_.equal_range(call.write.id);
  if (std::none_of(first, last, [&](const auto& each) {
        const auto& [place, answer] = each.second;
        return place < call.after && answer.revision == call.wrote->revision
               && (call.wrote->value
                     ? *call.wrote->value == *answer.value
                     : to_text(answer.value->data()).size() > value_bytes_kept);
      }))
    find("answered before it was stored: " + name(call));
}

// -- reads ----

bool verdict::touches(std::size_t place,
                      scope where,
                      const session_key& key) const {
  if (told_.losses.contains(place))
    return true;
  const auto& change = told_.written[place];
  const auto& owner = change.owner;
  if (owner.app != key.app)
    return false;
  const bool is_removal = change.event == nullptr;
  const bool is_its_user = owner.user == key.user;
  const auto has_share = [&] {
    return !is_removal
           && !change.event->actions.state_delta.share(where).empty();
  };
  switch (where) {
  case scope::session:
    return is_its_user
           && (owner.session == key.id
               || change.kind == change_kind::remove_user);
  case scope::user:
    return is_its_user
           && (change.kind == change_kind::remove_user || has_share());
  default:
    return has_share();
  }
}

// Each scope must be as it was at some moment of the call. An event of two
// scopes must be seen in both or in neither.
void verdict::check_cut(const call_record& call, bool with_events) {
  const auto& fetched = *call.fetched;
  const auto all = fetched.state().all();
  std::vector<std::size_t> moments[3];
  for (auto moment = call.before; moment <= call.after; ++moment) {
    const auto& model = at_[moment];
    const auto held = model.get(call.target(), call.wanted);
    const bool fits[3] = {
      held && held->revision == fetched.revision()
        && held->is_earlier == fetched.is_earlier()
        && held->last_update_time == fetched.last_update_time()
        && (!with_events || has_ids(fetched.events(), held->events))
        && part_of(all, scope::session) == part_of(held->state, scope::session),
      part_of(all, scope::user)
        == model.get_user_state(call.key.app, call.key.user).value(),
      part_of(all, scope::app) == model.get_app_state(call.key.app).value()};
    if (fits[0] && fits[1] && fits[2])
      return;
    for (std::size_t index = 0; index < 3; ++index)
      if (fits[index])
        moments[index].push_back(moment);
  }
  const auto agree
    = [&](scope one, std::size_t at, scope other, std::size_t to) {
        for (auto place = std::min(at, to); place < std::max(at, to); ++place)
          if (touches(place, one, call.target())
              && touches(place, other, call.target()))
            return false;
        return true;
      };
  for (const auto own : moments[0])
    for (const auto of_user : moments[1]) {
      if (!agree(scope::session, own, scope::user, of_user))
        continue;
      for (const auto of_app : moments[2])
        if (agree(scope::session, own, scope::app, of_app)
            && agree(scope::user, of_user, scope::app, of_app))
          return;
    }
  find(fmt::format("shows a state that never existed: revision {}, {}, {}; the "
                   "session was at {}, the user at {}, the app at {}",
                   fetched.revision(),
                   all.dump(),
                   name(call),
                   fmt::join(moments[0], " "),
                   fmt::join(moments[1], " "),
                   fmt::join(moments[2], " ")));
}

void verdict::judge_get(const call_record& call) {
  check_cut(call, true);
  for (const auto& said : call.fetched->events())
    if (!is_stored(call.key, *said, told_.written.size()))
      find("shows an event that differs from the stored one: " + said->id + ", "
           + name(call));
}

void verdict::judge_list(const call_record& call) {
  auto wanted = call.listed;
  if (!wanted.cursor.empty()) {
    // The model's cursor has the negative of the time.
    auto place = json::parse(wanted.cursor);
    place[0] = -place[0].get<std::int64_t>();
    wanted.cursor = place.dump();
  }
  if (!once(call, [&](std::size_t moment) {
        const auto page = at_[moment].list(wanted);
        return page
               && page->next_cursor.empty() == call.page.next_cursor.empty()
               && std::ranges::equal(
                 call.page.sessions,
                 page->sessions,
                 [](const session& row, const session_view& model) {
                   return row.key() == model.key
                          && row.revision() == model.revision
                          && row.last_update_time() == model.last_update_time
                          && row.events().empty()
                          && row.state().all() == model.state;
                 });
      }))
    find("shows a state that never existed: " + name(call));
}

// -- removals ----

void verdict::judge_removal(const call_record& call) {
  const bool of_user = call.kind == call_kind::remove_user;
  if (!call.removed) {
    if (!once(call, [&](std::size_t moment) {
          auto model = at_[moment];
          return of_user
                   ? !model.remove_user(call.key.app, call.key.user).value()
                   : !model.remove(call.key).value();
        }))
      find("existed during the whole call: " + name(call));
    return;
  }
  for (auto place = call.before; place < call.after; ++place) {
    const auto& change = told_.written[place];
    const auto key = key_of(change.owner);
    if (of_user ? change.kind == change_kind::remove_user
                    && key.app == call.key.app && key.user == call.key.user
                : change.kind == change_kind::remove && key == call.key)
      return;
  }
  find("answered before it was stored: " + name(call));
}

// -- runs and order ----

bool verdict::was_lost(std::size_t before, std::size_t after) const {
  const auto next = told_.losses.lower_bound(before);
  return next != told_.losses.end() && next->first < after;
}

bool verdict::was_removed(const session_key& key,
                          std::size_t before,
                          std::size_t after) const {
  for (auto place = before; place < after; ++place)
    if (told_.written[place].event == nullptr && !told_.losses.contains(place)
        && touches(place, scope::session, key))
      return true;
  return false;
}

// Returns true if the end of the run had a reason. Agents, models, tools and
// their deltas may fail at any time.
bool verdict::is_reason(const run_record& run) const {
  if (run.code == "store_failed")
    // A change of the run may be lost before its answer.
    return run.faults_after > run.faults_before
           || was_lost(run.before, run.after);
  if (run.code == "busy")
    return run.may_be_rejected
           || plan_.options.runs_max != runtime_options().runs_max;
  if (run.code == "cancelled")
    // State that the run has seen may be lost, and noticed after it began.
    return run.is_cancelled || run.was_closing || may_be_gone(run)
           || was_lost(0, run.after)
           || was_rewound(run.key, run.before, run.after);
  if (run.code == "deadline_exceeded")
    return run.has_deadline;
  // A run that has begun is cancelled when its session is removed.
  return run.code != "not_found" || (run.taken.empty() && may_be_gone(run));
}

bool verdict::may_be_gone(const run_record& run) const {
  for (auto moment = run.before; moment <= run.after; ++moment)
    if (!at_[moment].get(run.key, {.num_recent_events = 0}))
      return true;
  return is_being_removed(run.key, run.before, run.after);
}

// Also true during a removal whose outcome is unknown.
bool verdict::is_being_removed(const session_key& key,
                               std::size_t before,
                               std::size_t after) const {
  return was_removed(key, before, after)
         || std::ranges::any_of(told_.calls, [&](const call_record& call) {
              const bool removes = call.kind == call_kind::remove
                                     ? call.key == key
                                     : call.kind == call_kind::remove_user
                                         && call.key.app == key.app
                                         && call.key.user == key.user;
              return removes && call.before <= after
                     && (call.answers == 0 || call.after >= before);
            });
}

void verdict::judge_run(const run_record& run) {
  static const std::set<std::string> codes{"ok",
                                           "cancelled",
                                           "not_found",
                                           "busy",
                                           "store_failed",
                                           "conflict",
                                           "type_error",
                                           "too_large",
                                           "model_failed",
                                           "callback_failed",
                                           "limit_exceeded",
                                           "deadline_exceeded"};
  const auto name = "run " + run.invocation_id + " on " + to_string(run.key)
                    + " (" + run.code + ": " + run.reason + ")";
  if (run.ends != 1)
    find("ended " + std::to_string(run.ends) + " times: " + name);
  if (run.was_dead)
    return;
  if (!codes.contains(run.code) || !is_reason(run))
    find("ended with an unexpected code: " + name);
  judge_losses(run);
  std::vector<std::string> stored;
  for (std::size_t place = run.before; place < run.after; ++place) {
    const auto& change = told_.written[place];
    if (change.kind == change_kind::append
        && change.event->invocation_id == run.invocation_id
        && change.event->author != "user"
        && std::ranges::find(stored, change.event->id) == stored.end())
      stored.push_back(change.event->id); // Once, if it was lost and repeated.
  }
  auto next = stored.begin();
  for (std::size_t index = 0; index < run.taken.size(); ++index) {
    const auto& said = *run.taken[index];
    if (!said.actions.state_delta.share(scope::temp).empty())
      find("temp: keys in an event of " + name);
    if (said.partial)
      continue;
    if (!is_stored(run.key, said, run.taken_at[index]))
      find("handed out before it was stored, or not as stored: " + said.id
           + " of " + name);
    next = std::find(next, stored.end(), said.id);
    if (next == stored.end()) {
      find("handed out in another order: " + said.id + " of " + name);
      return;
    }
    ++next;
  }
  const auto taken = std::ranges::count_if(
    run.taken, [](const event_ptr& said) { return !said->partial; });
  // A single lane may have failed, by an event whose outcome was unknown.
  if (run.faults_after != run.faults_before || was_lost(run.before, run.after))
    return;
  if (next - stored.begin() != taken
      && !is_being_removed(run.key, run.before, run.after))
    find("an event was left out before a later one: " + name);
  if (run.code == "ok" && static_cast<std::size_t>(taken) != stored.size())
    find("not all events were handed out: " + name + ", "
         + std::to_string(taken) + " of " + std::to_string(stored.size()));
}

// Checks that appends of one burst to one session are stored in the order of
// the calls.
void verdict::judge_order() {
  std::map<std::pair<std::size_t, session_key>,
           std::pair<std::size_t, const call_record*>>
    newest;
  for (const auto& call : told_.calls) {
    if (call.kind != call_kind::append || call.code != "ok" || call.was_dead
        || calls_by_id_.count(call.event.id) != 1)
      continue;
    const auto found = events_.find({call.key, call.event.id});
    if (found == events_.end())
      continue;
    const auto own
      = std::ranges::find_if(found->second.rbegin(),
                             found->second.rend(),
                             std::not_fn(&stored_event::is_shared));
    if (own == found->second.rend())
      continue;
    const auto place = own->place;
    const auto [at, is_first]
      = newest.try_emplace({call.burst, call.key}, std::pair(place, &call));
    if (!is_first && place < at->second.first)
      find("overtook an earlier call: " + name(call) + " overtook "
           + name(*at->second.second));
    at->second = {place, &call};
  }
}

// Checks that an ordered writer stores nothing after its first failed append.
void verdict::judge_writers() {
  std::map<std::pair<std::size_t, session_key>, const call_record*> failed;
  for (const auto& call : told_.calls) {
    if (!call.is_ordered || call.was_dead)
      continue;
    const auto found = failed.find({call.burst, call.key});
    if (found != failed.end()) {
      behind_failures_.insert(&call);
      if (call.code == "ok")
        find("was stored behind a failed append of its writer: " + name(call)
             + " behind " + name(*found->second));
    } else if (call.code != "ok") {
      failed.emplace(std::pair(call.burst, call.key), &call);
    }
  }
}

} // namespace troupe::testing
