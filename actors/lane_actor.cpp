#include "troupe/actors/lane_actor.hpp"

#include "troupe/actors/agent_body.hpp"
#include "troupe/actors/caf_door.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/fan_out.hpp"
#include "troupe/actors/invocation_actor.hpp"
#include "troupe/actors/nested_session.hpp"
#include "troupe/actors/owner_actor.hpp"
#include "troupe/actors/session_actor.hpp"
#include "troupe/actors/spawn.hpp"
#include "troupe/actors/store_queue.hpp"
#include "troupe/actors/temp_space.hpp"
#include "troupe/actors/tool_calls.hpp"
#include "troupe/actors/user_failure.hpp"
#include "troupe/actors/wait_answer.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

// What was read, if it is all that was asked for.
result<event_slice> as_slice(result<std::vector<event_ptr>> loaded,
                             const history_request& asked,
                             const session_key& session) {
  if (!loaded)
    return loaded.error();
  const auto count = asked.last - asked.first + 1;
  if (loaded->empty())
    return unknown_session(session);
  if (loaded->size() != count)
    return error(errc::corrupt,
                 fmt::format("session {} has {} of its events {} to {}",
                             to_string(session),
                             loaded->size(),
                             asked.first,
                             asked.last));
  event_log page;
  for (auto& each : *loaded)
    page.push_back(std::move(each));
  return page.slice();
}

} // namespace

lane_actor::lane_actor(caf::actor_config& config,
                       std::shared_ptr<run_shared> run,
                       agent which,
                       std::stop_source stop,
                       std::shared_ptr<temp_space> temp,
                       invocation_actor& self)
  : inbox_actor(config, run->shared),
    run_(std::move(run)),
    start_{.which = std::move(which), .temp = std::move(temp)},
    root_(&self),
    stop_(std::move(stop)) {}

lane_actor::lane_actor(caf::actor_config& config,
                       std::shared_ptr<run_shared> run,
                       invocation_actor& root,
                       lane_actor& parent,
                       std::size_t index,
                       lane_start start)
  : inbox_actor(config, run->shared),
    run_(std::move(run)),
    start_(std::move(start)),
    root_(&root),
    parent_(&parent),
    index_(index) {}

lane_actor::~lane_actor() = default;

const agent& lane_actor::root_agent() const noexcept {
  return nested() ? nested()->root() : *run_->root;
}

const agent_tree* lane_actor::tree() const noexcept {
  return nested() ? nested()->tree() : run_->tree.get();
}

step_view lane_actor::view() const {
  auto newest = nested() ? nested()->read() : run_->view->read();
  newest.state.temp = temp()->read();
  return newest;
}

// Agents that are tools have a history of their own, which is short.
std::uint64_t lane_actor::first_read(const agent& which) const {
  return nested() ? 1 : run_->history.first_read(which.reads_itself());
}

caf::behavior lane_actor::make_behavior() {
  return closed_door();
}

error lane_actor::closed_reason() const {
  return {errc::cancelled, "the run has ended"};
}

void lane_actor::deliver(letter_ptr received) {
  switch (received->kind) {
  case letter_kind::begin:
    return start_body();
  case letter_kind::resume:
    return go_on(static_cast<actors::resume&>(*received).suspended);
  case letter_kind::answer:
    return receive(static_cast<answer&>(*received));
  case letter_kind::more_lanes:
    if (!lanes_)
      return;
    lanes_->more_under_way = false;
    return go_on_with_lanes();
  case letter_kind::lane_timer:
    return receive(static_cast<lane_timer&>(*received));
  case letter_kind::lane_ended:
    return receive(static_cast<lane_ended&>(*received));
  case letter_kind::cancel:
    return cancel_lane(static_cast<struct cancel&>(*received).reason);
  default:
    assert(false && "a letter that no lane receives");
  }
}

// -- the coroutine -----------------------------------------------------------

task<agent_end> lane_actor::body() {
  return run_agent(
    *this, start_.caller, start_.which, start_.branch, start_.from);
}

void lane_actor::start_body() {
  const executor::turn here(this);
  const run_scope run_here(run_.get());
  // On this lane, which waits for it.
  troupe::detail::run_detached(
    [](lane_actor& self) -> task<> {
      result<agent_end> outcome = agent_end();
      if (self.cancelled_) {
        outcome = *self.cancelled_;
      } else {
        try {
          outcome = co_await self.body();
        } catch (...) {
          outcome = current_failure(
            errc::callback_failed,
            fmt::format("agent '{}'", self.start_.which.name()));
        }
      }
      self.finish(std::move(outcome));
    }(*this),
    [](const std::exception_ptr&) {});
}

