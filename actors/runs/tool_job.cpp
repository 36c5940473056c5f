#include "troupe/actors/runs/tool_job.hpp"

#include "troupe/actors/running/user_failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

class tool_job::agent_await {
public:
  explicit agent_await(tool_job& job) : job_(job) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    job_.waiting_ = waiting;
    job_.on_agent(job_.shared_from_this());
  }

  void await_resume() const noexcept {}

private:
  tool_job& job_;
};

// Continues on a thread of the pool.
class tool_job::pool_await {
public:
  explicit pool_await(tool_job& job) : job_(job) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    job_.run_->shared->tools.post([self = job_.shared_from_this(), waiting] {
      const run_scope here(self->run_.get());
      waiting.resume();
    });
  }

  void await_resume() const noexcept {}

private:
  tool_job& job_;
};

tool_job::tool_job(std::shared_ptr<run_shared> run,
                   agent owner,
                   tool which,
                   function_call call,
                   std::optional<tool_confirmation> confirmation,
                   std::shared_ptr<staged_deltas> staged,
                   state seen,
                   const std::stop_token& stop)
  : run_(std::move(run)),
    owner_(std::move(owner)),
    which_(std::move(which)),
    call_(std::move(call)),
    staged_(std::move(staged)),
    follow_(stop, [this] { stop_.request_stop(); }),
    context_(run_->facts,
             owner_.name(),
             std::move(seen),
             call_.id,
             stop_.get_token(),
             std::move(confirmation),
             &is_closed_),
    args_(call_.args.data()) {}

// Waits for a slot in the run first, then in the tool. A call with a slot in
// the tool waits for nothing else, so no two calls can wait for each other.
void tool_job::start() {
  if (which_.options().as_agent)
    return enter_tool();
  run_->tool_slots->enter([self = shared_from_this()] {
    auto expected = slot::none;
    if (self->slot_.compare_exchange_strong(expected, slot::held))
      self->enter_tool();
    else
      self->run_->tool_slots->leave();
  });
}

void tool_job::enter_tool() {
  auto begin = [self = shared_from_this()] {
    self->run_->shared->tools.post([self] { self->work(); });
  };
  if (which_.entrance())
    which_.entrance()->enter(std::move(begin));
  else
    begin();
}

// Leaves the run's slot once: when the tool ends, or when it is given up.
void tool_job::leave_run() {
  if (slot_.exchange(slot::left) == slot::held)
    run_->tool_slots->leave();
}

// Starts the tool on a thread of the pool. A coroutine may continue elsewhere.
void tool_job::work() {
  auto expected = phase::waiting;
  if (!where_.compare_exchange_strong(expected, phase::running)) {
    if (which_.entrance())
      which_.entrance()->leave();
    return;
  }
  if (run_->facts.step_times)
    began = run_->facts.environment->now();
  has_begun_ = true;
  if (on_begin)
    on_begin(shared_from_this());
  const run_scope here(run_.get());
  troupe::start(
    perform(),
    [self = shared_from_this()](const std::exception_ptr&) { self->end(); });
}

void tool_job::end() {
  if (which_.entrance())
    which_.entrance()->leave();
  leave_run();
  if (run_->facts.step_times)
    ended = run_->facts.environment->now();
  if (where_.exchange(phase::returned) != phase::abandoned) {
    // Later tools of the turn can read these writes.
    if (outcome && !requested)
      staged_->add(recorded);
    return on_end(shared_from_this());
  }
  if (holds_thread())
    run_->shared->tools.take_back();
}

bool tool_job::withdraw() {
  auto expected = phase::waiting;
  if (!where_.compare_exchange_strong(expected, phase::abandoned))
    return false;
  leave_run();
  return true;
}

tool_job::phase tool_job::abandon() {
  auto was = where_.load();
  while (was != phase::returned
         && !where_.compare_exchange_weak(was, phase::abandoned)) {
  }
  if (was == phase::returned)
    return was;
  is_closed_ = true;
  leave_run();
  stop_.request_stop();
  if (was == phase::running && holds_thread())
    run_->shared->tools.give_up();
  return was;
}

bool tool_job::holds_thread() const noexcept {
  const auto& run = which_.options().run;
  return run && !run.is_coroutine();
}

// -- the tool and its callbacks -----------------------------------------------

