#include "troupe/agents/graphs/fold.hpp"

#include "troupe/agents/turns/recovery.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/core/rewind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace troupe {

namespace {

using number = workflow_graph::number;

// Values have no effect on the order of visits.
std::shared_ptr<const json> no_value() {
  static const auto none = std::make_shared<const json>();
  return none;
}

// The name in the last segment of a path, without the number behind it.
std::string name_in(const std::string& path) {
  const auto slash = path.rfind('/');
  const auto from = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(from, path.rfind('@') - from);
}

// The id of a run, and the path of a visit in it.
struct visit_name {
  std::string run;
  std::string path;
};

// The visit whose body has emitted an event, by its id: `run/path/number`. The
// number, and the path of a visit that ran again after a rewind, may end with
// `~` and a number.
std::optional<visit_name> visit_in_id(const std::string& id) {
  const auto first = id.find('/');
  const auto last = id.rfind('/');
  if (first == last)
    return std::nullopt;
  visit_name read{id.substr(0, first), id.substr(first + 1, last - first - 1)};
  if (const auto mark = read.path.find_last_of("~/");
      mark != std::string::npos && read.path[mark] == '~')
    read.path.resize(mark);
  return read;
}

// Returns true if a place is that of a visit, or below it or its attempts.
bool is_in_visit(std::string_view place, std::string_view visit) {
  return place.starts_with(visit)
         && (place.size() == visit.size() || place[visit.size()] == '/'
             || place[visit.size()] == '~');
}

// The longest wait before the attempt behind this one.
std::chrono::microseconds longest_delay(const node_retry& rules,
                                        std::uint64_t attempt) {
  const auto most = static_cast<double>(rules.delay_max.count());
  const auto grown = static_cast<double>(rules.first_delay.count())
                     * std::pow(rules.factor, static_cast<double>(attempt - 1));
  const auto delay
    = rules.first_delay.count() == 0
        ? 0.0
        : std::min(most, std::min(most, grown) * (1 + rules.jitter));
  constexpr double most_micros = 366.0 * 24 * 3600 * 1e6;
  return std::chrono::microseconds(
    static_cast<std::int64_t>(std::min(delay * 1000, most_micros)));
}

// Another program may have written the times.
timestamp later(timestamp at, std::chrono::microseconds by) {
  return at > timestamp::max() - by ? timestamp::max() : at + by;
}

bool is_retried(const node_retry& rules, std::uint64_t attempt, errc code) {
  return attempt < rules.attempts_max
         && (rules.codes.empty()
             || std::ranges::find(rules.codes, code) != rules.codes.end());
}

} // namespace

// -- events -------------------------------------------------------------------

void workflow_fold::know(const agent& which) {
  known_.emplace(which.name(), &which);
  for (const auto& each : which.sub_agents()) {
    above_.emplace(each.name(), which.name());
    know(each);
  }
}

void workflow_fold::clear() {
  workflows_.clear();
  by_path_.clear();
  visits_by_path_.clear();
  by_branch_.clear();
  asks_.clear();
  answered_.clear();
}

result<void> workflow_fold::add(const event_ptr& said) {
  if (said->partial)
    return {};
  ++count_;
  if (is_rewind(*said)) {
    rewind(taken_back_by(*said).value_or(0));
    return {};
  }
  const bool tells_of_workflows = record_in(*said).has_value();
  // Other events matter only while a workflow goes on, or may go on again.
  if (!tells_of_workflows && workflows_.empty())
    return {};
  if (tells_of_workflows || !said->long_running_tool_ids.empty()
      || !said->content.parts.empty() || !said->actions.extra.is_null()
      || visit_in_id(said->id))
    kept_.emplace_back(count_, said);
  return take(*said);
}

