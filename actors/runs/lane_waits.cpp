// The waits of a lane on its coroutine's behalf: timers, newer state, older
// events and models. Each wait may be ended early by a cancellation.

#include "troupe/actors/failure.hpp"
#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/running/user_failure.hpp"
#include "troupe/actors/runs/lane.hpp"
#include "troupe/actors/runs/nested_session.hpp"
#include "troupe/actors/runs/wait_answer.hpp"
#include "troupe/contexts/first_invocation.hpp"
#include "troupe/contexts/lanes/isolation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stop_token>

namespace troupe::actors {

namespace {

error missing_events(const session_key& session,
                     const history_request& asked,
                     std::uint64_t found) {
  return error(errc::corrupt,
               fmt::format("session {} has {} of its events {} to {}",
                           to_string(session),
                           found,
                           asked.first,
                           asked.last));
}

// The events that were read, as a slice. Fails if one is missing.
result<event_slice> as_slice(result<std::vector<event_ptr>> loaded,
                             const history_request& asked,
                             const session_key& session) {
  if (!loaded)
    return loaded.error();
  const auto count = asked.last - asked.first + 1;
  if (loaded->size() != count)
    return missing_events(session, asked, loaded->size());
  event_log page(asked.first - 1);
  for (auto& each : *loaded)
    page.push_back(std::move(each));
  return page.slice().live();
}

} // namespace

template <class Request>
std::shared_ptr<wait_answer> lane_actor::wait_for(Request& request) {
  const auto wait = begin_wait(
    request.waiting, [&request](const error& why) { request.outcome = why; });
  if (!wait)
    return nullptr;
  return std::make_shared<wait_answer>(
    *this, *wait, [this, &request](const error& why) {
      request.outcome = why;
      end_wait();
    });
}

void lane_actor::sleep(sleep_request& request) {
  const auto arrive = wait_for(request);
  if (!arrive)
    return;
  run_->shared->environment->call_after(request.duration, [arrive] {
    arrive->with_lane(
      [&](lane_actor& lane) { (*arrive)([&lane] { lane.end_wait(); }); });
  });
}

void lane_actor::refresh(refresh_request& request) {
  const auto arrive = wait_for(request);
  if (!arrive)
    return;
  auto wanted = std::make_unique<get>();
  wanted->key = run_->facts.session;
  wanted->refresh = true;
  wanted->options.num_recent_events = 0;
  wanted->done = [this, arrive, &request](const result<session>& fetched) {
    (*arrive)([this,
               &request,
               failed = fetched ? std::optional<error>() : fetched.error()] {
      // A run is cancelled with its session, even if another process deleted
      // it.
      if (failed)
        request.outcome = failed->code() == errc::not_found
                            ? deleted_session(run_->facts.session)
                            : *failed;
      end_wait();
    });
  };
  run_->app->tell(std::move(wanted));
}

void lane_actor::read(history_request& request) {
  const auto here = view();
  // The session may have fewer events than when the agent looked.
  if (request.last > here.revision()) {
    request.outcome = missing_events(
      run_->facts.session,
      request,
      here.revision() + 1 - std::min(request.first, here.revision() + 1));
    return post(request.waiting);
  }
  // The session may have been trimmed, too.
  request.first = std::max(request.first, here.trimmed_to + 1);
  if (request.first > request.last)
    return post(request.waiting);
  if (request.first > here.before) {
    request.outcome = here.events.before(request.last + 1).from(request.first);
    return post(request.waiting);
  }
  const auto arrive = wait_for(request);
  if (!arrive)
    return;
  run_->shared->store->load_events(
    run_->facts.session,
    request.first,
    request.last,
    [this, arrive, &request](result<std::vector<event_ptr>> loaded) {
      (*arrive)([this, &request, loaded = std::move(loaded)]() mutable {
        request.outcome
          = as_slice(std::move(loaded), request, run_->facts.session);
        end_wait();
      });
    });
}

void lane_actor::ask(model_call& request) {
  const auto arrive = wait_for(request);
  if (!arrive)
    return;
  const auto& agent = request.request.agent;
  const auto finish_with
    = [this, arrive, &request](result<model_response> outcome) {
        (*arrive)([this, &request, outcome = std::move(outcome)]() mutable {
          if (outcome)
            count_tokens(*outcome);
          request.outcome = std::move(outcome);
          end_wait();
        });
      };
  if (const auto most = run_->options.tokens_max;
      most && run_->tokens.load() >= *most)
    return finish_with(
      error(errc::limit_exceeded,
            fmt::format("the run has used {} tokens, and its budget is {}; "
                        "raise tokens_max if it needs more",
                        run_->tokens.load(),
                        *most)));
  if (auto reason = check_budget(*run_))
    return finish_with(std::move(*reason));
  if (run_->model_calls.fetch_add(1) >= run_->options.model_calls_max)
    return finish_with(
      error(errc::limit_exceeded,
            fmt::format("the run has made its {} model calls; raise "
                        "model_calls_max if it needs more",
                        run_->options.model_calls_max)));
  const auto who
    = fmt::format("model '{}' of agent '{}'", request.asked->name(), agent);
  event piece;
  piece.invocation_id = run_->facts.invocation_id;
  piece.author = agent;
  piece.branch = request.branch;
  piece.partial = true;
  request.request.environment = run_->shared->environment;
  request.request.retries = run_->retries;
  request.request.stop = stop();
  if (const auto time = run_->options.model_timeout)
    request.request.stop = give_up_after(*time, request, who);
  try {
    request.asked->generate(
      request.request,
      [finish_with,
       who,
       piece,
       scope = request.scope,
       first = run_->first_invocation,
       is_hidden = nested() != nullptr || run_->is_compacting,
       following
       = std::weak_ptr(run_->control)](result<model_response> response) {
        if (response && response->partial) {
          // No caller follows the pieces of an agent that is a tool, or of a
          // summary.
          if (is_hidden)
            return;
          auto said = std::make_shared<event>(piece);
          said->content = std::move(response->content);
          said->extra = std::move(response->extra);
          if (!scope.empty())
            set_scope(*said, scope);
          set_first_invocation(*said, first);
          // Weak: a model that answers late must not keep the run alive.
          if (const auto control = following.lock())
            control->deliver(std::move(said));
          return;
        }
        if (!response)
          response
            = error(response.error().code(),
                    fmt::format("{}: {}", who, response.error().message()));
        finish_with(std::move(response));
      });
  } catch (...) {
    finish_with(current_failure(errc::model_failed, who));
  }
}

// A count beyond the range of numbers means that the budget is used up.
void lane_actor::count_tokens(const model_response& answer) {
  constexpr double most = 1e15;
  if (const auto used = total_tokens(answer))
    run_->tokens += static_cast<std::uint64_t>(std::clamp(*used, 0.0, most));
}

// Starts the timer of the model call that the lane waits for; returns the stop
// token of the call.
std::stop_token lane_actor::give_up_after(std::chrono::milliseconds time,
                                          model_call& request,
                                          const std::string& who) {
  struct timer {
    std::stop_source stop;
    std::stop_callback<std::function<void()>> follow;

    explicit timer(const std::stop_token& lane)
      : follow(lane, [this] { stop.request_stop(); }) {}
  };

  const auto made = std::make_shared<timer>(stop());
  const auto late = std::make_shared<wait_answer>(*this, wait_, nullptr);
  // The timer ends when its call has ended.
  model_timer_ = made;
  run_->shared->environment->call_after(
    time, [=, this, &request, timer = std::weak_ptr(made)] {
      const auto running = timer.lock();
      if (!running)
        return;
      // Answered before the stop is requested: a model may answer at once when
      // told to stop, and the first answer counts.
      (*late)([=, this, &request] {
        request.outcome
          = error(errc::deadline_exceeded,
                  fmt::format("{}: no answer within {} ms", who, time.count()));
        end_wait();
      });
      running->stop.request_stop();
    });
  return made->stop.get_token();
}

} // namespace troupe::actors
