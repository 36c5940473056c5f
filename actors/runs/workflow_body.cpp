#include "troupe/actors/runs/workflow_body.hpp"

#include "troupe/actors/running/shared.hpp"
#include "troupe/actors/running/user_failure.hpp"
#include "troupe/actors/runs/node_body.hpp"
#include "troupe/actors/runs/node_lanes.hpp"
#include "troupe/agents/graphs/graph.hpp"
#include "troupe/agents/graphs/schedule.hpp"
#include "troupe/agents/turns/node_event.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>

namespace troupe::actors {

namespace {

// Number of lanes that are started at a time, before they run. Short visits of
// a portion then end before the next lanes take memory.
constexpr int visits_per_portion = 64;

// Most functions without a time limit that run at the same time. They cannot
// wait, so more would only take memory until their events are committed.
constexpr std::size_t functions_max = 256;

// Suspends until there is news about a visit, or a cancellation.
class news_await {
public:
  explicit news_await(node_lanes& lanes) : lanes_(lanes) {}

  bool await_ready() const noexcept { return lanes_.has_news(); }

  void await_suspend(std::coroutine_handle<> waiting) { lanes_.wait(waiting); }

  std::optional<node_news> await_resume() { return lanes_.take(); }

private:
  node_lanes& lanes_;
};

// Returns true if an attempt follows attempt number `attempt`, which has
// failed.
bool is_retried(const node_retry& rules, std::uint64_t attempt, errc code) {
  return attempt < rules.attempts_max
         && (rules.codes.empty()
             || std::ranges::find(rules.codes, code) != rules.codes.end());
}

// Keeps the event of a visit's end.
class end_note final : public commit_listener {
public:
  void hear_commit(std::uint64_t,
                   const event_ptr& committed) noexcept override {
    event_ = committed;
  }

  /// Null if none was committed.
  const event_ptr& event() const noexcept { return event_; }

private:
  event_ptr event_;
};

class nodes_scope {
public:
  explicit nodes_scope(lane_actor& lane) : lane_(lane) { lane_.open_nodes(); }

  ~nodes_scope() { lane_.close_nodes(); }

  nodes_scope(const nodes_scope&) = delete;
  nodes_scope& operator=(const nodes_scope&) = delete;

private:
  lane_actor& lane_;
};

class workflow_run {
public:
  workflow_run(lane_actor& lane,
               invocation_context& context,
               const agent& which,
               const compiled_workflow& options)
    : lane_(lane),
      context_(context),
      which_(which),
      options_(options),
      graph_(*options.graph),
      schedule_(graph_, find_input(), is_message()),
      lanes_max_(std::min(options.lanes_max.value_or(SIZE_MAX),
                          lane.shared_run()->options.lanes_max)) {}

  task<> begin();
  task<> visit_all();
  task<> finish();

private:
  // A visit that has not ended, or whose lane runs.
  struct active_visit {
    workflow_visit visit;
    std::string id = {}; // As `node_context::key`.
    std::uint64_t attempt = 1;
    bool has_ended = false;  // Its last event is committed.
    bool is_skipped = false; // It has failed, and joins go on without it.
    checkpoint_ptr paused = {};
  };

  // An attempt that failed.
  struct failed_attempt {
    std::uint64_t number = 1;
    timestamp at;
    error why;
    bool is_own = false; // It failed in this run, before that was recovered.
  };

  // A visit that runs on the lane of the workflow.
  struct lone_visit {
    std::uint64_t key = 0;
    std::shared_ptr<node_visit> visit;
    lane_start start;
  };

  const workflow_graph::node& node_of(const active_visit& active) const {
    return graph_.nodes()[active.visit.node];
  }

  std::shared_ptr<const json> find_input() const;
  bool is_message() const;
  const recovered_run::part* left() const;
  workflow_graph::number find_node(const std::string& name) const;
  void restore();
  bool start_some();
  bool start_next_attempt(std::uint64_t key,
                          active_visit& active,
                          const failed_attempt& before);
  void start(std::uint64_t key, active_visit& active, checkpoint_ptr from);
  bool runs_alone(const active_visit& active) const;
  task<> run_lone();
  task<bool> step();
  task<> end_join(std::uint64_t key);
  task<> handle(node_news told);
  void end_visit(active_visit& active, const event& told);
  task<> fail_attempt(std::uint64_t key, error why);
  std::chrono::nanoseconds delay_after(std::uint64_t attempt,
                                       const active_visit& failed) const;
  error failure_of(const workflow_graph::node& node,
                   std::uint64_t attempt,
                   const error& why) const;
  void fail(error why);
  [[noreturn]] void pause() const;

