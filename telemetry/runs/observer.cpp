#include "troupe/telemetry/runs/observer.hpp"

#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/core/support/passwords.hpp"
#include "troupe/telemetry/runs/instruments.hpp"
#include "troupe/telemetry/runs/message_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

namespace troupe::telemetry {

namespace {

// Time after which a cancelled run counts as ended. A run that has ended by a
// deadline is told as failed meanwhile.
constexpr std::chrono::seconds cancel_grace{10};

const invocation_context& body_of(const readonly_context& context) {
  // The runtime calls these hooks with the context of the body (plugin.hpp
  // shows a part of it). The class has no virtual members, so this is not
  // checked.
  return static_cast<const invocation_context&>(context);
}

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

double seconds_between(nanoseconds_since_1970 began,
                       nanoseconds_since_1970 ended) {
  return ended > began ? static_cast<double>(ended - began) / 1e9 : 0;
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

void add_if(attributes& to, const char* key, const std::string& text) {
  if (!text.empty())
    to.emplace_back(key, text);
}

void add_type(attributes& to, const error* why) {
  if (why != nullptr)
    to.emplace_back("error.type", std::string(to_string(why->code())));
}

void add_settings(attributes& to, const value& config) {
  if (!config->is_object())
    return;
  for (const auto& [field, key] :
       {std::pair("temperature", "gen_ai.request.temperature"),
        std::pair("topP", "gen_ai.request.top_p"),
        std::pair("topK", "gen_ai.request.top_k")})
    if (const auto found = config->find(field);
        found != config->end() && found->is_number())
      to.emplace_back(key, found->get<double>());
  if (const auto found = config->find("maxOutputTokens");
      found != config->end() && found->is_number_integer())
    to.emplace_back("gen_ai.request.max_tokens", found->get<std::int64_t>());
}

std::string word_in(const value& fields, const char* name) {
  if (!fields->is_object())
    return {};
  const auto found = fields->find(name);
  return found != fields->end() && found->is_string()
           ? found->get<std::string>()
           : std::string();
}

std::optional<std::int64_t> tokens_in(const value& fields, const char* name) {
  if (!fields->is_object())
    return std::nullopt;
  const auto usage = fields->find("usageMetadata");
  if (usage == fields->end() || !usage->is_object())
    return std::nullopt;
  const auto found = usage->find(name);
  if (found == usage->end() || !found->is_number_integer())
    return std::nullopt;
  return found->get<std::int64_t>();
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char each) {
    return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a')
                                      : each;
  });
  return text;
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

run_observer::run_observer(const options& chosen,
                           sender& line,
                           const agent_register& agents)
  : has_spans_(!chosen.traces.url.empty()),
    has_logs_(!chosen.logs.url.empty()),
    spans_have_contents_(has_spans_ && chosen.spans_have_contents),
    logs_have_contents_(has_logs_ && chosen.logs_have_contents),
    sampled_(chosen.sampled),
    follows_parent_(chosen.follows_parent),
    environment_(chosen.environment),
    line_(line),
    agents_(agents) {}

// -- parts --------------------------------------------------------------------

nanoseconds_since_1970 run_observer::now() const {
  return static_cast<nanoseconds_since_1970>(
    std::chrono::nanoseconds(environment_->now().time_since_epoch()).count());
}

span_id run_observer::new_span_id() const {
  const auto bytes
    = bytes_of(environment_->new_id()).value_or(std::array<std::uint8_t, 16>{});
  span_id made{};
  // The last half of a UUID has more random bits.
  std::copy(bytes.begin() + 8, bytes.end(), made.begin());
  if (made == span_id())
    made.back() = 1;
  return made;
}

run_observer::run_ptr
run_observer::find_run(const readonly_context& context) const {
  const auto found = runs_.find(context.invocation_id());
  return found == runs_.end() ? nullptr : found->second;
}

run_observer::run_ptr run_observer::open(std::size_t of,
                                         const callback_context& context) {
  if (is_over_)
    return nullptr;
  if (auto known = find_run(context))
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

span_id run_observer::parent_of(const open_run& run,
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

run_observer::agent_ptr run_observer::open(open_run& run,
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

trace_context run_observer::cause_of(const open_run& run,
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

void run_observer::give(const open_run& run, span made) {
  if (!run.is_sampled)
    return;
  made.trace_state = run.trace_state;
  line_.give(std::move(made));
}

void run_observer::end_model_call(const open_run& run,
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
void run_observer::end(open_run& run,
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
void run_observer::end(open_run& run,
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

void run_observer::end(const run_ptr& run,
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

// -- cancellations ------------------------------------------------------------

void run_observer::forget_stopped(const agent_ptr& agent) {
  const auto found = stopped_agents_.find(agent->name);
  if (found == stopped_agents_.end())
    return;
  found->second.erase(agent);
  if (found->second.empty())
    stopped_agents_.erase(found);
}

// A recovered run may begin with any of its hooks. Its own stop is that of the
// root agent: a lane may be stopped alone. Requires that `mutex_` is not held.
void run_observer::follow_stops(const run_ptr& run,
                                const invocation_context& context,
                                const added_agents& added) {
  if (!run)
    return;
  bool is_first = false;
  {
    const std::lock_guard guard(mutex_);
    is_first = !std::exchange(run->is_followed, true);
  }
  if (is_first) {
    const auto* root = &context;
    while (root->caller() != nullptr)
      root = root->caller();
    follow_stop(run, root->stop());
  }
  for (const auto& [agent, token] : added)
    follow_stop(run, agent, token);
}

// No hook tells that a run or a lane was cancelled. Requires that `mutex_` is
// not held: the callback is called at once if the stop was requested before.
void run_observer::follow_stop(const run_ptr& run,
                               const std::stop_token& token) {
  run->stop.emplace(
    token, [weak = weak_from_this(), left = std::weak_ptr(run)] {
      const auto self = weak.lock();
      const auto stopped = left.lock();
      if (!self || !stopped)
        return;
      {
        const std::lock_guard guard(self->mutex_);
        stopped->stopped = self->now();
      }
      self->environment_->call_after(cancel_grace, [weak, left] {
        const auto later = weak.lock();
        const auto run_left = left.lock();
        if (!later || !run_left)
          return;
        ended_work ended;
        const error why(errc::cancelled, "the run was cancelled");
        const std::lock_guard guard(later->mutex_);
        const auto found = later->runs_.find(run_left->id);
        if (found != later->runs_.end() && found->second == run_left
            && !later->is_over_)
          later->end(run_left, run_left->stopped, &why, ended);
      });
    });
}

void run_observer::follow_stop(const run_ptr& run,
                               const agent_ptr& agent,
                               const std::stop_token& token) {
  agent->stop.emplace(
    token,
    [weak = weak_from_this(),
     left = std::weak_ptr(run),
     of = std::weak_ptr(agent)] {
      const auto self = weak.lock();
      const auto in = left.lock();
      const auto stopped = of.lock();
      if (!self || !in || !stopped)
        return;
      const std::lock_guard guard(self->mutex_);
      const auto found = in->agents.find(stopped->place);
      if (found == in->agents.end() || found->second != stopped
          || stopped->stopped != 0)
        return;
      stopped->stopped = self->now();
      self->stopped_agents_[stopped->name].emplace(stopped, in);
    });
}

void run_observer::leave_agent(std::string_view name) {
  ended_work ended;
  const error why(errc::cancelled, "the agent was cancelled");
  const std::lock_guard guard(mutex_);
  const auto found = stopped_agents_.find(name);
  if (found == stopped_agents_.end())
    return;
  // The end of an agent removes it, and those below it, from the map.
  const auto stopped = found->second;
  for (const auto& [agent, in] : stopped) {
    const auto run = in.lock();
    if (!run)
      continue;
    if (const auto open_one = run->agents.find(agent->place);
        open_one != run->agents.end() && open_one->second == agent)
      end(*run, agent->place, now(), &why, ended);
  }
}

// -- runs ---------------------------------------------------------------------

std::size_t run_observer::add_runtime() {
  const std::lock_guard guard(mutex_);
  return ++runtimes_;
}

void run_observer::begin_run(std::size_t of, callback_context& context) {
  run_ptr run;
  {
    const std::lock_guard guard(mutex_);
    run = open(of, context);
    if (run && has_spans_)
      context.set_trace(cause_of(*run, run->made.id));
  }
  follow_stops(run, body_of(context), {});
}

void run_observer::end_run(const callback_context& context) {
  ended_work ended;
  const std::lock_guard guard(mutex_);
  if (const auto run = find_run(context))
    end(run, now(), nullptr, ended);
}

void run_observer::fail_run(const readonly_context& context, const error& why) {
  ended_work ended;
  const std::lock_guard guard(mutex_);
  if (const auto run = find_run(context))
    end(run, now(), &why, ended);
}

// -- agents -------------------------------------------------------------------

void run_observer::begin_agent(std::size_t of, callback_context& context) {
  added_agents added;
  ended_work ended;
  run_ptr run;
  {
    const std::lock_guard guard(mutex_);
    run = open(of, context);
    if (!run)
      return;
    // One of the same place has ended without a hook.
    if (const auto former = run->agents.find(body_of(context).place());
        former != run->agents.end())
      end(*run,
          std::string(former->first),
          former->second->last_heard,
          nullptr,
          ended);
    const auto agent = open(*run, body_of(context), added);
    if (has_spans_)
      context.set_trace(cause_of(*run, agent ? agent->made.id : run->made.id));
  }
  follow_stops(run, body_of(context), added);
}

void run_observer::end_agent(const callback_context& context) {
  ended_work ended;
  const std::lock_guard guard(mutex_);
  if (const auto run = find_run(context))
    end(*run, body_of(context).place(), now(), nullptr, ended);
}

void run_observer::fail_agent(const readonly_context& context,
                              const error& why) {
  ended_work ended;
  const std::lock_guard guard(mutex_);
  if (const auto run = find_run(context))
    end(*run, body_of(context).place(), now(), &why, ended);
}

// -- models -------------------------------------------------------------------

void run_observer::begin_model(std::size_t of,
                               callback_context& context,
                               model_request& asked) {
  open_model call;
  if (spans_have_contents_ || logs_have_contents_) {
    call.instructions = system_instructions(asked);
    call.inputs = input_messages(asked);
  }
  auto& made = call.made;
  made.attributes
    = {{"gen_ai.operation.name", "generate_content"},
       {"gen_ai.agent.name", context.agent_name()},
       {"gen_ai.conversation.id", context.session().id},
       {"gcp.vertex.agent.invocation_id", context.invocation_id()}};
  add_settings(made.attributes, asked.generation_config);
  if (!asked.tools.empty())
    made.attributes.emplace_back("gen_ai.tool.definitions",
                                 tool_definitions(asked));
  if (spans_have_contents_) {
    made.attributes.emplace_back("gen_ai.system_instructions",
                                 call.instructions);
    made.attributes.emplace_back("gen_ai.input.messages", call.inputs);
  }
  if (!logs_have_contents_) {
    call.instructions.clear();
    call.inputs.clear();
  }
  if (const auto facts
      = agents_.find(context.session().app, context.agent_name()))
    call.name = facts->model;
  call.provider = provider_of(call.name);
  made.name
    = call.name.empty() ? "generate_content" : "generate_content " + call.name;
  add_if(made.attributes, "gen_ai.request.model", call.name);
  add_if(made.attributes, "gen_ai.provider.name", call.provider);

  added_agents added;
  run_ptr run;
  {
    const std::lock_guard guard(mutex_);
    run = open(of, context);
    if (!run)
      return;
    const auto agent = open(*run, body_of(context), added);
    if (agent) {
      made.trace = run->made.trace;
      made.id = new_span_id();
      made.parent = agent->made.id;
      made.began = now();
      ++agent->model_calls;
      agent->last_heard = made.began;
      if (has_spans_)
        asked.trace = cause_of(*run, made.id);
      agent->asked = std::move(call);
    }
  }
  follow_stops(run, body_of(context), added);
}

void run_observer::end_model(const callback_context& context,
                             const model_response& answer) {
  const auto reason = lower_case(word_in(answer.extra, "finishReason"));
  const auto inputs = tokens_in(answer.extra, "promptTokenCount");
  const auto outputs = tokens_in(answer.extra, "candidatesTokenCount");
  std::string said;
  if (spans_have_contents_ || logs_have_contents_)
    said = output_messages(answer, reason);
  const std::lock_guard guard(mutex_);
  const auto run = find_run(context);
  if (!run)
    return;
  const auto found = run->agents.find(body_of(context).place());
  if (found == run->agents.end() || !found->second->asked)
    return;
  auto& agent = *found->second;
  auto asked = std::move(*agent.asked);
  agent.asked.reset();
  auto& made = asked.made;
  made.ended = std::max(now(), made.began);
  agent.last_heard = made.ended;
  const auto version = word_in(answer.extra, "modelVersion");
  if (asked.name.empty() && !version.empty()) {
    // The agent was not described.
    asked.name = version;
    asked.provider = provider_of(version);
    made.name = "generate_content " + version;
    made.attributes.emplace_back("gen_ai.request.model", version);
    add_if(made.attributes, "gen_ai.provider.name", asked.provider);
  }
  add_if(made.attributes, "gen_ai.response.model", version);
  add_if(
    made.attributes, "gen_ai.response.id", word_in(answer.extra, "responseId"));
  if (!reason.empty())
    made.attributes.emplace_back("gen_ai.response.finish_reasons",
                                 std::vector<std::string>{reason});
  if (inputs)
    made.attributes.emplace_back("gen_ai.usage.input_tokens", *inputs);
  if (outputs)
    made.attributes.emplace_back("gen_ai.usage.output_tokens", *outputs);
  if (const auto cached = tokens_in(answer.extra, "cachedContentTokenCount"))
    made.attributes.emplace_back("gen_ai.usage.cache_read.input_tokens",
                                 *cached);
  const auto code = word_in(answer.extra, "errorCode");
  if (!code.empty()) {
    made.has_failed = true;
    made.failure = without_passwords(word_in(answer.extra, "errorMessage"));
    made.attributes.emplace_back("error.type", code);
  }

  attributes measured{{"gen_ai.operation.name", "generate_content"}};
  add_if(measured, "gen_ai.request.model", asked.name);
  add_if(measured, "gen_ai.provider.name", asked.provider);
  for (const auto& [type, count] :
       {std::pair("input", inputs), std::pair("output", outputs)}) {
    if (!count)
      continue;
    auto counted = measured;
    counted.emplace_back("gen_ai.token.type", type);
    line_.histograms().record(
      model_tokens, static_cast<double>(*count), std::move(counted));
  }
  add_if(measured, "error.type", code);
  line_.histograms().record(model_duration,
                            seconds_between(made.began, made.ended),
                            std::move(measured));

  if (has_logs_) {
    log_record record;
    record.at = made.ended;
    record.event_name = "gen_ai.client.inference.operation.details";
    record.trace = made.trace;
    record.span = made.id;
    record.is_sampled = has_spans_ && run->is_sampled;
    for (const auto& each : made.attributes)
      if (each.key != "gen_ai.input.messages"
          && each.key != "gen_ai.system_instructions")
        record.attributes.push_back(each);
    if (logs_have_contents_) {
      record.attributes.emplace_back("gen_ai.system_instructions",
                                     asked.instructions);
      record.attributes.emplace_back("gen_ai.input.messages", asked.inputs);
      record.attributes.emplace_back("gen_ai.output.messages", said);
    }
    line_.give(std::move(record));
  }
  if (spans_have_contents_)
    made.attributes.emplace_back("gen_ai.output.messages", said);
  agent.has_answer = true;
  give(*run, std::move(made));
}

void run_observer::fail_model(const callback_context& context,
                              const error& why) {
  const std::lock_guard guard(mutex_);
  const auto run = find_run(context);
  if (!run)
    return;
  if (const auto found = run->agents.find(body_of(context).place());
      found != run->agents.end())
    end_model_call(*run, *found->second, now(), why);
}

// -- tools --------------------------------------------------------------------

void run_observer::begin_tool(std::size_t of,
                              const tool& which,
                              const json& args,
                              tool_context& context) {
  open_tool call;
  call.tool = which.name();
  call.agent = context.agent_name();
  auto& made = call.made;
  made.name = "execute_tool " + call.tool;
  made.attributes = {{"gen_ai.operation.name", "execute_tool"},
                     {"gen_ai.tool.name", call.tool},
                     {"gen_ai.tool.description", which.description()},
                     {"gen_ai.tool.type", "function"},
                     {"gen_ai.tool.call.id", context.function_call_id()},
                     {"gen_ai.agent.name", call.agent},
                     {"gen_ai.conversation.id", context.session().id}};
  if (spans_have_contents_)
    made.attributes.emplace_back("gen_ai.tool.call.arguments", text_of(args));
  const std::lock_guard guard(mutex_);
  const auto run = open(of, context);
  if (!run)
    return;
  open_agent* above = nullptr;
  if (const auto owner = run->owners.find(context.function_call_id());
      owner != run->owners.end()) {
    if (const auto found = run->agents.find(owner->second);
        found != run->agents.end())
      above = found->second.get();
  }
  // The event of the call is from an earlier run.
  if (above == nullptr)
    for (const auto& [place, each] : run->agents)
      if (each->name == call.agent)
        above = each.get();
  made.trace = run->made.trace;
  made.id = new_span_id();
  made.began = now();
  made.parent = above != nullptr ? above->made.id : run->made.id;
  if (above != nullptr) {
    ++above->tool_calls;
    above->last_heard = made.began;
    call.owner = above->place;
  }
  if (has_spans_)
    context.set_trace(cause_of(*run, made.id));
  run->tools.insert_or_assign(context.function_call_id(), std::move(call));
}

void run_observer::end_tool(const tool_context& context, const json& answer) {
  std::string shown;
  if (spans_have_contents_)
    shown = text_of(answer);
  const std::lock_guard guard(mutex_);
  const auto run = find_run(context);
  if (!run)
    return;
  const auto found = run->tools.find(context.function_call_id());
  if (found == run->tools.end())
    return;
  if (spans_have_contents_)
    found->second.made.attributes.emplace_back("gen_ai.tool.call.result",
                                               std::move(shown));
  end(*run, std::string(found->first), found->second, now(), nullptr);
  run->tools.erase(found);
}

void run_observer::fail_tool(const tool_context& context, const error& why) {
  const std::lock_guard guard(mutex_);
  const auto run = find_run(context);
  if (!run)
    return;
  const auto found = run->tools.find(context.function_call_id());
  if (found == run->tools.end())
    return;
  end(*run, std::string(found->first), found->second, now(), &why);
  run->tools.erase(found);
}

// -- events -------------------------------------------------------------------

// The agent that has made the event. Without a place in the event, several
// agents may have the same name and branch: those that are tools. One that
// waits for its answer's event comes first then.
run_observer::open_agent* run_observer::speaker_of(open_run& run,
                                                   const event& said) const {
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

void run_observer::hear(const event& said) {
  const std::lock_guard guard(mutex_);
  const auto found = runs_.find(said.invocation_id);
  if (found == runs_.end())
    return;
  auto& run = *found->second;
  run.last_heard = now();
  auto* speaker = speaker_of(run, said);
  if (speaker != nullptr) {
    speaker->last_heard = run.last_heard;
    speaker->has_answer = false;
  }
  for (const auto& each : said.content.parts) {
    if (const auto* call = each.call(); call != nullptr && speaker != nullptr)
      run.owners.insert_or_assign(call->id, speaker->place);
    const auto* answer = each.response();
    if (answer == nullptr)
      continue;
    // A call that is open here was given up, and no hook has told it.
    const auto open = run.tools.find(answer->id);
    if (open == run.tools.end())
      continue;
    const error why(errc::tool_failed, "the call was given up");
    end(run, answer->id, open->second, run.last_heard, &why);
    run.tools.erase(open);
  }
}

// -- the end ------------------------------------------------------------------

void run_observer::end_all(std::size_t of) {
  ended_work ended;
  const error why(errc::cancelled, "the run was cancelled");
  const std::lock_guard guard(mutex_);
  std::vector<run_ptr> left;
  for (const auto& [id, run] : runs_)
    if (run->of == of)
      left.push_back(run);
  for (const auto& run : left)
    end(run, run->stopped != 0 ? run->stopped : run->last_heard, &why, ended);
}

void run_observer::stop() {
  std::map<std::string, run_ptr> left;
  decltype(stopped_agents_) left_agents;
  const std::lock_guard guard(mutex_);
  is_over_ = true;
  left.swap(runs_);
  left_agents.swap(stopped_agents_);
}

} // namespace troupe::telemetry
