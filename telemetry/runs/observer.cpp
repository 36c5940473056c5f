#include "troupe/telemetry/runs/observer.hpp"

#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/core/support/passwords.hpp"
#include "troupe/telemetry/runs/instruments.hpp"
#include "troupe/telemetry/runs/message_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace troupe::telemetry {

namespace {

// Time after which a cancelled run counts as ended. A run that has ended by a
// deadline is told as failed meanwhile.
constexpr std::chrono::seconds cancel_grace{10};

// Name of the append of an event. A lane has one append under way.
std::string append_of(const event& said) {
  return fmt::format("{}\n{}\n{}", said.author, said.branch, path_in(said));
}

const invocation_context& body_of(const readonly_context& context) {
  // The runtime calls these hooks with the context of the body (plugin.hpp
  // shows a part of it). The class has no virtual members, so this is not
  // checked.
  return static_cast<const invocation_context&>(context);
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

} // namespace

run_observer::run_observer(const options& chosen,
                           sender& line,
                           const agent_register& agents)
  : has_spans_(!chosen.traces.url.empty()),
    has_logs_(!chosen.logs.url.empty()),
    spans_have_contents_(has_spans_ && chosen.spans_have_contents),
    logs_have_contents_(has_logs_ && chosen.logs_have_contents),
    environment_(chosen.environment),
    line_(line),
    agents_(agents),
    table_(chosen, line, agents) {}

// -- cancellations ------------------------------------------------------------

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
        stopped->stopped = self->table_.now();
      }
      self->environment_->call_after(cancel_grace, [weak, left] {
        const auto later = weak.lock();
        const auto run_left = left.lock();
        if (!later || !run_left)
          return;
        ended_work ended;
        const error why(errc::cancelled, "the run was cancelled");
        const std::lock_guard guard(later->mutex_);
        if (later->table_.has(run_left))
          later->table_.end(run_left, run_left->stopped, &why, ended);
      });
    });
}

void run_observer::follow_stop(const run_ptr& run,
                               const agent_ptr& agent,
                               const std::stop_token& token) {
  agent->stop.emplace(token,
                      [weak = weak_from_this(),
                       left = std::weak_ptr(run),
                       of = std::weak_ptr(agent)] {
                        const auto self = weak.lock();
                        const auto in = left.lock();
                        const auto stopped = of.lock();
                        if (!self || !in || !stopped)
                          return;
                        const std::lock_guard guard(self->mutex_);
                        self->table_.note_stop(in, stopped);
                      });
}

void run_observer::leave_agent(std::string_view name) {
  ended_work ended;
  const error why(errc::cancelled, "the agent was cancelled");
  const std::lock_guard guard(mutex_);
  for (const auto& [run, agent] : table_.stopped_agents(name))
    // The end of another one may have ended it.
    if (table_.has(*run, agent))
      table_.end(*run, agent->place, table_.now(), &why, ended);
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
    run = table_.open(of, context);
    if (run && has_spans_)
      context.set_trace(table_.cause_of(*run, run->made.id));
  }
  follow_stops(run, body_of(context), {});
}

void run_observer::end_run(const callback_context& context) {
  ended_work ended;
  const std::lock_guard guard(mutex_);
  if (const auto run = table_.find(context.invocation_id()))
    table_.end(run, table_.now(), nullptr, ended);
}

void run_observer::fail_run(const readonly_context& context, const error& why) {
  ended_work ended;
  const std::lock_guard guard(mutex_);
  if (const auto run = table_.find(context.invocation_id()))
    table_.end(run, table_.now(), &why, ended);
}

// -- agents -------------------------------------------------------------------

void run_observer::begin_agent(std::size_t of, callback_context& context) {
  added_agents added;
  ended_work ended;
  run_ptr run;
  {
    const std::lock_guard guard(mutex_);
    run = table_.open(of, context);
    if (!run)
      return;
    // One of the same place has ended without a hook.
    if (const auto former = run->agents.find(body_of(context).place());
        former != run->agents.end())
      table_.end(*run,
                 std::string(former->first),
                 former->second->last_heard,
                 nullptr,
                 ended);
    const auto agent = table_.open(*run, body_of(context), added);
    if (has_spans_)
      context.set_trace(
        table_.cause_of(*run, agent ? agent->made.id : run->made.id));
  }
  follow_stops(run, body_of(context), added);
}

void run_observer::end_agent(const callback_context& context) {
  ended_work ended;
  const std::lock_guard guard(mutex_);
  if (const auto run = table_.find(context.invocation_id()))
    table_.end(*run, body_of(context).place(), table_.now(), nullptr, ended);
}