  lane_actor& lane_;
  invocation_context& context_;
  const agent& which_;
  const compiled_workflow& options_;
  const workflow_graph& graph_;
  workflow_schedule schedule_;
  const std::size_t lanes_max_;
  workflow_place at_;
  std::map<std::uint64_t, active_visit> visits_;
  std::uint64_t last_key_ = 0;
  std::vector<std::uint64_t> joins_; // Visits of joins, which need no lane.
  std::unique_ptr<lone_visit> lone_; // The visit that runs next; or null.
  std::size_t functions_ = 0;        // Running, at most `functions_max`.
  std::deque<std::uint64_t> due_;    // Visits whose next attempt may start.
  // Joins, and failures that are skipped, whose commits will be news.
  std::size_t committing_ = 0;
  // The last attempts that failed before this run, or before it was recovered,
  // by path.
  std::map<std::string, failed_attempt> failed_;
  std::map<std::string, checkpoint_ptr> waiting_;
  std::optional<error> failure_;
};

// Input of the workflow: that of the visit which runs it, or else the message
// of the run in which it began.
std::shared_ptr<const json> workflow_run::find_input() const {
  const auto& visit = lane_.start().visit;
  if (visit && lane_.start().which == which_)
    return visit->visit.input;
  if (const auto& from = context_.resumed_from())
    for (const auto& each : context_.events())
      if (each->author == "user" && each->invocation_id == from->run)
        return std::make_shared<const json>(each->text());
  return std::make_shared<const json>(context_.user_content().text());
}

// Returns true if the input is the run's message, which agents see anyway.
bool workflow_run::is_message() const {
  const auto& visit = lane_.start().visit;
  return visit == nullptr || lane_.start().which != which_
         || visit->visit.is_message;
}

// The events of the workflow, if it began before the run was recovered; else
// null.
const recovered_run::part* workflow_run::left() const {
  const auto* recovered = lane_.recovered();
  const auto* found
    = recovered != nullptr ? recovered->at(context_.place()) : nullptr;
  if (found == nullptr)
    return nullptr;
  const auto begins = [](const event_ptr& each) {
    const auto told = record_in(*each);
    return told && told->is == workflow_record::kind::begin;
  };
  return std::ranges::any_of(found->own, begins) ? found : nullptr;
}

task<> workflow_run::begin() {
  if (const auto& from = context_.resumed_from()) {
    at_ = {.run = from->run, .path = from->path};
    if (lane_.recovered() != nullptr)
      if (const auto* before = lane_.recovered()->at(at_.path);
          before != nullptr && before->has_escalated)
        context_.mark_escalated();
    restore();
    for (const auto& each : from->lanes)
      waiting_[each.name] = each.at;
    co_return;
  }
  at_
    = {.run = context_.lane().facts().invocation_id, .path = context_.place()};
  if (const auto* before = left()) {
    if (before->has_escalated)
      context_.mark_escalated();
    restore();
    co_return;
  }
  auto told = make_begin_event(at_, graph_.structure());
  co_await context_.emit(std::move(told));
}

// The node of a visit that had ended before.
workflow_graph::number workflow_run::find_node(const std::string& name) const {
  const auto node = graph_.find(name);
  if (node == workflow_graph::start)
    throw error(
      errc::conflict,
      fmt::format("workflow '{}' has no node '{}', which had ended before",
                  which_.name(),
                  name));
  return node;
}

// Repeats the schedule from the events of the session.
void workflow_run::restore() {
  bool has_begun = false;
  const auto& events = context_.events();
  for (std::size_t index = 0; index < events.size(); ++index) {
    auto said = record_in(*events[index]);
    if (!said || said->at.run != at_.run || said->at.path != at_.path)
      continue;
    if (said->is == workflow_record::kind::begin) {
      has_begun = true;
      if (events.newest_rewind() > events.number(index))
        at_.rewound = events.newest_rewind();
      if (const auto& now = graph_.structure(); said->data != now) {
        lane_.shared_run()->is_refused = lane_.recovered() != nullptr;
        throw error(errc::conflict,
                    fmt::format("workflow '{}' was changed since this run "
                                "began: {}; start a new run",
                                which_.name(),
                                difference_of(said->data, now)));
      }
    } else if (said->is == workflow_record::kind::failure && said->is_skipped) {
      schedule_
        .replay_skip(find_node(said->node),
                     said->ordinal,
                     events[index]->field("errorMessage"))
        .value();
    } else if (said->is == workflow_record::kind::failure) {
      const auto& told = *events[index];
      failed_.insert_or_assign(
        path_of(at_, said->node, said->ordinal),
        failed_attempt{
          said->attempt,
          told.timestamp,
          error(errc_of(told.field("errorCode")), told.field("errorMessage")),
          told.invocation_id == context_.lane().facts().invocation_id});
    } else if (said->is == workflow_record::kind::end) {
      schedule_
        .replay(find_node(said->node),
                said->ordinal,
                std::make_shared<const json>(std::move(said->data)),
                said->routes)
        .value();
    }
  }
  if (!has_begun)
    throw error(errc::conflict,
                fmt::format("the session has no beginning of workflow '{}' at "
                            "{}",
                            which_.name(),
                            at_.path));
}

// -- visits -------------------------------------------------------------------

void workflow_run::fail(error why) {
  if (failure_)
    return;
  failure_ = std::move(why);
  lane_.nodes().cancel(
    {errc::cancelled,
     fmt::format("another node of workflow '{}' failed", which_.name())});
}

// Starts visits up to the limit, in portions. Returns true if more may start at
// once.
bool workflow_run::start_some() {
  for (int count = 0; !lone_ && functions_ < functions_max
                      && lane_.nodes().running() < lanes_max_;
       ++count) {
    if (count == visits_per_portion)
      return true;
    if (!due_.empty()) {
      const auto key = due_.front();
      due_.pop_front();
      start(key, visits_.at(key), nullptr);
      continue;
    }
    auto next = schedule_.next();
    if (!next)
      break;
    const auto key = ++last_key_;
    auto& active = visits_[key];
    active.visit = std::move(*next);
    const auto& node = node_of(active);
    if (std::holds_alternative<join>(node.work)) {
      joins_.push_back(key);
      continue;
    }
    // Both are empty unless the run goes on from a pause or a recovery.
    auto paused = waiting_.empty() ? waiting_.end()
                                   : waiting_.find(fmt::format(
                                     "{}@{}", node.name, active.visit.ordinal));
    const auto known
      = failed_.empty()
          ? failed_.end()
          : failed_.find(path_of(at_, node.name, active.visit.ordinal));
    // The visit continued after its pause, and has failed in this run.
    if (known != failed_.end() && known->second.is_own)
      paused = waiting_.end();
    if (known != failed_.end()
        && !start_next_attempt(key, active, known->second))
      continue;
    start(key, active, paused == waiting_.end() ? nullptr : paused->second);
  }
  return false;
}

// Prepares the next attempt of a visit that has failed. Returns true if it
// may start at once. In a recovered run it waits only for the rest of the time,
// and not at all if it had started.
bool workflow_run::start_next_attempt(std::uint64_t key,
                                      active_visit& active,
                                      const failed_attempt& before) {
  const auto& node = node_of(active);
  active.attempt = before.number + 1;
  if (!before.is_own)
    return true;
  if (!is_retried(node.retry, before.number, before.why.code())) {
    // The rules were changed since. Another attempt can tell that the failure
    // is skipped.
    if (graph_.skips_failure_of(active.visit.node))
      return true;
    // The process ended before the run could.
    auto failed = failure_of(node, before.number, before.why);
    visits_.erase(key);
    fail(std::move(failed));
    return false;
  }
  const auto path = path_of(at_, node.name, active.visit.ordinal);
  if (lane_.recovered() != nullptr
      && lane_.recovered()->at(place_of_attempt(path, active.attempt))
           != nullptr)
    return true;
  const auto passed = context_.lane().facts().environment->now() - before.at;
  const auto rest = delay_after(before.number, active) - passed;
  if (rest <= std::chrono::nanoseconds(0))
    return true;
  lane_.nodes().wake_after(key, rest);
  return false;
}

void workflow_run::start(std::uint64_t key,
                         active_visit& active,
                         checkpoint_ptr from) {
  const auto& node = node_of(active);
  const auto* place = std::get_if<std::size_t>(&node.work);
  auto visit = std::make_shared<node_visit>();
  visit->workflow = &which_;
  visit->graph = &graph_;
  visit->at = at_;
  visit->visit = active.visit;
  visit->attempt = active.attempt;
  visit->key = key;
  visit->listener = &lane_;
  if (node.timeout)
    visit->waited = std::make_shared<std::atomic<std::int64_t>>(0);
  auto branch = context_.branch();
  if (!active.visit.branch.empty())
    branch += (branch.empty() ? "" : ".") + active.visit.branch;
  const auto path = path_of(at_, node.name, active.visit.ordinal);
  auto visit_key = visit_id(at_, path);
  // A visit keeps its id over pauses. One that begins after a rewind does work
  // that an earlier visit may have done with other input, so its id differs.
  if (active.id.empty())
    active.id = from && !from->key.empty()
                  ? from->key
                  : placed_id(at_.rewound, {}, visit_key);
  visit->id = active.id;
  lane_start begin{.which
                   = place != nullptr ? which_.sub_agents()[*place] : which_,
                   .caller = &context_,
                   .branch = branch,
                   .from = std::move(from),
                   .visit = visit,
                   .above = path,
                   .visit_key = std::move(visit_key)};
  if (!runs_alone(active)) {
    functions_ += runs_on_caller(node) ? 1 : 0;
    return lane_.nodes().start(key, std::move(begin), node.timeout);
  }
  lone_ = std::make_unique<lone_visit>(
    lone_visit{key, std::move(visit), std::move(begin)});
}

// Returns true if the visit may run on the lane of the workflow: it is a
// function, no other visit runs, waits for its next attempt or can start, and
// no news is left, which could let another visit start.
bool workflow_run::runs_alone(const active_visit& active) const {
  const auto& lanes = lane_.nodes();
  return lanes.running() == 0 && lanes.waiting() == 0 && !lanes.has_news()
         && committing_ == 0 && joins_.empty() && due_.empty()
         && !schedule_.has_ready() && runs_on_caller(node_of(active));
}

// Runs the visit on the workflow's lane: a lane of its own would cost more than
// a short function.
task<> workflow_run::run_lone() {
  const auto ran = std::exchange(lone_, nullptr);
  end_note ended;
  ran->visit->listener = &ended;
  node_news told;
  told.visit = ran->key;
  try {
    told.outcome = co_await run_node(lane_, ran->start);
  } catch (...) {
    told.outcome = current_failure(errc::callback_failed,
                                   fmt::format("agent '{}'", which_.name()));
  }
  if (ended.event()) {
    node_news committed;
    committed.is = node_news::kind::committed;
    committed.visit = ran->key;
    committed.event = ended.event();
    co_await handle(std::move(committed));
  }
  ++functions_; // `handle` counts it as ended.
  co_await handle(std::move(told));
}

// Emits the event of a join. Its commit comes as news, like that of a lane.
task<> workflow_run::end_join(std::uint64_t key) {
  const auto& active = visits_.at(key);
  std::optional<error> failure;
  try {
    auto told
      = make_end_event(at_,
                       path_of(at_, node_of(active).name, active.visit.ordinal),
                       *active.visit.input,
                       {},
                       active.visit.missing);
    told.id = placed_id(at_.rewound, context_.events(), std::move(told.id));
    co_await context_.emit_heard(std::move(told), {}, lane_, key);
    ++committing_;
  } catch (...) {
    failure = current_failure(errc::internal, "a join");
  }
  if (failure)
    fail(std::move(*failure));
}

// Lanes that run refer to this, so it is not left before they have ended.
task<> workflow_run::visit_all() {
  for (bool is_over = false; !is_over;) {
    std::optional<error> failure;
    try {
      is_over = co_await step();
    } catch (...) {
      end_if_out_of_memory(std::current_exception());
      if (lane_.nodes().running() == 0)
        throw;
      failure = current_failure(errc::internal,
                                fmt::format("workflow '{}'", which_.name()));
    }
    if (failure)
      fail(std::move(*failure));
  }
}

// Starts visits, or handles the next news. Returns true if all paths have
// ended.
task<bool> workflow_run::step() {
  auto& lanes = lane_.nodes();
  if (lane_.cancelled())
    fail(*lane_.cancelled());
  const bool has_more
    = !failure_ && with_memory_or_end([this] { return start_some(); });
  if (lone_) {
    co_await run_lone();
  } else if (!failure_ && !joins_.empty()) {
    const auto key = joins_.front();
    joins_.erase(joins_.begin());
    co_await end_join(key);
  } else if (has_more && !lanes.has_news()) {
    co_await later_await(lane_);
  } else if (lanes.has_news() || lanes.running() > 0 || committing_ > 0
             || (!failure_ && (lanes.waiting() > 0 || !due_.empty()))) {
    if (auto told = co_await news_await(lanes))
      co_await handle(std::move(*told));
  } else if (failure_) {
    throw *failure_;
  } else if (std::ranges::any_of(visits_, [](const auto& each) {
               return each.second.paused != nullptr;
             })) {
    pause();
  } else {
    auto settled = schedule_.settle();
    if (!settled)
      fail(error(settled.error().code(),
                 fmt::format("workflow '{}': {}",
                             which_.name(),
                             settled.error().message())));
    else
      co_return !*settled;
  }
  co_return false;
}

task<> workflow_run::handle(node_news told) {
  const auto found = visits_.find(told.visit);
  if (found == visits_.end())
    co_return;
  auto& active = found->second;
  if (told.is == node_news::kind::committed) {
    end_visit(active, *told.event);
    if (active.is_skipped
        || std::holds_alternative<join>(node_of(active).work)) {
      --committing_;
      visits_.erase(found);
    }
    co_return;
  }
  if (told.is == node_news::kind::due) {
    due_.push_back(told.visit);
    co_return;
  }
  functions_ -= runs_on_caller(node_of(active)) ? 1 : 0;
  if (told.outcome && told.outcome->escalated)
    context_.mark_escalated();
  if (active.has_ended) {
    visits_.erase(found);
    co_return;
  }
  if (told.outcome) {
    active.paused = std::move(told.outcome->paused);
    co_return;
  }
  if (told.is_late)
    told.outcome = error(errc::deadline_exceeded,
                         fmt::format("it did not end within {} ms",
                                     node_of(active).timeout->count()));
  if (failure_ || lane_.cancelled())
    co_return;
  auto why = told.outcome.error();
  // The node was not cancelled: a run or another call in it was.
  if (why.code() == errc::cancelled)
    why = error(errc::callback_failed, why.message());
  co_await fail_attempt(told.visit, std::move(why));
}

void workflow_run::end_visit(active_visit& active, const event& told) {
  auto said = record_in(told);
  active.has_ended = true;
  const bool is_skipped
    = said && said->is == workflow_record::kind::failure && said->is_skipped;
  if (!said || (said->is != workflow_record::kind::end && !is_skipped))
    return fail(error(errc::conflict,
                      fmt::format("a plugin has removed the fields of node "
                                  "'{}' from its event",
                                  node_of(active).name)));
  const auto node = active.visit.node;
  const auto ordinal = active.visit.ordinal;
  auto ended
    = is_skipped
        ? schedule_.skip(node, ordinal, told.field("errorMessage"))
        : schedule_.end(node,
                        ordinal,
                        std::make_shared<const json>(std::move(said->data)),
                        said->routes);
  if (!ended)
    fail(error(ended.error().code(),
               fmt::format(
                 "workflow '{}': {}", which_.name(), ended.error().message())));
}

// -- failures -----------------------------------------------------------------

error workflow_run::failure_of(const workflow_graph::node& node,
                               std::uint64_t attempt,
                               const error& why) const {
  return {
    why.code(),
    fmt::format("node '{}' of workflow '{}' failed{}: {}",
                node.name,
                which_.name(),
                attempt == 1 ? "" : fmt::format(" in attempt {}", attempt),
                why.message())};
}

// Time between an attempt that has failed and the next one.
std::chrono::nanoseconds
workflow_run::delay_after(std::uint64_t attempt,
                          const active_visit& failed) const {
  const auto& rules = node_of(failed).retry;
  const auto most = static_cast<double>(rules.delay_max.count());
  if (rules.first_delay.count() == 0)
    return std::chrono::nanoseconds(0);
  auto delay
    = std::min(most,
               static_cast<double>(rules.first_delay.count())
                 * std::pow(rules.factor, static_cast<double>(attempt - 1)));
  // Made from the id of the visit and the attempt: visits wait for different
  // times, and a recovered run computes the same time again.
  const auto id = fmt::format(
    "{}#{}",
    visit_id(at_, path_of(at_, node_of(failed).name, failed.visit.ordinal)),
    attempt);
  std::seed_seq seed(id.begin(), id.end());
  std::minstd_rand random(seed);
  std::uniform_real_distribution<double> share(-rules.jitter, rules.jitter);
  delay = std::clamp(delay * (1 + share(random)), 0.0, most);
  return std::chrono::nanoseconds(
    static_cast<std::chrono::nanoseconds::rep>(delay * 1e6));
}

task<> workflow_run::fail_attempt(std::uint64_t key, error why) {
  auto& active = visits_.at(key);
  const auto& node = node_of(active);
  const auto& rules = node.retry;
  const bool is_over = !is_retried(rules, active.attempt, why.code());
  const bool is_skipped = is_over && graph_.skips_failure_of(active.visit.node);
  std::optional<error> untold;
  try {
    auto told
      = make_failure_event(at_,
                           path_of(at_, node.name, active.visit.ordinal),
                           active.attempt,
                           why,
                           is_skipped);
    told.id = placed_id(at_.rewound, context_.events(), std::move(told.id));
    if (is_skipped) {
      // Like the end of a visit, it counts in the order of the session.
      co_await context_.emit_heard(std::move(told), {}, lane_, key);
      active.is_skipped = true;
      ++committing_;
    } else {
      co_await context_.emit(std::move(told));
    }
  } catch (...) {
    untold = current_failure(errc::internal, "a failed attempt");
  }
  if (lane_.cancelled()) {
    fail(*lane_.cancelled());
    co_return;
  }
  if (active.is_skipped)
    co_return;
  if (untold || is_over) {
    auto failed = failure_of(node, active.attempt, why);
    if (untold)
      failed = error(failed.code(),
                     fmt::format("{}; its event was refused: {}",
                                 failed.message(),
                                 untold->message()));
    fail(std::move(failed));
    co_return;
  }
  const auto delay = delay_after(active.attempt, active);
  ++active.attempt;
  lane_.nodes().wake_after(key, delay);
}

// -- ends ---------------------------------------------------------------------

void workflow_run::pause() const {
  auto where = std::make_shared<checkpoint>();
  where->agent = which_.name();
  where->run = at_.run;
  where->path = at_.path;
  for (const auto& [key, active] : visits_)
    if (active.paused) {
      auto& lane = where->lanes.emplace_back();
      lane.name
        = fmt::format("{}@{}", node_of(active).name, active.visit.ordinal);
      lane.at = active.paused;
    }
  throw agent_paused{std::move(where)};
}

task<> workflow_run::finish() {
  auto output = schedule_.output();
  if (!options_.output_key.empty())
    context_.state().set(options_.output_key, output);
  auto told = make_over_event(at_, std::move(output));
  told.id = placed_id(at_.rewound, context_.events(), std::move(told.id));
  const auto stored = co_await context_.emit(std::move(told));
  lane_.set_output(output_of(*stored));
}

} // namespace

task<> run_workflow(lane_actor& lane,
                    invocation_context& context,
                    const agent& which,
                    const compiled_workflow& options) {
  const nodes_scope scope(lane);
  workflow_run run(lane, context, which, options);
  co_await run.begin();
  co_await run.visit_all();
  co_await run.finish();
}

} // namespace troupe::actors
