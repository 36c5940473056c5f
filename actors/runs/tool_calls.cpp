#include "troupe/actors/runs/tool_calls.hpp"

#include "troupe/actors/engine/inbox_actor.hpp"
#include "troupe/actors/running/temp_space.hpp"
#include "troupe/actors/runs/lane.hpp"
#include "troupe/actors/runs/nested_session.hpp"
#include "troupe/actors/runs/wait_answer.hpp"
#include "troupe/agents/turns/delegation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::actors {

namespace {

// The start of an agent as a tool. Destroyed unused, because the lane no longer
// waits, it ends the call as cancelled.
class agent_start {
public:
  explicit agent_start(std::shared_ptr<tool_job> called)
    : called_(std::move(called)) {}

  agent_start(const agent_start&) = delete;
  agent_start& operator=(const agent_start&) = delete;

  ~agent_start() {
    if (called_)
      called_->agent_ended(error(errc::cancelled, "the tool did not start"),
                           {});
  }

  std::shared_ptr<tool_job> take() { return std::exchange(called_, nullptr); }

private:
  std::shared_ptr<tool_job> called_;
};

// The message to an agent that is called as a tool.
event request_of(const json& args) {
  const bool is_text = args.size() == 1 && args.contains("request")
                       && args.at("request").is_string();
  return event(content(
    "user",
    {part(is_text ? args.at("request").get<std::string>() : to_text(args))}));
}

// The answer of the agent: the text of its last event, one line for each part,
// or the JSON value if it has an output schema.
result<json> answer_of(const agent& which, const event_ptr& last) {
  std::string text;
  bool is_first = true;
  if (last)
    for (const auto& element : last->content.parts)
      if (const auto* words = element.text();
          words != nullptr && !element.thought) {
        text += is_first ? "" : "\n";
        text += *words;
        is_first = false;
      }
  const auto* options = std::get_if<llm_options>(&which.kind());
  if (options == nullptr || !options->output_schema)
    return json(std::move(text));
  auto parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded())
    return error(
      errc::model_failed,
      fmt::format("the answer of agent '{}' is not JSON", which.name()));
  return parsed;
}

// The place above the agent of a call. Vendors make ids of calls with any
// characters, also those that separate places.
std::string path_of_call(const std::string& above, std::string call) {
  std::ranges::replace_if(
    call,
    [](char each) {
      return std::string_view("/@.~\n").find(each) != std::string_view::npos;
    },
    '_');
  return fmt::format("{}{}{}", above, above.empty() ? "" : "/", call);
}

std::optional<std::chrono::milliseconds> time_for(const tool& which,
                                                  const run_shared& run) {
  const auto own = which.options().timeout;
  return own ? own : run.options.tool_timeout;
}

error too_late(const tool& which, const run_shared& run) {
  return {
    errc::deadline_exceeded,
    fmt::format(
      "tool '{}' gave no answer within {} ms",
      which.name(),
      time_for(which, run).value_or(std::chrono::milliseconds(0)).count())};
}

} // namespace

tool_calls::tool_calls(lane_actor& owner,
                       tool_turn& request,
                       std::uint64_t wait)
  : owner_(owner),
    request_(request),
    wait_(wait) {
  const auto staged = std::make_shared<staged_deltas>();
  const auto newest = owner_.view().state;
  const auto& run = owner_.shared_run();
  for (auto& each : request_.calls) {
    auto& job = jobs_.emplace_back();
    if (each.which == nullptr)
      continue;
    state seen(newest, run->facts.limits, staged);
    if (run->facts.lost_updates != lost_updates::ignore)
      seen.reads().start();
    job = std::make_shared<tool_job>(run,
                                     *request_.owner,
                                     *each.which,
                                     each.call,
                                     each.confirmation,
                                     staged,
                                     std::move(seen),
                                     owner_.stop());
    ++left_;
  }
}

void tool_calls::start() {
  for (std::size_t index = 0; index < jobs_.size(); ++index)
    if (jobs_[index]) {
      prepare(index, *jobs_[index]);
      jobs_[index]->start();
    }
}

// The lane gets results as letters; the returned function may be called on any
// thread.
template <class Act>
auto tool_calls::on_lane(Act act) const {
  auto answer = std::make_shared<wait_answer>(owner_, wait_, nullptr);
  return [answer, act](const auto&... values) {
    answer->with_lane([&](lane_actor& lane) {
      (*answer)([&lane, act, values...] {
        act(lane.calls(), values...);
        lane.go_on_with_calls();
      });
    });
  };
}

void tool_calls::prepare(std::size_t index, tool_job& job) {
  job.on_end = on_lane(
    [index](tool_calls& calls, const std::shared_ptr<tool_job>& ended) {
      calls.receive(index, *ended);
    });
  const auto& options = job.which().options();
  if (options.as_agent)
    // `agent_start` answers the call in every case, even if the lane drops it.
    job.on_agent =
      [start_on_lane = on_lane(
         [index](tool_calls& calls, const std::shared_ptr<agent_start>& start) {
           calls.start_agent(index, start->take());
         })](const std::shared_ptr<tool_job>& called) {
        start_on_lane(std::make_shared<agent_start>(called));
      };
  if (const auto time = time_for(job.which(), *owner_.shared_run()))
    job.on_begin =
      [give_up = on_lane([index](tool_calls& calls) { calls.give_up(index); }),
       time = *time,
       environment
       = owner_.facts().environment](const std::shared_ptr<tool_job>& begun) {
        environment->call_after(time, [give_up, late = std::weak_ptr(begun)] {
          const auto held = late.lock();
          if (held && held->is_running())
            give_up();
        });
      };
}

