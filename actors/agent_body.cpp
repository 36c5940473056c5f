#include "troupe/actors/agent_body.hpp"

#include "troupe/actors/callbacks.hpp"
#include "troupe/actors/fan_out.hpp"
#include "troupe/actors/llm_body.hpp"
#include "troupe/actors/plugins.hpp"
#include "troupe/actors/user_failure.hpp"
#include "troupe/agents/llm_turn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace troupe::actors {

namespace {

// Suspends for a fan-out; the lane starts its lanes and goes on when they have
// ended.
class lanes_await {
public:
  lanes_await(lane_actor& lane, fan_out_request& request)
    : lane_(lane),
      request_(request) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    request_.waiting = waiting;
    lane_.start_lanes(request_);
  }

  void await_resume() const noexcept {}

private:
  lane_actor& lane_;
  fan_out_request& request_; // In the coroutine that waits.
};

// Lets the lane hear what was sent to it, and other actors have their turn.
class turn_await {
public:
  explicit turn_await(lane_actor& lane) : lane_(lane) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) { lane_.post(waiting); }

  void await_resume() const {
    if (lane_.cancelled())
      throw *lane_.cancelled();
  }

private:
  lane_actor& lane_;
};

// Refuses a call of an agent that is on the stack already, and a stack that is
// too deep.
void check_stack(const lane_actor& lane,
                 const invocation_context* caller,
                 const agent& which) {
  std::size_t depth = 1;
  for (const auto* above = caller; above != nullptr; above = above->caller()) {
    if (above->agent_name() == which.name())
      throw error(errc::circular_agent_call,
                  fmt::format("agent '{}' is already running above '{}'",
                              which.name(),
                              caller->agent_name()));
    ++depth;
  }
  const auto depth_max = lane.shared_run()->options.agent_depth_max;
  if (depth > depth_max)
    throw error(errc::limit_exceeded,
                fmt::format("agent '{}' would run {} agents deep, the limit is "
                            "{}",
                            which.name(),
                            depth,
                            depth_max));
}

task<> run_sequence(invocation_context& context, const agent& which) {
  for (const auto& next : which.sub_agents())
    co_await context.run(next);
}

task<> run_loop(lane_actor& lane,
                invocation_context& context,
                const agent& which,
                const loop_options& options) {
  if (which.sub_agents().empty())
    co_return;
  for (std::uint64_t count = 0; count != options.max_iterations; ++count)
    for (const auto& next : which.sub_agents()) {
      co_await context.run(next);
      if (context.has_escalated())
        co_return;
      // Sub-agents that never wait must not keep a cancellation out.
      co_await turn_await(lane);
    }
}

// Of a parallel agent or a map.
template <class Options>
fan_out_request make_fan_out(const lane_actor& lane,
                             const invocation_context& context,
                             const Options& options) {
  fan_out_request request;
  request.caller = &context;
  request.lanes_max = std::min(options.lanes_max.value_or(SIZE_MAX),
                               lane.shared_run()->options.lanes_max);
  request.on_failure = options.on_failure;
  request.quorum = options.quorum;
  request.timeout = options.lane_timeout;
  return request;
}

std::string branch_below(const invocation_context& context,
                         std::string_view lane) {
  const auto& branch = context.branch();
  return fmt::format(
    "{}{}{}.{}", branch, branch.empty() ? "" : ".", context.agent_name(), lane);
}

// Failures that did not end the fan-out are told in the session.
task<> tell_failures(invocation_context& context,
                     const fan_out_request& request) {
  for (const auto& lane : request.lanes) {
    const auto& failure = lane.failed;
    if (!failure)
      continue;
    event told;
    told.author = lane.which.name();
    told.branch = lane.branch;
    auto fields = json::object();
    fields["errorCode"] = std::string(to_string(failure->code()));
    fields["errorMessage"] = failure->message();
    told.extra = std::move(fields);
    co_await context.emit(std::move(told));
  }
}