// Repeats the events that are left. A rewind that was taken back has no effect,
// so the newest is read first.
void workflow_fold::rewind(std::uint64_t count) {
  rewinds_.emplace_back(count_, count);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> holes; // First and last.
  auto low = count_ + 1;
  for (auto each = rewinds_.rbegin(); each != rewinds_.rend(); ++each) {
    if (each->first >= low)
      continue;
    low = each->first - std::min(each->second, each->first - 1);
    holes.emplace_back(low, each->first);
  }
  clear();
  auto hole = holes.rbegin();
  for (const auto& [place, said] : kept_) {
    while (hole != holes.rend() && hole->second < place)
      ++hole;
    if (hole == holes.rend() || place < hole->first)
      // A conflict was told when the event came.
      static_cast<void>(take(*said));
  }
}

result<void> workflow_fold::take(const event& said) {
  if (const auto told = record_in(said))
    return take(*told, said);
  if (closes_calls(said))
    cancel_paused(said);
  else if (const auto message = released_in(said); !message.empty())
    reopen(message);
  else if (fact_in(said, due_fact) != nullptr)
    begin_wait(said);
  else {
    end_wait(said);
    take_calls(said);
  }
  return {};
}

result<void> workflow_fold::take(const workflow_record& told,
                                 const event& said) {
  using kind = workflow_record::kind;
  if (told.is == kind::begin)
    return begin(told, said);
  const auto around = visit_of_item(told);
  const auto& own = around ? *around : told;
  const auto found = by_path_.find({own.at.run, own.at.path});
  // The events may begin in the middle of a run.
  if (found == by_path_.end())
    return {};
  auto& on = workflows_[found->second];
  if (on.invocations.back() != said.invocation_id)
    on.invocations.push_back(said.invocation_id);
  go_on_after_failure(on, said);
  const bool had_conflict = on.conflict.has_value();
  if (around) {
    take_item(on, *around, told, said);
    advance(on, said);
    if (on.conflict && !had_conflict)
      return *on.conflict;
    return {};
  }
  switch (told.is) {
  case kind::begin:
    break;
  case kind::input:
    place_of(on, told, said.timestamp);
    break;
  case kind::question:
    ask({found->second, place_of(on, told, said.timestamp)}, 0, said);
    break;
  case kind::failure:
    fail(on, told, said);
    break;
  case kind::end:
    end(on, told, said);
    break;
  case kind::over:
    close(on, said);
    break;
  }
  advance(on, said);
  if (on.conflict && !had_conflict)
    return *on.conflict;
  return {};
}

result<void> workflow_fold::begin(const workflow_record& told,
                                  const event& said) {
  const auto [known, is_new]
    = by_path_.try_emplace({told.at.run, told.at.path}, workflows_.size());
  if (!is_new)
    return {};
  auto& on = workflows_.emplace_back();
  on.at = told.at;
  on.name = name_in(told.at.path);
  on.branch = said.branch;
  on.invocations.push_back(said.invocation_id);
  on.began = said.timestamp;
  on.parent = parent_of(told.at);
  if (on.parent) {
    auto& outer = workflows_[on.parent->workflow];
    auto& around = outer.visits[on.parent->visit];
    around.children.push_back(known->second);
    // Its body has waited, and runs a workflow now.
    if (around.is_asleep)
      run(outer, around);
  }
  auto used = use_graph(on, told.data);
  advance(on, said);
  return used;
}

void workflow_fold::end(instance& on,
                        const workflow_record& told,
                        const event& said) {
  const auto which = place_of(on, told, said.timestamp);
  auto& shown = on.visits[which].shown;
  shown.routes = told.routes;
  shown.missing = told.missing;
  finish(on, which, node_state::done, said.timestamp);
  if (!on.schedule)
    return;
  go_on_behind(on,
               on.schedule->end(
                 on.visits[which].node, told.ordinal, no_value(), told.routes),
               said);
}

void workflow_fold::go_on_behind(instance& on,
                                 const result<void>& left,
                                 const event& said) {
  if (left)
    return;
  const auto& why = left.error();
  if (why.code() != errc::limit_exceeded)
    forget_graph(on, why.message());
  else if (!on.failure)
    end_by(on,
           error(why.code(),
                 fmt::format("workflow '{}': {}", on.name, why.message())),
           said);
}

