#include "recovery_verdict.hpp"

#include "troupe/agents/turns/node_event.hpp"
#include "troupe/agents/turns/recovery.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace troupe::testing {

namespace {

// The state without the keys of the app, which all runs share.
json own_part(const json& state) {
  auto part = json::object();
  for (const auto& [key, data] : state.items())
    if (!key.starts_with("app:"))
      part[key] = data;
  return part;
}

// Returns true if a living program has seen the run fail. Agents of the trees
// do not fail, so only a store that fails is a reason.
bool has_failed(const attempt_record& attempt) {
  if (attempt.was_dead || attempt.code == "ok")
    return false;
  const bool is_elsewhere
    = attempt.reason.find("another process has recovered") != std::string::npos;
  if (attempt.code == "cancelled")
    return !attempt.was_closing && !is_elsewhere;
  if (attempt.recovers && attempt.code == "conflict")
    return !is_elsewhere;
  return !attempt.recovers
         || (attempt.code != "busy" && attempt.code != "not_found");
}

} // namespace

recovery_verdict::recovery_verdict(const recovery_history& told) : told_(told) {
  for (std::size_t place = 0; place < told_.stored.written.size(); ++place)
    read_change(place);
}

const planned_run* recovery_verdict::find_planned(std::string_view id) const {
  const auto found = std::ranges::find(told_.runs, id, &planned_run::id);
  return found == told_.runs.end() || id.empty() ? nullptr : &*found;
}

// -- stored changes ----

void recovery_verdict::read_change(std::size_t place) {
  const auto& change = told_.stored.written[place];
  read_marks(place, change);
  if (change.kind == change_kind::append)
    read_event(place, *change.event);
}

void recovery_verdict::read_marks(std::size_t place,
                                  const store_change& change) {
  for (const auto& mark : change.runs) {
    auto& run = stored_[mark.invocation_id];
    const bool is_open = run.opened.size() > run.closed.size();
    if (mark.opens) {
      if (mark.held_by && (!is_open || run.holder != *mark.held_by))
        continue;
      run.former_holder = std::exchange(run.holder, mark.holder);
      if (!is_open)
        run.opened.push_back(place);
    } else if (is_open && (mark.holder.empty() || mark.holder == run.holder)) {
      run.closed.push_back(place);
    }
  }
}

void recovery_verdict::read_event(std::size_t place, const event& said) {
  auto& run = stored_[said.invocation_id];
  const hold next{place, told_.stored.writings[place]};
  if (said.author == "user" && run.holds.empty()) {
    run.holds.push_back(next);
    return;
  }
  if (run.holds.empty()) {
    find("was committed before the message of its run: " + said.id);
    return;
  }
  if (claims_run(said)) {
    const auto& from = run.former_holder;
    if (tells_leave(said) != (is_left(from) || from == run.holder))
      find("tells wrongly whether its run was left: claim " + said.id
           + " of run " + said.invocation_id + ", from " + from);
    judge_claim(said.invocation_id, run.holds.back(), next);
    run.holds.push_back(next);
    return;
  }
  if (next.by.program != run.holds.back().by.program)
    find("was committed after its run was claimed: " + said.id + " by "
         + said.author + " of run " + said.invocation_id);
  run.first_of_author.try_emplace(said.author, place);
  for (const auto& element : said.content.parts)
    if (const auto* response = element.response())
      run.ends.try_emplace(response->id, place);
  if (const auto record = record_in(said);
      record && record->is == workflow_record::kind::end)
    run.ends.try_emplace(said.id, place);
}

// A message and a claim are signs of life of their program, too. A sign at the
// time of the claim may come after it. Times of the store are rounded down to
// microseconds.
void recovery_verdict::judge_claim(const std::string& run,
                                   const hold& before,
                                   const hold& next) {
  if (before.by.program == next.by.program
      || is_left(stored_[run].former_holder))
    return;
  const auto left = told_.stored.left.find(before.by.program);
  if (left != told_.stored.left.end() && left->second <= next.by.at)
    return;
  auto last = before.by.at;
  if (const auto signs = told_.stored.signs.find(before.by.program);
      signs != told_.stored.signs.end())
    for (const auto at : signs->second)
      if (at < next.by.at)
        last = std::max(last, at);
  if (next.by.at - last + std::chrono::microseconds(1) <= told_.lease)
    find("was claimed within the lease of its program: run " + run);
}

// -- attempts and steps ----

void recovery_verdict::judge(const attempt_record& attempt) {
  const auto name = std::string(attempt.recovers ? "a recovery" : "the start")
                    + " of run " + told_.runs[attempt.run].id + " ("
                    + attempt.code + ": " + attempt.reason + ")";
  if (attempt.code.empty())
    find("has not ended: " + name);
  else if (has_failed(attempt) && !told_.has_faults)
    find("ended with an unexpected code: " + name);
}

// The place of the event that records the end of the step. A body has ended
// when a later agent has an event.
std::optional<std::size_t>
recovery_verdict::end_of(const step_record& step) const {
  const auto found = stored_.find(step.run);
  const auto* planned = find_planned(step.run);
  if (found == stored_.end() || planned == nullptr)
    return std::nullopt;
  const auto& run = found->second;
  for (const auto& [body, author] : counted_trees()[planned->tree].ended_by)
    if (body == step.step)
      if (const auto at = run.first_of_author.find(author);
          at != run.first_of_author.end())
        return at->second;
  const auto at = run.ends.find(step.key);
  return at == run.ends.end() ? std::nullopt : std::optional(at->second);
}