// What the checkpoint of a fan-out says about a lane: where it goes on, or what
// came of it.
json entry_of(const fan_out_request::lane& lane, std::string_view name) {
  json entry{{"lane", name}};
  if (lane.paused) {
    entry["at"] = *lane.paused;
  } else if (lane.failed) {
    auto failed = json::object();
    failed["code"] = to_string(lane.failed->code());
    failed["reason"] = lane.failed->message();
    entry["failed"] = std::move(failed);
  } else {
    entry["ended"] = {{"escalated", lane.escalated}};
  }
  return entry;
}

// The same the other way round; `entry` outlives the lane.
void restore(fan_out_request::lane& lane, const json& entry) {
  if (entry.contains("at")) {
    lane.checkpoint = &entry.at("at");
    return;
  }
  lane.is_over = true;
  if (entry.contains("failed")) {
    const auto& failed = entry.at("failed");
    lane.failed = error(errc_of(failed.at("code").get<std::string>()),
                        failed.at("reason").get<std::string>());
  } else {
    lane.succeeded = true;
    lane.escalated = entry.at("ended").at("escalated").get<bool>();
  }
}

// The entries of the checkpoint that a fan-out goes on from, or null.
const json* resumed_lanes(const invocation_context& context) {
  const auto* from = context.resumed_from();
  return from != nullptr && from->contains("lanes") ? &from->at("lanes")
                                                    : nullptr;
}

agent_paused pause_at(const invocation_context& context, json lanes) {
  auto checkpoint = json::object();
  checkpoint["agent"] = context.agent_name();
  checkpoint["lanes"] = std::move(lanes);
  return {std::move(checkpoint)};
}

task<> await_lanes(lane_actor& lane,
                   invocation_context& context,
                   fan_out_request& request) {
  co_await lanes_await(lane, request);
  context.renew();
  request.outcome.value();
  if (request.is_paused)
    co_return;
  if (std::ranges::any_of(request.lanes,
                          [](const auto& each) { return each.escalated; }))
    context.mark_escalated();
  co_await tell_failures(context, request);
}

task<> run_lanes(lane_actor& lane,
                 invocation_context& context,
                 const agent& which,
                 const parallel_options& options) {
  auto request = make_fan_out(lane, context, options);
  const auto* before = resumed_lanes(context);
  for (const auto& sub : which.sub_agents()) {
    auto& added = request.lanes.emplace_back(fan_out_request::lane{
      .which = sub,
      .branch = branch_below(context, sub.name()),
      .temp = options.isolate_temp
                ? std::make_shared<temp_space>(scope_state(lane.temp()->read()))
                : nullptr});
    if (before == nullptr)
      continue;
    const auto entry = std::ranges::find_if(*before, [&sub](const json& each) {
      return each.at("lane") == sub.name();
    });
    if (entry != before->end())
      restore(added, *entry);
  }
  co_await await_lanes(lane, context, request);
  if (!request.is_paused)
    co_return;
  auto lanes = json::array();
  for (const auto& each : request.lanes)
    lanes.push_back(entry_of(each, each.which.name()));
  throw pause_at(context, std::move(lanes));
}

// What the lane of one element starts with.
std::shared_ptr<temp_space>
temp_for(const lane_actor& lane, const json& item, std::size_t index) {
  auto keys = lane.temp()->read();
  keys.set("item", value(item));
  keys.set("index", value(json(index)));
  keys.erase("result");
  return std::make_shared<temp_space>(scope_state(std::move(keys)));
}

// What the lane of one element has left, or else said last.
json result_of(const fan_out_request::lane& lane) {
  if (!lane.succeeded)
    return nullptr;
  const auto left = lane.temp->read();
  if (const auto* result = left.find("result"))
    return result->data();
  return lane.said ? json(lane.said->text()) : json();
}

json items_of(const invocation_context& context, const map_options& options) {
  const auto found = context.state().find(options.items_key);
  if (!found || found->is_null())
    return json::array();
  if (!found->data().is_array())
    throw error(errc::type_error,
                fmt::format("'{}' of map '{}' is no list",
                            options.items_key,
                            options.name));
  return found->data();
}