void lane_actor::finish(result<agent_end> outcome) {
  auto ended = std::make_unique<lane_ended>();
  ended->index = index_;
  ended->last_said = std::move(last_said_);
  ended->outcome = std::move(outcome);
  parent_->tell(std::move(ended));
  quit();
}

void lane_actor::go_on(std::coroutine_handle<> suspended) {
  const executor::turn here(this);
  const run_scope run_here(run_.get());
  suspended.resume();
}

void lane_actor::post(std::coroutine_handle<> suspended) {
  tell(std::make_unique<struct resume>(suspended));
}

// -- waiting -----------------------------------------------------------------

std::optional<std::uint64_t>
lane_actor::begin_wait(std::coroutine_handle<> waiting,
                       std::function<void(const error&)> interrupt) {
  if (cancelled_) {
    interrupt(*cancelled_);
    post(waiting);
    return std::nullopt;
  }
  waits_ = true;
  waiting_ = waiting;
  interrupt_ = std::move(interrupt);
  return ++wait_;
}

void lane_actor::end_wait() {
  waits_ = false;
  model_timer_ = nullptr;
  interrupt_ = nullptr;
  go_on(waiting_);
}

void lane_actor::receive(answer& arrived) {
  if (waits_ && arrived.wait == wait_)
    arrived.deliver();
}

void lane_actor::cancel_lane(const error& reason) {
  if (cancelled_)
    return;
  cancelled_ = reason;
  stop_.request_stop();
  if (lanes_)
    lanes_->cancel(reason);
  if (calls_) {
    calls_->cancel(reason);
    if (calls_->is_over())
      return go_on_with_calls();
    auto grace = std::make_shared<wait_answer>(*this, wait_, nullptr);
    run_->shared->environment->call_after(run_->options.grace, [grace] {
      grace->with_lane([&](lane_actor& lane) {
        (*grace)([&lane] {
          lane.calls_->abandon();
          lane.go_on_with_calls();
        });
      });
    });
  } else if (waits_) {
    interrupt_(reason);
    end_wait();
  }
}

void lane_actor::emit(emit_request& request) {
  if (cancelled_) {
    request.outcome = *cancelled_;
    return post(request.waiting);
  }
  auto sent = std::make_unique<actors::emit>();
  sent->from = this;
  sent->request = &request;
  root_->tell(std::move(sent));
}

void lane_actor::sleep(sleep_request& request) {
  const auto wait = begin_wait(
    request.waiting, [&request](const error& why) { request.outcome = why; });
  if (!wait)
    return;
  auto arrive = std::make_shared<wait_answer>(
    *this, *wait, [this, &request](const error& why) {
      request.outcome = why;
      end_wait();
    });
  run_->shared->environment->call_after(request.duration, [arrive] {
    arrive->with_lane(
      [&](lane_actor& lane) { (*arrive)([&lane] { lane.end_wait(); }); });
  });
}

void lane_actor::refresh(refresh_request& request) {
  const auto wait = begin_wait(
    request.waiting, [&request](const error& why) { request.outcome = why; });
  if (!wait)
    return;
  auto wanted = std::make_unique<get>();
  wanted->key = run_->facts.session;
  wanted->refresh = true;
  wanted->options.num_recent_events = 0;
  auto arrive = std::make_shared<wait_answer>(*this, *wait, interrupt_);
  wanted->done = [this, arrive, &request](const result<session>& fetched) {
    (*arrive)([this,
               &request,
               failed = fetched ? std::optional<error>() : fetched.error()] {
      // A run ends with its session, whoever has deleted that.
      if (failed)
        request.outcome = failed->code() == errc::not_found
                            ? deleted_session(run_->facts.session)
                            : *failed;
      end_wait();
    });
  };
  as_inbox(run_->app).tell(std::move(wanted));
}