void recovery_verdict::judge(const step_record& step) {
  if (step.run.empty())
    return;
  const auto name = step.step + " with key " + step.key;
  const auto found = stored_.find(step.run);
  if (found == stored_.end())
    return find("began without a stored run: " + name);
  const auto& holds = found->second.holds;
  const auto own
    = std::find_if(holds.rbegin(), holds.rend(), [&step](const hold& each) {
        return each.by.program == step.program && each.place < step.moment;
      });
  if (own == holds.rend())
    return find("began before its program had the run: " + name);
  if (const auto end = end_of(step); end && *end < own->place)
    find("a step that had ended ran again: " + name);
}

// -- lists ----

// Returns true if the run was open at a moment from `before` to `after`.
bool recovery_verdict::was_open(const stored_run& run,
                                std::size_t before,
                                std::size_t after) const {
  for (std::size_t index = 0; index < run.opened.size(); ++index)
    if (run.opened[index] < after
        && (index >= run.closed.size() || run.closed[index] >= before))
      return true;
  return false;
}

// Returns true if the run was open at all these moments.
bool recovery_verdict::stayed_open(const stored_run& run,
                                   std::size_t before,
                                   std::size_t after) const {
  for (std::size_t index = 0; index < run.opened.size(); ++index)
    if (run.opened[index] < before
        && (index >= run.closed.size() || run.closed[index] >= after))
      return true;
  return false;
}

void recovery_verdict::judge(const list_record& list) {
  if (list.was_dead || list.was_closing)
    return;
  if (list.code != "ok") {
    if (list.code != "store_failed" || !told_.has_faults)
      find("a list of open runs was answered: " + list.code);
    return;
  }
  for (const auto& each : list.found) {
    const auto* planned = find_planned(each.invocation_id);
    const auto stored = stored_.find(each.invocation_id);
    if (planned == nullptr || stored == stored_.end()
        || !was_open(stored->second, list.before, list.after))
      find("a run is listed that is not open: " + each.invocation_id);
    else if (each.session != planned->key)
      find("a run is listed with another session: " + each.invocation_id);
  }
  for (const auto& [id, run] : stored_) {
    const bool is_own
      = std::ranges::any_of(run.holds, [&list](const hold& each) {
          return each.by.program == list.program;
        });
    if (stayed_open(run, list.before, list.after) && (list.with_own || !is_own)
        && std::ranges::find(list.found, id, &unfinished_run::invocation_id)
             == list.found.end())
      find("an open run is not listed: " + id);
  }
}

std::vector<std::string> recovery_verdict::judge() {
  for (const auto& each : told_.attempts)
    judge(each);
  for (const auto& each : told_.steps)
    judge(each);
  for (const auto& each : told_.lists)
    judge(each);
  for (const auto& [id, run] : stored_)
    if (run.opened.size() > run.closed.size())
      find("is open at the end: run " + id);
  return std::exchange(findings_, {});
}

// -- the state at the end ----

bool recovery_verdict::may_have_failed(std::size_t run) const {
  return std::ranges::any_of(told_.attempts, [run](const attempt_record& each) {
    return each.run == run && has_failed(each);
  });
}

void recovery_verdict::compare_whole(const planned_run& run,
                                     const session& found) {
  const json state = found.state().all();
  const auto own = own_part(state);
  const auto expected = own_part(undisturbed_outcomes()[run.tree].state);
  if (own != expected)
    find("the state of " + to_string(run.key) + " is " + own.dump()
         + ", expected " + expected.dump());
  // A commit that fails makes an attempt of a node more.
  if (told_.has_faults)
    return;
  for (auto& each : compare_events(run.tree, found))
    find(to_string(run.key) + ": " + each);
  outside_calls calls;
  for (const auto& each : told_.steps)
    if (each.run == run.id)
      calls[each.step].insert(each.key);
  // Calls of models name no run. Their keys begin with it.
  for (const auto& each : told_.steps)
    if (each.run.empty() && each.key.find(run.id) != std::string::npos)
      calls[each.step].insert(each.key);
  for (auto& each : compare_calls(run.tree, found, calls))
    find(to_string(run.key) + ": " + each);
}

// No step of a run that has failed has taken effect twice.
void recovery_verdict::compare_part(const planned_run& run,
                                    const session& found) {
  const json state = found.state().all();
  const auto own = own_part(state);
  const auto& whole = undisturbed_outcomes()[run.tree].state;
  for (const auto& [key, data] : own.items())
    if (data.is_number() && (!whole.contains(key) || data > whole.at(key)))
      find("the key " + key + " of " + to_string(run.key) + " is "
           + data.dump());
}

std::vector<std::string>
recovery_verdict::compare(const std::map<session_key, session>& found) {
  auto expected = json::object();
  bool is_whole = true;
  for (std::size_t number = 0; number < told_.runs.size(); ++number) {
    const auto& run = told_.runs[number];
    const auto held = found.find(run.key);
    const auto stored = stored_.find(run.id);
    // The program has ended before the message was stored.
    if (run.id.empty() || stored == stored_.end()
        || stored->second.holds.empty())
      continue;
    if (held == found.end()) {
      find("the session of a run is missing: " + to_string(run.key));
      continue;
    }
    if (may_have_failed(number)) {
      is_whole = false;
      compare_part(run, held->second);
      continue;
    }
    compare_whole(run, held->second);
    const auto& whole = undisturbed_outcomes()[run.tree].state;
    for (const auto& [key, data] : whole.items())
      if (key.starts_with("app:"))
        expected[key] = expected.value(key, 0) + data.get<int>();
  }
  if (is_whole && !found.empty()) {
    const json now = found.begin()->second.state().all();
    for (const auto& [name, data] : expected.items())
      if (!now.contains(name) || now.at(name) != data)
        find("the key " + name + " is "
             + (now.contains(name) ? now.at(name).dump() : "missing")
             + ", expected " + data.dump());
  }
  return std::exchange(findings_, {});
}

} // namespace troupe::testing