// The elements that lanes had when they paused; null for those that are over.
json items_before(const json& lanes) {
  auto items = json::array();
  for (const auto& entry : lanes)
    items.push_back(entry.value("item", json()));
  return items;
}

task<> run_map(lane_actor& lane,
               invocation_context& context,
               const agent& which,
               const map_options& options) {
  // The list may have changed since a pause: lanes go on with what they had.
  const auto* before = resumed_lanes(context);
  const auto items
    = before == nullptr ? items_of(context, options) : items_before(*before);
  auto request = make_fan_out(lane, context, options);
  for (std::size_t index = 0; index < items.size(); ++index) {
    auto& added = request.lanes.emplace_back(fan_out_request::lane{
      .which = which.sub_agents().front(),
      .branch = branch_below(context, std::to_string(index)),
      .temp = temp_for(lane, items[index], index)});
    if (before != nullptr)
      restore(added, before->at(index));
  }
  co_await await_lanes(lane, context, request);
  auto results = json::array();
  for (std::size_t index = 0; index < request.lanes.size(); ++index) {
    const bool is_old
      = before != nullptr && before->at(index).contains("ended");
    results.push_back(is_old ? before->at(index).value("result", json())
                             : result_of(request.lanes[index]));
  }
  if (!request.is_paused) {
    if (!options.output_key.empty())
      context.state().set(options.output_key, std::move(results));
    co_return;
  }
  auto lanes = json::array();
  for (std::size_t index = 0; index < request.lanes.size(); ++index) {
    const auto& each = request.lanes[index];
    auto& entry = lanes.emplace_back(entry_of(each, std::to_string(index)));
    if (each.paused)
      entry["item"] = items[index];
    else if (each.succeeded)
      entry["result"] = std::move(results[index]);
  }
  throw pause_at(context, std::move(lanes));
}

// Gives the agent that goes on in the place of this one, if any.
task<std::optional<agent>>
run_body(lane_actor& lane, invocation_context& context, const agent& which) {
  const auto& kind = which.kind();
  if (const auto* llm = std::get_if<llm_options>(&kind)) {
    auto next = co_await run_llm(context,
                                 *llm,
                                 lane.root_agent(),
                                 lane.tree(),
                                 lane.shared_run()->shared->plugins);
    co_return next;
  }
  if (std::holds_alternative<sequential_options>(kind))
    co_await run_sequence(context, which);
  else if (const auto* lanes = std::get_if<parallel_options>(&kind))
    co_await run_lanes(lane, context, which, *lanes);
  else if (const auto* map = std::get_if<map_options>(&kind))
    co_await run_map(lane, context, which, *map);
  else if (const auto* loop = std::get_if<loop_options>(&kind))
    co_await run_loop(lane, context, which, *loop);
  else
    co_await std::get<custom_options>(kind).run(context);
  co_return std::nullopt;
}

// Says what a callback says in the agent's place, or what it only wrote.
// Whether one has answered.
task<bool> call_back(invocation_context& context,
                     const std::vector<plugin>& plugins,
                     agent_callback plugin::*hook,
                     const agent& which,
                     const std::vector<agent_callback>& callbacks,
                     std::string_view place) {
  callback_context& seen = context;
  auto answer
    = co_await first_answer(plugins, hook, callbacks, place, context, seen);
  if (!answer) {
    co_await context.emit_leftovers();
    co_return false;
  }
  model_response response(std::move(*answer));
  const auto* options = std::get_if<llm_options>(&which.kind());
  auto said = make_response_event(options != nullptr ? *options : llm_options(),
                                  std::move(response),
                                  *context.lane().facts().environment);
  if (!said)
    throw said.error();
  co_await context.emit(std::move(*said));
  co_return true;
}

// Tells the observer of the run that an agent starts and, however it ends, that
// it has ended.
class announcement {
public:
  announcement(const run_options& options, const std::string& name)
    : options_(options),
      name_(name) {
    if (options_.on_agent)
      options_.on_agent(name_, true);
  }

  ~announcement() {
    if (options_.on_agent)
      options_.on_agent(name_, false);
  }