// An item of a map: its visit goes on.
void workflow_fold::take_item(instance& on,
                              const workflow_record& around,
                              const workflow_record& told,
                              const event& said) {
  using kind = workflow_record::kind;
  const auto which = place_of(on, around, said.timestamp);
  auto& map = on.visits[which];
  map.shown.items = told.at.items;
  if (told.is == kind::question)
    return ask({index_of(on), which}, told.ordinal, said);
  if (told.is == kind::end) {
    map.items_over.insert(told.ordinal);
    map.shown.items_ended = map.items_over.size();
    std::erase_if(map.asks, [&](const auto& each) {
      if (each.second != told.ordinal)
        return false;
      asks_.erase(each.first);
      return true;
    });
  }
  if (!map.is_active)
    return;
  if (is_waiting(map)) {
    map.shown.state = node_state::paused;
    take_back(on, map);
    fill(on, said.timestamp);
  } else if (map.shown.state == node_state::paused) {
    run(on, map);
  }
}

// Returns true if the visit waits for answers: for a map, all of its items that
// have not ended do.
bool workflow_fold::is_waiting(const visit& which) {
  if (which.asks.empty() || which.shown.items == 0)
    return !which.asks.empty();
  std::set<std::uint64_t> asking;
  for (const auto& each : which.asks)
    asking.insert(each.second);
  return asking.size() + which.shown.items_ended >= which.shown.items;
}

// The number of the item whose agent has said the event, by its branch; 0 if
// the visit is that of no map.
std::uint64_t workflow_fold::item_of(const visit_place& where,
                                     const event& said) const {
  const auto& shown = workflows_[where.workflow].visits[where.visit].shown;
  const auto& above = workflows_[where.workflow].visits[where.visit].branch;
  std::string_view rest = said.branch;
  if (!rest.starts_with(above))
    return 0;
  rest.remove_prefix(above.size());
  if (rest.starts_with('.'))
    rest.remove_prefix(1);
  return item_in_branch(
    rest.substr(0, rest.find('.')), shown.node, shown.number);
}

void workflow_fold::fail(instance& on,
                         const workflow_record& told,
                         const event& said) {
  const auto which = place_of(on, told, said.timestamp);
  auto& failed = on.visits[which];
  const error why(errc_of(said.field("errorCode")), said.field("errorMessage"));
  failed.shown.attempt = told.attempt;
  failed.shown.failures.push_back({told.attempt, said.timestamp, why});
  cancel_children(failed, said.timestamp);
  if (told.is_skipped) {
    failed.shown.is_skipped = true;
    finish(on, which, node_state::failed, said.timestamp);
    if (on.schedule)
      go_on_behind(on,
                   on.schedule->skip(
                     failed.node, told.ordinal, std::string(why.message())),
                   said);
    return;
  }
  if (on.known == nullptr || !on.schedule) {
    // Only the next event tells whether the node is tried again.
    take_back(on, failed);
    failed.shown.state = node_state::failed;
    failed.shown.ended = said.timestamp;
    return;
  }
  const auto& rules = on.graph->nodes()[failed.node].retry;
  if (!is_retried(rules, told.attempt, why.code())) {
    finish(on, which, node_state::failed, said.timestamp);
    if (!on.failure)
      end_by(on,
             error(why.code(),
                   fmt::format("node '{}' of workflow '{}' failed{}: {}",
                               told.node,
                               on.name,
                               told.attempt == 1
                                 ? std::string()
                                 : fmt::format(" in attempt {}", told.attempt),
                               why.message())),
             said);
    return;
  }
  take_back(on, failed);
  failed.shown.state = node_state::waiting;
  ++failed.shown.attempt;
  failed.shown.due = later(said.timestamp, longest_delay(rules, told.attempt));
  // The lane is free before the attempt is due.
  fill(on, said.timestamp);
  if (rules.first_delay.count() != 0)
    return;
  on.visits[which].is_due = true;
  on.due.push_back(which);
}