void run_observer::fail_agent(const readonly_context& context,
                              const error& why) {
  ended_work ended;
  const std::lock_guard guard(mutex_);
  if (const auto run = table_.find(context.invocation_id()))
    table_.end(*run, body_of(context).place(), table_.now(), &why, ended);
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
    run = table_.open(of, context);
    if (!run)
      return;
    const auto agent = table_.open(*run, body_of(context), added);
    if (agent) {
      made.trace = run->made.trace;
      made.id = table_.new_span_id();
      made.parent = agent->made.id;
      made.began = table_.now();
      ++agent->model_calls;
      agent->last_heard = made.began;
      if (has_spans_)
        asked.trace = table_.cause_of(*run, made.id);
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
  const auto run = table_.find(context.invocation_id());
  if (!run)
    return;
  const auto found = run->agents.find(body_of(context).place());
  if (found == run->agents.end() || !found->second->asked)
    return;
  auto& agent = *found->second;
  auto asked = std::move(*agent.asked);
  agent.asked.reset();
  auto& made = asked.made;
  made.ended = std::max(table_.now(), made.began);
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
  table_.give(*run, std::move(made));
}

void run_observer::fail_model(const callback_context& context,
                              const error& why) {
  const std::lock_guard guard(mutex_);
  const auto run = table_.find(context.invocation_id());
  if (!run)
    return;
  if (const auto found = run->agents.find(body_of(context).place());
      found != run->agents.end())
    table_.end_model_call(*run, *found->second, table_.now(), why);
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
  const auto run = table_.open(of, context);
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
  made.id = table_.new_span_id();
  made.began = table_.now();
  made.parent = above != nullptr ? above->made.id : run->made.id;
  if (above != nullptr) {
    ++above->tool_calls;
    above->last_heard = made.began;
    call.owner = above->place;
  }
  if (has_spans_)
    context.set_trace(table_.cause_of(*run, made.id));
  run->tools.insert_or_assign(context.function_call_id(), std::move(call));
}

void run_observer::end_tool(const tool_context& context, const json& answer) {
  std::string shown;
  if (spans_have_contents_)
    shown = text_of(answer);
  const std::lock_guard guard(mutex_);
  const auto run = table_.find(context.invocation_id());
  if (!run)
    return;
  const auto found = run->tools.find(context.function_call_id());
  if (found == run->tools.end())
    return;
  if (spans_have_contents_)
    found->second.made.attributes.emplace_back("gen_ai.tool.call.result",
                                               std::move(shown));
  table_.end(
    *run, std::string(found->first), found->second, table_.now(), nullptr);
  run->tools.erase(found);
}

void run_observer::fail_tool(const tool_context& context, const error& why) {
  const std::lock_guard guard(mutex_);
  const auto run = table_.find(context.invocation_id());
  if (!run)
    return;
  const auto found = run->tools.find(context.function_call_id());
  if (found == run->tools.end())
    return;
  table_.end(
    *run, std::string(found->first), found->second, table_.now(), &why);
  run->tools.erase(found);
}

// -- events -------------------------------------------------------------------

void run_observer::hear(const event& said) {
  const std::lock_guard guard(mutex_);
  const auto found = table_.find(said.invocation_id);
  if (!found)
    return;
  auto& run = *found;
  run.last_heard = table_.now();
  auto* speaker = table_.speaker_of(run, said);
  if (speaker != nullptr) {
    speaker->last_heard = run.last_heard;
    speaker->has_answer = false;
  }
  run.appends.insert_or_assign(append_of(said), run.last_heard);
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
    table_.end(run, answer->id, open->second, run.last_heard, &why);
    run.tools.erase(open);
  }
}

void run_observer::end_append(const event& said) {
  const std::lock_guard guard(mutex_);
  const auto run = table_.find(said.invocation_id);
  if (!run)
    return;
  const auto begun = run->appends.extract(append_of(said));
  if (!begun)
    return;
  const auto* speaker = table_.speaker_of(*run, said);
  span made;
  made.began = begun.mapped();
  made.ended = std::max(table_.now(), made.began);
  line_.histograms().record(
    append_duration, seconds_between(made.began, made.ended), {});
  if (!has_spans_)
    return;
  made.trace = run->made.trace;
  made.id = table_.new_span_id();
  made.parent = speaker != nullptr ? speaker->made.id : run->made.id;
  made.name = "append_event";
  made.attributes = {{"gen_ai.agent.name", said.author},
                     {"gen_ai.conversation.id", run->session},
                     {"gcp.vertex.agent.event_id", said.id},
                     {"gcp.vertex.agent.invocation_id", said.invocation_id}};
  table_.give(*run, std::move(made));
}

// -- the end ------------------------------------------------------------------

void run_observer::end_all(std::size_t of) {
  ended_work ended;
  const error why(errc::cancelled, "the run was cancelled");
  const std::lock_guard guard(mutex_);
  for (const auto& run : table_.of_runtime(of))
    table_.end(
      run, run->stopped != 0 ? run->stopped : run->last_heard, &why, ended);
}

void run_observer::stop() {
  open_runs::left_work left;
  const std::lock_guard guard(mutex_);
  left = table_.close();
}

} // namespace troupe::telemetry