  announcement(const announcement&) = delete;
  announcement& operator=(const announcement&) = delete;

private:
  const run_options& options_;
  const std::string& name_;
};

// What came of one agent, without those that went on in its place.
struct one_end : agent_end {
  one_end(agent_end end, std::optional<agent> next_ = std::nullopt)
    : agent_end(std::move(end)),
      next(std::move(next_)) {}

  /// Who goes on in its place.
  std::optional<agent> next;
};

// The agent and the callbacks around it.
task<one_end> run_around(lane_actor& lane,
                         invocation_context& context,
                         const agent& which,
                         const json* checkpoint) {
  const auto& plugins = lane.shared_run()->shared->plugins;
  if (checkpoint != nullptr) {
    context.resume(*checkpoint);
  } else {
    const bool is_answered = co_await call_back(context,
                                                plugins,
                                                &plugin::before_agent,
                                                which,
                                                which.before_agent(),
                                                "before_agent");
    if (is_answered)
      co_return agent_end(context.has_escalated());
  }
  std::optional<agent> next;
  std::optional<json> waits;
  try {
    next = co_await run_body(lane, context, which);
  } catch (const agent_paused& paused) {
    waits = paused.checkpoint;
  }
  // A body may have caught it.
  if (!waits)
    waits = context.checkpoint();
  if (waits)
    co_return agent_end(context.has_escalated(), std::move(waits));
  co_await context.emit_leftovers();
  co_await call_back(context,
                     plugins,
                     &plugin::after_agent,
                     which,
                     which.after_agent(),
                     "after_agent");
  co_return one_end(agent_end(context.has_escalated()), std::move(next));
}

task<one_end> run_one(lane_actor& lane,
                      const invocation_context* caller,
                      const agent& which,
                      std::string branch,
                      const json* checkpoint) {
  check_stack(lane, caller, which);
  const announcement announced(lane.shared_run()->options, which.name());
  invocation_context context(
    lane, which, which.name(), std::move(branch), caller);
  std::optional<one_end> end;
  std::optional<error> failure;
  try {
    end = co_await run_around(lane, context, which, checkpoint);
  } catch (...) {
    failure = current_failure(errc::callback_failed,
                              fmt::format("agent '{}'", which.name()));
  }
  if (!failure)
    co_return std::move(*end);
  if (failure->code() != errc::cancelled)
    failure = tell_failure(lane.shared_run()->shared->plugins,
                           &plugin::on_agent_error,
                           "on_agent_error",
                           context,
                           std::move(*failure));
  throw *failure;
}

// Whom a checkpoint is of: the agent itself, or one that it has handed over to;
// null if the tree has no such agent any more.
const agent*
resumed_agent(const lane_actor& lane, const agent& which, const json& from) {
  const auto& name = from.at("agent").get_ref<const std::string&>();
  if (name == which.name())
    return &which;
  return lane.tree() != nullptr ? lane.tree()->find(name) : nullptr;
}

} // namespace

// Who hands over is done: the next agent has the same caller, and the stack
// does not grow however often they hand over.
task<agent_end> run_agent(lane_actor& lane,
                          const invocation_context* caller,
                          const agent& which,
                          std::string branch,
                          const json* checkpoint) {
  auto current = which;
  if (checkpoint != nullptr) {
    const auto* resumed = resumed_agent(lane, which, *checkpoint);
    if (resumed != nullptr)
      current = *resumed;
    else
      checkpoint = nullptr; // It begins anew.
  }
  bool escalated = false;
  for (;;) {
    auto end = co_await run_one(lane, caller, current, branch, checkpoint);
    checkpoint = nullptr;
    end.escalated = end.escalated || escalated;
    if (!end.next)
      co_return agent_end(end.escalated, std::move(end.checkpoint));
    escalated = end.escalated;
    current = std::move(*end.next);
  }
}

task<agent_end> lane_actor::run(invocation_context& caller,
                                const agent& which,
                                const json* checkpoint) {
  return run_agent(*this, &caller, which, caller.branch(), checkpoint);
}

} // namespace troupe::actors