void tool_calls::receive(std::size_t index, tool_job& ended) {
  if (!jobs_[index])
    return; // It was given up before.
  auto& answered = request_.calls[index];
  answered.outcome = std::move(ended.outcome);
  answered.attached = std::move(ended.attached);
  answered.recorded = std::move(ended.recorded);
  answered.bases = std::move(ended.bases);
  answered.actions = std::move(ended.actions);
  answered.requested = std::move(ended.requested);
  answered.began = ended.began;
  answered.ended = ended.ended;
  finish(index);
}

// Ends a call whose time limit has passed.
void tool_calls::give_up(std::size_t index) {
  if (const auto found = agents_.find(index); found != agents_.end()) {
    found->second.timed_out = true;
    found->second.lane->tell(std::make_unique<struct cancel>(
      error(errc::cancelled, "its time limit has passed")));
    return;
  }
  const auto job = jobs_[index];
  if (!job || job->abandon() == tool_job::phase::returned)
    return;
  owner_.shared_run()->add_abandoned(job);
  auto& answered = request_.calls[index];
  answered.outcome = too_late(job->which(), *owner_.shared_run());
  if (owner_.facts().step_times && job->is_running()) {
    answered.began = job->began;
    answered.ended = owner_.facts().environment->now();
  }
  finish(index);
}

void tool_calls::finish(std::size_t index) {
  jobs_[index] = nullptr;
  --left_;
}

void tool_calls::cancel(const error& reason) {
  for (const auto& [index, call] : agents_)
    call.lane->tell(std::make_unique<struct cancel>(reason));
  // Calls that have not begun need not be awaited.
  for (std::size_t index = 0; index < jobs_.size(); ++index)
    if (jobs_[index] && jobs_[index]->withdraw()) {
      request_.calls[index].outcome = reason;
      finish(index);
    }
}

void tool_calls::abandon() {
  grace_is_over_ = true;
  for (std::size_t index = 0; index < jobs_.size(); ++index) {
    const auto job = jobs_[index];
    if (!job || agents_.contains(index))
      continue;
    const auto was = job->abandon();
    request_.calls[index].outcome
      = error(errc::cancelled,
              fmt::format("tool '{}' did not {}",
                          job->which().name(),
                          was == tool_job::phase::waiting
                            ? "start"
                            : "stop in time and was abandoned"));
    if (was == tool_job::phase::running)
      owner_.shared_run()->add_abandoned(job);
    finish(index);
  }
}

// -- agents as tools ----------------------------------------------------------

void tool_calls::start_agent(std::size_t index,
                             const std::shared_ptr<tool_job>& job) {
  if (owner_.cancelled())
    return job->agent_ended(*owner_.cancelled(), {});
  // The call was given up before its agent could start.
  if (jobs_[index] != job)
    return job->agent_ended(too_late(job->which(), *owner_.shared_run()), {});
  const auto& which = *job->which().options().as_agent;
  auto& call = agents_[index];
  call.job = job;
  if (job->which().options().runs_in_session) {
    call.lane = owner_.spawn_below(
      index,
      {.which = which,
       .caller = request_.caller,
       .branch = delegation_branch(request_.caller->branch(),
                                   which.name(),
                                   request_.calls[index].call.id),
       .above
       = path_of_call(request_.caller->place(), request_.calls[index].call.id),
       .visit_key = owner_.start().visit_key});
    return;
  }
  call.session = std::make_shared<nested_session>(
    which, owner_.view().state, request_of(job->args()), owner_.facts());
  call.lane = owner_.spawn_below(
    index,
    {.which = which,
     .caller = request_.caller,
     .temp
     = std::make_shared<temp_space>(scope_state(owner_.view().state.temp)),
     .nested = call.session,
     .above
     = path_of_call(request_.caller->place(), request_.calls[index].call.id)});
}

void tool_calls::receive(lane_ended& ended) {
  const auto call = std::move(agents_.extract(ended.index).mapped());
  if (grace_is_over_) {
    // The grace period has ended: callbacks that would follow are not awaited.
    call.job->abandon();
    owner_.shared_run()->add_abandoned(call.job);
    request_.calls[ended.index].outcome = *owner_.cancelled();
    finish(ended.index);
    return call.job->agent_ended(*owner_.cancelled(), {});
  }
  if (call.timed_out)
    return call.job->agent_ended(
      too_late(call.job->which(), *owner_.shared_run()), {});
  if (!ended.outcome)
    return call.job->agent_ended(ended.outcome.error(), {});
  if (ended.outcome->paused)
    return call.job->agent_ended(
      error(errc::tool_failed,
            fmt::format("agent '{}' cannot wait for an answer from outside, "
                        "because it runs as a tool",
                        call.job->which().name())),
      {});
  auto said = ended.output ? result<json>(std::move(*ended.output))
                           : answer_of(*call.job->which().options().as_agent,
                                       call.session ? call.session->last_said()
                                                    : ended.last_said);
  if (!said)
    return call.job->agent_ended(said.error(), {});
  if (!call.session)
    return call.job->agent_ended(std::move(said), {});
  call.job->agent_ended(
    std::move(said), call.session->take_changes(), call.session->take_bases());
}

} // namespace troupe::actors