void lane_actor::read(history_request& request) {
  const auto here = view();
  if (request.first > here.before) {
    request.outcome = here.events.part(request.first - here.before - 1,
                                       request.last - here.before);
    return post(request.waiting);
  }
  const auto wait = begin_wait(
    request.waiting, [&request](const error& why) { request.outcome = why; });
  if (!wait)
    return;
  auto arrive = std::make_shared<wait_answer>(*this, *wait, interrupt_);
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
  const auto& agent = request.request.agent;
  const auto wait = begin_wait(
    request.waiting, [&request](const error& why) { request.outcome = why; });
  if (!wait)
    return;
  auto arrive = std::make_shared<wait_answer>(
    *this, *wait, [this, &request](const error& why) {
      request.outcome = why;
      end_wait();
    });
  const auto finish_with
    = [this, arrive, &request](result<model_response> outcome) {
        (*arrive)([this, &request, outcome = std::move(outcome)]() mutable {
          request.outcome = std::move(outcome);
          end_wait();
        });
      };
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
    request.request.stop = give_up_after(*time, *wait, request, who);
  try {
    request.asked->generate(
      request.request,
      [finish_with,
       who,
       piece,
       is_nested = nested() != nullptr,
       following
       = std::weak_ptr(run_->control)](result<model_response> response) {
        if (response && response->partial) {
          // Nobody follows an agent that is a tool.
          if (is_nested)
            return;
          auto said = std::make_shared<event>(piece);
          said->content = std::move(response->said);
          said->extra = std::move(response->extra);
          // A model that answers late keeps nothing of the run alive.
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

// The stop token of a model call that has so much time.
std::stop_token lane_actor::give_up_after(std::chrono::milliseconds time,
                                          std::uint64_t wait,
                                          model_call& request,
                                          const std::string& who) {
  struct timer {
    std::stop_source stop;
    std::stop_callback<std::function<void()>> follow;

    explicit timer(const std::stop_token& lane)
      : follow(lane, [this] { stop.request_stop(); }) {}
  };

  const auto made = std::make_shared<timer>(stop());
  const auto late = std::make_shared<wait_answer>(*this, wait, nullptr);
  // A call that has ended lets go of it.
  model_timer_ = made;
  run_->shared->environment->call_after(
    time, [=, this, &request, timer = std::weak_ptr(made)] {
      const auto running = timer.lock();
      if (!running)
        return;
      // First, for a model that is told to stop may answer at once.
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

// -- tools -------------------------------------------------------------------

void lane_actor::call(tool_turn& request) {
  const auto wait = begin_wait(request.waiting, [&request](const error& why) {
    for (auto& each : request.calls)
      each.outcome = why;
  });
  if (!wait)
    return;
  // From here on the turn ends when its tools have: a cancellation asks them to
  // stop and waits, within the grace period.
  calls_ = std::make_unique<tool_calls>(*this, request, *wait);
  if (!calls_->is_over())
    return calls_->start();
  calls_ = nullptr;
  waits_ = false;
  post(request.waiting);
}

void lane_actor::go_on_with_calls() {
  if (!calls_->is_over())
    return;
  calls_ = nullptr;
  end_wait();
}

// -- lanes -------------------------------------------------------------------

void lane_actor::start_lanes(fan_out_request& request) {
  if (cancelled_ || request.lanes.empty()) {
    if (cancelled_)
      request.outcome = *cancelled_;
    return post(request.waiting);
  }
  ++fan_out_count_;
  fan_out_request_ = &request;
  lanes_ = std::make_unique<fan_out>(*this, request);
  lanes_->start_more();
  if (!lanes_->is_over())
    return;
  // All of them were over before.
  lanes_->finish();
  lanes_ = nullptr;
  post(std::exchange(fan_out_request_, nullptr)->waiting);
}

caf::strong_actor_ptr lane_actor::spawn_below(std::size_t index,
                                              lane_start start) {
  if (!start.temp)
    start.temp = temp();
  if (!start.nested)
    start.nested = nested();
  auto lane = spawn_actor<lane_actor>(
    home_system(), run_, *root_, *this, index, std::move(start));
  as_inbox(lane).tell(std::make_unique<struct signal>(letter_kind::begin));
  return lane;
}

void lane_actor::call_after(std::chrono::nanoseconds delay,
                            std::function<void()> due) {
  auto later = std::make_shared<wait_answer>(*this, 0, nullptr);
  run_->shared->environment->call_after(
    delay, [later, due = std::move(due), count = fan_out_count_] {
      later->with_lane([&](lane_actor& lane) {
        auto told = std::make_unique<lane_timer>();
        told->fan_out = count;
        told->due = due;
        lane.tell(std::move(told));
      });
    });
}

void lane_actor::receive(lane_timer& arrived) {
  if (lanes_ && arrived.fan_out == fan_out_count_)
    arrived.due();
}

void lane_actor::receive(lane_ended& ended) {
  if (!lanes_) {
    calls_->receive(ended);
    return go_on_with_calls();
  }
  lanes_->receive(ended);
  go_on_with_lanes();
}

void lane_actor::go_on_with_lanes() {
  lanes_->start_more();
  if (!lanes_->is_over())
    return;
  lanes_->finish();
  lanes_ = nullptr;
  go_on(std::exchange(fan_out_request_, nullptr)->waiting);
}

void lane_actor::hear(const event_ptr& committed) {
  const auto is_said = [](const troupe::part& element) {
    return element.text() != nullptr && !element.thought;
  };
  if (committed && std::ranges::any_of(committed->content.parts, is_said))
    last_said_ = committed;
}

} // namespace troupe::actors