void workflow_fold::end_by(instance& on, error why, const event& said) {
  on.failure = std::move(why);
  on.failed_in = said.invocation_id;
  on.ended = said.timestamp;
}

void workflow_fold::close(instance& on, const event& said) {
  for (std::size_t which = 0; which < on.visits.size(); ++which)
    if (on.visits[which].is_active)
      finish(on, which, node_state::cancelled, said.timestamp);
  on.is_done = true;
  on.ended = said.timestamp;
}

// A later run continues a workflow that has failed if its call is answered
// again.
void workflow_fold::go_on_after_failure(instance& on, const event& said) {
  if (!on.failure || on.failed_in == said.invocation_id)
    return;
  on.failure.reset();
  on.ended.reset();
  for (std::size_t which = 0; which < on.visits.size(); ++which)
    if (auto& again = on.visits[which];
        again.shown.state == node_state::failed && !again.shown.is_skipped) {
      ++again.shown.attempt;
      activate(on, which);
      run(on, again);
    }
}

// The body of a visit waits for a time. An item of a map has no visit here.
void workflow_fold::begin_wait(const event& said) {
  const auto* due = fact_in(said, due_fact);
  const auto named = visit_in_id(said.id);
  if (!named || !due->is_number_integer())
    return;
  const auto found = visits_by_path_.find({named->run, named->path});
  if (found == visits_by_path_.end())
    return;
  auto& on = workflows_[found->second.workflow];
  auto& waits = on.visits[found->second.visit];
  if (!waits.is_active)
    return;
  // A run that brings an answer may begin with a wait.
  if (on.invocations.back() != said.invocation_id)
    on.invocations.push_back(said.invocation_id);
  run(on, waits);
  waits.shown.state = node_state::waiting;
  waits.shown.due
    = timestamp(std::chrono::microseconds(due->get<std::int64_t>()));
  waits.is_asleep = true;
}

// A body that waits emits nothing, so an event of the visit is one of the body
// behind its wait, or of an agent that it runs then. Nodes that run at the same
// time may have branches below that of the visit, so only the innermost branch
// with a visit counts, and the place of the event, if it tells one. A recovered
// body goes on waiting.
void workflow_fold::end_wait(const event& said) {
  if (by_branch_.empty() || said.author == "user" || said.author == "system"
      || claims_run(said))
    return;
  const auto named = visit_in_id(said.id);
  std::string_view place = path_in(said);
  if (place.empty() && named)
    place = named->path;
  for (std::string_view branch = said.branch;;) {
    if (const auto found = by_branch_.find(branch); found != by_branch_.end()) {
      for (const auto& each : found->second) {
        auto& on = workflows_[each.workflow];
        auto& waits = on.visits[each.visit];
        if (waits.is_asleep && on.invocations.back() == said.invocation_id
            && (place.empty()
                || is_in_visit(
                  place, path_of(on.at, waits.shown.node, waits.shown.number))))
          return run(on, waits);
      }
      return;
    }
    if (branch.empty())
      return;
    const auto dot = branch.rfind('.');
    branch = dot == std::string_view::npos ? std::string_view()
                                           : branch.substr(0, dot);
  }
}

// Takes questions, their answers, and other events of agents in a visit.
void workflow_fold::take_calls(const event& said) {
  for (const auto& each : said.content.parts) {
    const auto* answer = each.response();
    if (answer == nullptr)
      continue;
    const auto found = asks_.find(answer->id);
    if (found == asks_.end())
      continue;
    const auto where = found->second;
    auto& on = workflows_[where.workflow];
    auto& asked = on.visits[where.visit];
    if (said.author == "user")
      answered_[said.id].push_back({answer->id, where, asked.asks[answer->id]});
    asked.asks.erase(answer->id);
    asks_.erase(found);
    if (asked.is_active && !is_waiting(asked))
      run(on, asked);
  }
  const auto where = asking(said);
  if (!where)
    return;
  if (!said.long_running_tool_ids.empty())
    return ask(*where, item_of(*where, said), said);
  // The next attempt has begun.
  auto& on = workflows_[where->workflow];
  auto& again = on.visits[where->visit];
  if (again.shown.state == node_state::waiting)
    run(on, again);
}