// Asks the plugins at `hook`, then the agent's own callbacks.
template <class Hook, class... More>
std::optional<json> tool_job::first_answer(Hook plugin::*hook,
                                           std::vector<Hook> llm_options::*list,
                                           const More&... more) {
  for (const auto& each : run_->shared->plugins)
    if (each.*hook)
      if (auto answer = (each.*hook)(which_, args_, context_, more...))
        return answer;
  if (const auto* options = std::get_if<llm_options>(&owner_.kind()))
    for (const auto& each : options->*list)
      if (auto answer = each(which_, args_, context_, more...))
        return answer;
  return std::nullopt;
}

// Returns true if a callback may be called after the tool.
bool tool_job::has_later_callbacks() const {
  const auto* options = std::get_if<llm_options>(&owner_.kind());
  if (options != nullptr
      && !(options->after_tool.empty() && options->on_tool_error.empty()))
    return true;
  return std::ranges::any_of(run_->shared->plugins, [](const plugin& each) {
    return each.after_tool || each.on_tool_error;
  });
}

task<> tool_job::perform() {
  if (stop_.stop_requested())
    co_return;
  try {
    outcome = co_await produce();
  } catch (...) {
    outcome = current_failure(errc::tool_failed,
                              fmt::format("tool '{}' failed", call_.name));
  }
  // An abandoned call has no use for callbacks.
  if (where_ == phase::abandoned)
    co_return;
  // Callbacks may block, and a coroutine may be on a thread that others need.
  if (which_.options().run.is_coroutine() && has_later_callbacks())
    co_await pool_await(*this);
  // The tool is called again when the user has answered.
  if (outcome && context_.requested()) {
    requested = context_.requested();
    outcome = json();
    co_return;
  }
  try {
    if (!outcome)
      if (auto instead = first_answer(&plugin::on_tool_error,
                                      &llm_options::on_tool_error,
                                      outcome.error()))
        outcome = std::move(*instead);
    if (outcome)
      if (auto instead = first_answer(
            &plugin::after_tool, &llm_options::after_tool, *outcome))
        outcome = std::move(*instead);
    if (outcome)
      if (auto fits = check_json(*outcome, "the result"); !fits)
        outcome = error(fits.error().code(),
                        fmt::format("tool '{}' failed: {}",
                                    call_.name,
                                    fits.error().message()));
  } catch (...) {
    outcome
      = current_failure(errc::callback_failed,
                        fmt::format("a callback around tool '{}'", call_.name));
  }
  if (!outcome)
    co_return;
  context_.actions().skip_summarization |= which_.options().skip_summarization;
  recorded = std::move(changed_.state_delta);
  bases = std::move(changed_bases_);
  for (auto& each : context_.state().reads().take_bases())
    bases.push_back(std::move(each));
  recorded.merge(context_.state().take());
  actions = std::move(context_.actions());
  actions.artifact_delta.merge(changed_.artifact_delta);
  attached = context_.take_attached();
}

task<json> tool_job::produce() {
  if (auto instead
      = first_answer(&plugin::before_tool, &llm_options::before_tool))
    co_return std::move(*instead);
  if (auto fits = which_.check(args_); !fits)
    throw error(
      errc::invalid_argument,
      fmt::format("the arguments do not fit: {}", fits.error().message()));
  const auto& options = which_.options();
  const auto& rule = options.require_confirmation;
  if (const auto& answer = context_.confirmation()) {
    // The user's answer counts, even if the rule no longer holds for the
    // arguments. A tool without a rule has asked the question in its code, and
    // its code handles a refusal.
    if (rule.can_hold() && !answer->confirmed)
      co_return json{{"error", "the user has rejected this call"}};
  } else if (rule.holds_for(args_)) {
    // The question shows the arguments as callbacks changed them, since the
    // tool is called with these.
    const bool is_changed = !equal(args_, call_.args.data());
    context_.request_confirmation(
      fmt::format("May '{}' be called?", which_.name()),
      is_changed ? json{{"args", args_}} : json());
    co_return json();
  }
  if (options.run)
    co_return co_await options.run(args_, context_);
  co_await agent_await(*this);
  if (!said_)
    throw said_.error();
  co_return std::move(*said_);
}

void tool_job::agent_ended(result<json> said,
                           event_actions changed,
                           std::vector<write_basis> based) {
  said_ = std::move(said);
  changed_ = std::move(changed);
  changed_bases_ = std::move(based);
  // Resumed on the pool: callbacks follow, which may block.
  run_->shared->tools.post(
    [self = shared_from_this()] { self->waiting_.resume(); });
}

} // namespace troupe::actors
