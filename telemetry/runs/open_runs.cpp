#include "troupe/telemetry/runs/open_runs.hpp"

#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/core/support/passwords.hpp"
#include "troupe/telemetry/runs/instruments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

namespace troupe::telemetry {

namespace {

std::optional<std::array<std::uint8_t, 16>> bytes_of(std::string_view uuid) {
  std::array<std::uint8_t, 16> bytes{};
  std::size_t digits = 0;
  for (const char each : uuid) {
    if (each == '-')
      continue;
    const auto value = each >= '0' && each <= '9'   ? each - '0'
                       : each >= 'a' && each <= 'f' ? each - 'a' + 10
                       : each >= 'A' && each <= 'F' ? each - 'A' + 10
                                                    : -1;
    if (value < 0 || digits == 32)
      return std::nullopt;
    auto& byte = bytes[digits / 2];
    byte = static_cast<std::uint8_t>(byte * 16 + value);
    ++digits;
  }
  if (digits != 32)
    return std::nullopt;
  return bytes;
}

// The trace of a run: the UUID of its invocation id, so that the spans of a run
// that another process has recovered belong to the same trace.
trace_id trace_of(const std::string& invocation_id, environment& ids) {
  std::string_view id = invocation_id;
  if (id.starts_with("e-"))
    id.remove_prefix(2);
  if (const auto bytes = bytes_of(id); bytes && *bytes != trace_id())
    return *bytes;
  return bytes_of(ids.new_id()).value_or(trace_id{1});
}

// The last 56 bits of a UUID are random.
bool is_in_sample(const trace_id& trace, double share) {
  std::uint64_t random = 0;
  for (std::size_t at = 9; at < trace.size(); ++at)
    random = (random << 8U) | trace[at];
  return static_cast<double>(random) < std::ldexp(share, 56);
}

void mark_failed(span& made, const error& why) {
  const std::string type(to_string(why.code()));
  made.has_failed = true;
  made.failure = without_passwords(why.message());
  made.attributes.emplace_back("error.type", type);
  span_event told;
  told.at = made.ended;
  told.name = "exception";
  told.attributes
    = {{"exception.type", type}, {"exception.message", made.failure}};
  made.events.push_back(std::move(told));
}

void add_type(attributes& to, const error* why) {
  if (why != nullptr)
    to.emplace_back("error.type", std::string(to_string(why->code())));
}

// Returns true if the agent at `place` was called as a tool of the agent at
// `above`, by this call. Places have `_` for some characters of the id.
bool is_below_call(std::string_view place,
                   std::string_view above,
                   std::string_view call) {
  if (!place.starts_with(above))
    return false;
  place.remove_prefix(above.size());
  if (!place.starts_with('/'))
    return false;
  place.remove_prefix(1);
  if (place.size() <= call.size() || place[call.size()] != '/')
    return false;
  return std::ranges::equal(
    place.substr(0, call.size()), call, [](char shown, char own) {
      return shown == own || shown == '_';
    });
}

} // namespace

open_runs::open_runs(const options& chosen,
                     sender& line,
                     const agent_register& agents)
  : sampled_(chosen.sampled),
    follows_parent_(chosen.follows_parent),
    environment_(chosen.environment),
    line_(line),
    agents_(agents) {}

// -- looking up ---------------------------------------------------------------

run_ptr open_runs::find(const std::string& id) const {
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : found->second;
}

bool open_runs::has(const run_ptr& run) const {
  return find(run->id) == run;
}

std::vector<run_ptr> open_runs::of_runtime(std::size_t of) const {
  std::vector<run_ptr> found;
  for (const auto& [id, run] : runs_)
    if (run->of == of)
      found.push_back(run);
  return found;
}

std::vector<std::pair<run_ptr, agent_ptr>>
open_runs::stopped_agents(std::string_view name) const {
  std::vector<std::pair<run_ptr, agent_ptr>> found;
  const auto named = stopped_agents_.find(name);
  if (named == stopped_agents_.end())
    return found;
  for (const auto& [agent, in] : named->second)
    if (auto run = in.lock())
      found.emplace_back(std::move(run), agent);
  return found;
}

bool open_runs::has(const open_run& run, const agent_ptr& agent) const {
  const auto found = run.agents.find(agent->place);
  return found != run.agents.end() && found->second == agent;
}

void open_runs::note_stop(const run_ptr& run, const agent_ptr& agent) {
  if (!has(*run, agent) || agent->stopped != 0)
    return;
  agent->stopped = now();
  stopped_agents_[agent->name].emplace(agent, run);
}

open_runs::left_work open_runs::close() {
  is_closed_ = true;
  left_work left;
  left.runs.swap(runs_);
  left.agents.swap(stopped_agents_);
  return left;
}

// -- parts --------------------------------------------------------------------

nanoseconds_since_1970 open_runs::now() const {
  return static_cast<nanoseconds_since_1970>(
    std::chrono::nanoseconds(environment_->now().time_since_epoch()).count());
}

span_id open_runs::new_span_id() const {
  const auto bytes
    = bytes_of(environment_->new_id()).value_or(std::array<std::uint8_t, 16>{});
  span_id made{};
  // The last half of a UUID has more random bits.
  std::copy(bytes.begin() + 8, bytes.end(), made.begin());
  if (made == span_id())
    made.back() = 1;
  return made;
}

run_ptr open_runs::open(std::size_t of, const callback_context& context) {
  if (is_closed_)
    return nullptr;
  if (auto known = find(context.invocation_id()))
    return known;
  if (runs_.size() >= runs_max)
    return nullptr;
  auto run = std::make_shared<open_run>();
  run->of = of;
  run->id = context.invocation_id();
  run->app = context.session().app;
  run->session = context.session().id;
  run->root = agents_.root_of(run->app);
  const auto parent = read_traceparent(context.trace().parent);
  run->made.trace = parent ? parent->trace : trace_of(run->id, *environment_);
  run->made.id = new_span_id();
  run->made.began = now();
  run->last_heard = run->made.began;
  run->is_sampled = parent && follows_parent_
                      ? parent->is_sampled
                      : is_in_sample(run->made.trace, sampled_);
  if (parent) {
    run->made.parent = parent->span;
    run->trace_state = context.trace().state;
  }
  runs_.emplace(run->id, run);
  return run;
}

span_id open_runs::parent_of(const open_run& run,
                             const invocation_context& context,
                             const open_agent* above) const {
  if (above == nullptr)
    return run.made.id;
  for (const auto& [call, each] : run.tools)
    if (each.owner == above->place
        && is_below_call(context.place(), above->place, call))
      return each.made.id;
  return above->made.id;
}

agent_ptr open_runs::open(open_run& run,
                          const invocation_context& context,
                          added_agents& added) {
  // A node of a workflow has a context, too, whose name is that of the
  // workflow.
  const bool is_agent = !context.place().empty()
                        && name_at(context.place()) == context.agent_name();
  if (is_agent)
    if (const auto known = run.agents.find(context.place());
        known != run.agents.end())
      return known->second;
  const auto above = context.caller() == nullptr
                       ? agent_ptr()
                       : open(run, *context.caller(), added);
  if (!is_agent)
    return above;
  auto agent = std::make_shared<open_agent>();
  agent->place = context.place();
  agent->above = above ? above->place : std::string();
  agent->name = context.agent_name();
  agent->branch = context.branch();
  auto& made = agent->made;
  made.trace = run.made.trace;
  made.id = new_span_id();
  made.parent = parent_of(run, context, above.get());
  made.began = now();
  const auto facts = agents_.find(run.app, agent->name);
  agent->is_workflow = facts && facts->is_workflow;
  const auto* work = agent->is_workflow ? "invoke_workflow" : "invoke_agent";
  made.name = fmt::format("{} {}", work, agent->name);
  made.attributes.emplace_back("gen_ai.operation.name", work);
  made.attributes.emplace_back(agent->is_workflow ? "gen_ai.workflow.name"
                                                  : "gen_ai.agent.name",
                               agent->name);
  if (facts)
    add_if(made.attributes, "gen_ai.agent.description", facts->description);
  made.attributes.emplace_back("gen_ai.conversation.id", run.session);
  agent->last_heard = made.began;
  if (run.root.empty())
    run.root = agent->name;
  run.agents.emplace(agent->place, agent);
  added.emplace_back(agent, context.stop());
  return agent;
}

trace_context open_runs::cause_of(const open_run& run,
                                  const span_id& above) const {
  trace_parent parent;
  parent.trace = run.made.trace;
  parent.span = above;
  parent.is_sampled = run.is_sampled;
  trace_context made;
  made.parent = to_traceparent(parent);
  made.state = run.trace_state;
  return made;
}

void open_runs::give(const open_run& run, span made) {
  if (!run.is_sampled)
    return;
  made.trace_state = run.trace_state;
  line_.give(std::move(made));
}

void open_runs::end_model_call(const open_run& run,
                               open_agent& from,
                               nanoseconds_since_1970 at,
                               const error& why) {
  if (!from.asked)
    return;
  auto asked = std::move(*from.asked);
  from.asked.reset();
  asked.made.ended = std::max(at, asked.made.began);
  attributes measured{{"gen_ai.operation.name", "generate_content"}};
  add_if(measured, "gen_ai.request.model", asked.name);
  add_if(measured, "gen_ai.provider.name", asked.provider);
  add_type(measured, &why);
  line_.histograms().record(model_duration,
                            seconds_between(asked.made.began, asked.made.ended),
                            std::move(measured));
  mark_failed(asked.made, why);
  give(run, std::move(asked.made));
}

// Ends a call of a tool. The caller removes it.
void open_runs::end(open_run& run,
                    const std::string& call,
                    open_tool& done,
                    nanoseconds_since_1970 at,
                    const error* why) {
  run.owners.erase(call);
  done.made.ended = std::max(at, done.made.began);
  attributes measured{{"gen_ai.tool.name", done.tool},
                      {"gen_ai.agent.name", done.agent}};
  add_type(measured, why);
  line_.histograms().record(tool_duration,
                            seconds_between(done.made.began, done.made.ended),
                            std::move(measured));
  if (why != nullptr)
    mark_failed(done.made, *why);
  give(run, std::move(done.made));
}

// Ends an agent, and the work below it that is still open. Such work has ended
// before without a hook, or fails for the same reason.
void open_runs::end(open_run& run,
                    const std::string& place,
                    nanoseconds_since_1970 at,
                    const error* why,
                    ended_work& ended) {
  const auto found = run.agents.find(place);
  if (found == run.agents.end())
    return;
  const auto agent = found->second;
  run.agents.erase(found);
  ended.agents.push_back(agent);
  if (agent->stopped != 0)
    forget_stopped(agent);
  end_model_call(
    run,
    *agent,
    at,
    why != nullptr ? *why : error(errc::cancelled, "the call was given up"));
  std::vector<agent_ptr> below;
  for (const auto& [where, each] : run.agents)
    if (each->above == agent->place)
      below.push_back(each);
  for (const auto& each : below)
    end(run,
        each->place,
        why != nullptr ? at : std::min(at, each->last_heard),
        why,
        ended);
  for (auto each = run.tools.begin(); each != run.tools.end();) {
    if (each->second.owner != agent->place) {
      ++each;
      continue;
    }
    end(run, each->first, each->second, at, why);
    each = run.tools.erase(each);
  }
  auto& made = agent->made;
  made.ended = std::max(at, made.began);
  run.last_heard = std::max(run.last_heard, made.ended);
  if (const auto above = run.agents.find(agent->above);
      above != run.agents.end())
    above->second->last_heard = std::max(above->second->last_heard, made.ended);
  const auto duration = seconds_between(made.began, made.ended);
  attributes measured{
    {agent->is_workflow ? "gen_ai.workflow.name" : "gen_ai.agent.name",
     agent->name}};
  if (agent->is_workflow) {
    measured.emplace_back("gen_ai.workflow.nested", true);
    add_type(measured, why);
    line_.histograms().record(workflow_duration, duration, std::move(measured));
  } else {
    line_.histograms().record(
      agent_model_calls, static_cast<double>(agent->model_calls), measured);
    line_.histograms().record(
      agent_tool_calls, static_cast<double>(agent->tool_calls), measured);
    add_type(measured, why);
    line_.histograms().record(agent_duration, duration, std::move(measured));
  }
  if (why != nullptr)
    mark_failed(made, *why);
  give(run, std::move(made));
}

void open_runs::end(const run_ptr& run,
                    nanoseconds_since_1970 at,
                    const error* why,
                    ended_work& ended) {
  while (!run->agents.empty()) {
    const auto& first = *run->agents.begin()->second;
    end(*run,
        std::string(first.place),
        why != nullptr ? at : std::min(at, first.last_heard),
        why,
        ended);
  }
  for (auto& [call, each] : std::exchange(run->tools, {}))
    end(*run, call, each, at, why);
  auto& made = run->made;
  const auto name = run->root.empty() ? run->app : run->root;
  made.name = "invoke_workflow " + name;
  made.ended = std::max(at, made.began);
  made.attributes = {{"gen_ai.operation.name", "invoke_workflow"},
                     {"gen_ai.conversation.id", run->session},
                     {"gen_ai.workflow.name", name},
                     {"gcp.vertex.agent.invocation_id", run->id}};
  attributes measured{{"gen_ai.workflow.name", name},
                      {"gen_ai.workflow.nested", false}};
  add_type(measured, why);
  line_.histograms().record(workflow_duration,
                            seconds_between(made.began, made.ended),
                            std::move(measured));
  if (why != nullptr)
    mark_failed(made, *why);
  give(*run, std::move(made));
  runs_.erase(run->id);
  ended.runs.push_back(run);
}

void open_runs::forget_stopped(const agent_ptr& agent) {
  const auto found = stopped_agents_.find(agent->name);
  if (found == stopped_agents_.end())
    return;
  found->second.erase(agent);
  if (found->second.empty())
    stopped_agents_.erase(found);
}

// The agent that has made the event. Without a place in the event, several
// agents may have the same name and branch: those that are tools. One that
// waits for its answer's event comes first then.
open_agent* open_runs::speaker_of(open_run& run, const event& said) const {
  if (const auto path = path_in(said); !path.empty())
    if (const auto found = run.agents.find(std::string(path));
        found != run.agents.end())
      return found->second.get();
  open_agent* speaker = nullptr;
  for (const auto& [place, each] : run.agents) {
    if (each->name != said.author || each->branch != said.branch)
      continue;
    if (each->has_answer)
      return each.get();
    speaker = each.get();
  }
  return speaker;
}

} // namespace troupe::telemetry