// Pauses the visit until the calls of the event are answered.
void workflow_fold::ask(const visit_place& where,
                        std::uint64_t item,
                        const event& said) {
  auto& on = workflows_[where.workflow];
  auto& asked = on.visits[where.visit];
  for (const auto& id : said.long_running_tool_ids) {
    asked.asks[id] = item;
    asks_[id] = where;
  }
  if (!is_waiting(asked))
    return;
  asked.shown.state = node_state::paused;
  take_back(on, asked);
  fill(on, said.timestamp);
}

// Opens the questions again that a message answered, because its run failed.
void workflow_fold::reopen(const std::string& message) {
  const auto found = answered_.find(message);
  if (found == answered_.end())
    return;
  for (const auto& [id, where, item] : found->second) {
    auto& on = workflows_[where.workflow];
    auto& asked = on.visits[where.visit];
    if (asked.shown.state == node_state::done || asked.shown.is_skipped
        || asked.items_over.contains(item))
      continue;
    activate(on, where.visit);
    asked.asks[id] = item;
    asks_[id] = where;
    asked.shown.state = node_state::paused;
    asked.shown.ended.reset();
    take_back(on, asked);
    on.failure.reset();
    on.ended.reset();
    reopen_around(on);
  }
  answered_.erase(found);
}

// The workflows around one that waits again wait, too.
void workflow_fold::reopen_around(instance& inner) {
  inner.is_cancelled = false;
  for (auto parent = inner.parent; parent;) {
    auto& on = workflows_[parent->workflow];
    auto& around = on.visits[parent->visit];
    if (around.shown.state == node_state::done)
      return;
    activate(on, parent->visit);
    around.shown.state = node_state::paused;
    around.shown.ended.reset();
    take_back(on, around);
    on.is_cancelled = false;
    on.failure.reset();
    on.ended.reset();
    parent = on.parent;
  }
}

// A fork closes the questions before it.
void workflow_fold::cancel_paused(const event& said) {
  for (auto& on : workflows_)
    if (!on.is_done && !on.failure && !on.is_cancelled) {
      on.is_cancelled = true;
      on.ended = said.timestamp;
    }
}

// -- visits -------------------------------------------------------------------

result<void> workflow_fold::use_graph(instance& on, const json& structure) {
  if (!root_) {
    use_recorded(on, structure);
    return {};
  }
  const auto found = known_.find(on.name);
  const auto* options
    = found == known_.end()
        ? nullptr
        : std::get_if<compiled_workflow>(&found->second->kind());
  std::optional<error> why;
  if (options == nullptr) {
    why = error(errc::conflict,
                fmt::format("the session has workflow '{}', which is not among "
                            "the agents; use the agents that it ran with",
                            on.name));
  } else if (const auto& now = options->graph->structure(); structure != now) {
    why = error(errc::conflict,
                fmt::format("workflow '{}' is not the one that the session "
                            "ran: {}; use the agents that it ran with",
                            on.name,
                            difference_of(structure, now)));
  }
  if (why) {
    on.conflict = why;
    use_recorded(on, structure);
    return *why;
  }
  on.known = found->second;
  on.graph = options->graph.get();
  on.lanes_max = std::min(options->lanes_max.value_or(SIZE_MAX), lanes_max_);
  on.started.assign(on.graph->nodes().size(), 0);
  on.schedule
    = std::make_unique<workflow_schedule>(*on.graph, no_value(), true);
  return {};
}

// Without a readable structure, visits are known from their events alone.
void workflow_fold::use_recorded(instance& on, const json& structure) {
  auto read = read_structure(on.name, structure);
  if (!read)
    return;
  on.recorded = std::move(*read);
  on.graph = on.recorded.graph.get();
  on.started.assign(on.graph->nodes().size(), 0);
  on.schedule
    = std::make_unique<workflow_schedule>(*on.graph, no_value(), true);
}

// The later events are shown as they are.
void workflow_fold::forget_graph(instance& on, const std::string& why) {
  if (!on.conflict)
    on.conflict
      = error(errc::conflict, fmt::format("workflow '{}': {}", on.name, why));
  on.schedule.reset();
  on.due.clear();
}

std::size_t workflow_fold::open(instance& on, const workflow_visit& from) {
  const auto& node = on.graph->nodes()[from.node];
  const auto which = on.visits.size();
  auto& made = on.visits.emplace_back();
  made.node = from.node;
  made.shown.node = node.name;
  made.shown.number = from.ordinal;
  made.shown.missing = from.missing;
  made.branch = on.branch;
  if (!from.branch.empty())
    made.branch += (made.branch.empty() ? "" : ".") + from.branch;
  on.started[from.node] = from.ordinal;
  if (!std::holds_alternative<join>(node.work))
    lend(on, made);
  on.places[fmt::format("{}@{}", node.name, from.ordinal)] = which;
  const visit_place where{index_of(on), which};
  visits_by_path_[{on.at.run, path_of(on.at, node.name, from.ordinal)}] = where;
  by_branch_[made.branch].insert(where);
  return which;
}

// A visit of which no graph is known.
std::size_t workflow_fold::open_unplanned(instance& on,
                                          const workflow_record& told) {
  const auto which = on.visits.size();
  auto& made = on.visits.emplace_back();
  made.is_planned = false;
  made.shown.node = told.node;
  made.shown.number = told.ordinal;
  on.places[fmt::format("{}@{}", told.node, told.ordinal)] = which;
  visits_by_path_[{on.at.run, path_of(on.at, told.node, told.ordinal)}]
    = {index_of(on), which};
  return which;
}

// The visit of an event, which has started at the latest now.
std::size_t workflow_fold::place_of(instance& on,
                                    const workflow_record& told,
                                    timestamp at) {
  const auto known
    = on.places.find(fmt::format("{}@{}", told.node, told.ordinal));
  if (known != on.places.end()) {
    auto& found = on.visits[known->second];
    if (found.is_active && found.shown.state != node_state::paused) {
      run(on, found);
    }
    return known->second;
  }
  if (on.schedule) {
    const auto node = on.graph->find(told.node);
    if (node != workflow_graph::start)
      if (auto started = on.schedule->start(node)) {
        const auto which = open(on, *started);
        on.visits[which].shown.began = at;
        if (started->ordinal == told.ordinal)
          return which;
      }
    forget_graph(on,
                 fmt::format("the session has visit {} of node '{}', which the "
                             "workflow does not reach there",
                             told.ordinal,
                             told.node));
  }
  return open_unplanned(on, told);
}

void workflow_fold::lend(instance& on, visit& to) {
  if (to.has_lane || !on.schedule
      || std::holds_alternative<join>(on.graph->nodes()[to.node].work))
    return;
  to.has_lane = true;
  ++on.lanes;
}

// Runs a visit that has waited or failed.
void workflow_fold::run(instance& on, visit& again) {
  again.shown.state = node_state::running;
  again.shown.ended.reset();
  again.shown.due.reset();
  again.is_due = false;
  again.is_asleep = false;
  lend(on, again);
}

void workflow_fold::take_back(instance& on, visit& from) {
  if (std::exchange(from.has_lane, false))
    --on.lanes;
}

void workflow_fold::activate(instance& on, std::size_t which) {
  auto& again = on.visits[which];
  again.is_active = true;
  if (again.is_planned)
    by_branch_[again.branch].insert({index_of(on), which});
}

void workflow_fold::finish(instance& on,
                           std::size_t which,
                           node_state state,
                           timestamp at) {
  auto& ended = on.visits[which];
  ended.shown.state = state;
  ended.shown.ended = at;
  ended.shown.due.reset();
  take_back(on, ended);
  ended.is_due = false;
  ended.is_asleep = false;
  for (const auto& [id, item] : ended.asks)
    asks_.erase(id);
  ended.asks.clear();
  cancel_children(ended, at);
  if (!std::exchange(ended.is_active, false))
    return;
  if (const auto found = by_branch_.find(ended.branch);
      found != by_branch_.end()) {
    found->second.erase({index_of(on), which});
    if (found->second.empty())
      by_branch_.erase(found);
  }
}

// Starts visits as long as there are lanes, as a run does.
void workflow_fold::fill(instance& on, timestamp at) {
  while (on.schedule && !on.failure && on.lanes < on.lanes_max) {
    if (!on.due.empty()) {
      auto& again = on.visits[on.due.front()];
      on.due.pop_front();
      if (again.is_due)
        run(on, again);
      continue;
    }
    const auto next = on.schedule->next();
    if (!next)
      break;
    on.visits[open(on, *next)].shown.began = at;
  }
}

void workflow_fold::advance(instance& on, const event& said) {
  for (fill(on, said.timestamp);
       on.schedule && !on.failure && !on.is_done && on.schedule->is_idle();
       fill(on, said.timestamp)) {
    const auto settled = on.schedule->settle();
    if (settled && *settled)
      continue;
    if (!settled)
      end_by(on,
             error(settled.error().code(),
                   fmt::format(
                     "workflow '{}': {}", on.name, settled.error().message())),
             said);
    return;
  }
}

void workflow_fold::cancel_children(visit& of, timestamp at) {
  for (const auto each : of.children) {
    auto& below = workflows_[each];
    if (below.is_done || below.failure || below.is_cancelled)
      continue;
    below.is_cancelled = true;
    below.ended = at;
  }
}

// The visit whose path is the longest beginning of the workflow's path.
std::optional<workflow_fold::visit_place>
workflow_fold::parent_of(const workflow_place& at) const {
  for (auto path = at.path; path.rfind('/') != std::string::npos;) {
    path.resize(path.rfind('/'));
    // A place below a later attempt (contexts/lanes/event_place.hpp).
    if (const auto mark = path.find_last_of("~/");
        mark != std::string::npos && path[mark] == '~')
      path.resize(mark);
    const auto found = visits_by_path_.find({at.run, path});
    if (found != visits_by_path_.end())
      return found->second;
  }
  return std::nullopt;
}

// Returns true if an agent is that of a visit's node, or below it.
bool workflow_fold::holds(const visit_place& where,
                          const std::string& author) const {
  const auto& on = workflows_[where.workflow];
  const auto& which = on.visits[where.visit];
  if (on.known == nullptr)
    return on.recorded.kinds.empty() || on.recorded.has_agent[which.node];
  const auto* place = agent_of(on.graph->nodes()[which.node]);
  if (place == nullptr)
    return false;
  const auto& top = on.known->sub_agents()[*place].name();
  for (auto name = author;;) {
    if (name == top)
      return true;
    const auto above = above_.find(name);
    if (above == above_.end())
      return false;
    name = above->second;
  }
}

// The active visit whose agent has said the event: it runs on the branch of the
// event or around it. The innermost one is found.
std::optional<workflow_fold::visit_place>
workflow_fold::asking(const event& said) const {
  if (by_branch_.empty() || said.author == "user" || said.author == "system")
    return std::nullopt;
  for (std::string_view branch = said.branch;;) {
    if (const auto found = by_branch_.find(branch); found != by_branch_.end())
      for (auto each = found->second.rbegin(); each != found->second.rend();
           ++each)
        if (holds(*each, said.author))
          return *each;
    if (branch.empty())
      return std::nullopt;
    const auto dot = branch.rfind('.');
    branch = dot == std::string_view::npos ? std::string_view()
                                           : branch.substr(0, dot);
  }
}

} // namespace troupe
