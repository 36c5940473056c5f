// Invariants of a lane: its coroutine waits for at most one thing at a time,
// and runs only in the lane's own jobs. Each wait has a number; an answer to an
// earlier wait is ignored. So an answer that comes after a cancellation cannot
// touch a request whose coroutine has continued.

#include "troupe/actors/runs/lane.hpp"

#include "troupe/actors/caf_interface.hpp"
#include "troupe/actors/engine/spawn.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/running/temp_space.hpp"
#include "troupe/actors/running/user_failure.hpp"
#include "troupe/actors/runs/agent_body.hpp"
#include "troupe/actors/runs/fan_out.hpp"
#include "troupe/actors/runs/invocation.hpp"
#include "troupe/actors/runs/nested_session.hpp"
#include "troupe/actors/runs/node_body.hpp"
#include "troupe/actors/runs/node_lanes.hpp"
#include "troupe/actors/runs/tool_calls.hpp"
#include "troupe/actors/runs/wait_answer.hpp"
#include "troupe/agents/turns/node_event.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

lane_actor::lane_actor(caf::actor_config& config,
                       std::shared_ptr<run_shared> run,
                       agent which,
                       std::stop_source stop,
                       std::shared_ptr<temp_space> temp,
                       invocation_actor& self)
  : inbox_actor(config, run->shared),
    run_(std::move(run)),
    start_{.which = std::move(which), .temp = std::move(temp)},
    root_lane_(&self),
    stop_(std::move(stop)) {}

lane_actor::lane_actor(caf::actor_config& config,
                       std::shared_ptr<run_shared> run,
                       invocation_actor& root_lane,
                       lane_actor& parent,
                       std::size_t index,
                       lane_start start)
  : inbox_actor(config, run->shared),
    run_(std::move(run)),
    start_(std::move(start)),
    root_lane_(&root_lane),
    parent_(&parent),
    index_(index) {}

lane_actor::~lane_actor() = default;

const agent& lane_actor::root_agent() const noexcept {
  return nested() ? nested()->root() : *run_->root_agent;
}

const agent_tree* lane_actor::tree() const noexcept {
  return nested() ? nested()->tree() : run_->tree.get();
}

step_view lane_actor::view() const {
  auto newest = nested() ? nested()->read() : run_->view->read();
  newest.state.temp = temp()->read();
  return newest;
}

// An agent that is a tool reads its whole history, which is short.
std::uint64_t lane_actor::first_read(const agent& which,
                                     const event_slice& live) const {
  return nested() ? 1 : run_->history.first_read(which.reads_itself(), live);
}

const recovered_run* lane_actor::recovered() const noexcept {
  return nested() ? nullptr : run_->recovered.get();
}

bool lane_actor::tells_places() const noexcept {
  return !nested() && run_->shared->store != nullptr;
}

void lane_actor::note_replayed(const invocation_context& context,
                               const troupe::event& stored) {
  if (const auto* before = recovered())
    set_replayed(context, before->number_of(stored.id));
}

std::uint64_t lane_actor::replayed_to(const invocation_context& context) const {
  const auto found = replayed_.find(&context);
  return found == replayed_.end() ? 0 : found->second;
}

void lane_actor::set_replayed(const invocation_context& context,
                              std::uint64_t number) {
  auto& last = replayed_[&context];
  last = std::max(last, number);
}

void lane_actor::note_failure(const std::string& place, const error& why) {
  if (caught_.is_null())
    caught_ = json::array();
  auto told = json::object();
  told["place"] = place;
  told["code"] = std::string(to_string(why.code()));
  told["message"] = why.message();
  caught_.push_back(std::move(told));
}

json lane_actor::take_caught() {
  return std::exchange(caught_, nullptr);
}

void lane_actor::forget(const invocation_context& context) noexcept {
  replayed_.erase(&context);
}

std::uint64_t lane_actor::message_number() const noexcept {
  return nested() ? 0 : run_->history.message;
}

caf::behavior lane_actor::make_behavior() {
  return closed_interface();
}

error lane_actor::closed_reason() const {
  return {errc::cancelled, "the run has ended"};
}

void lane_actor::deliver(letter_ptr received) {
  dispatch<actors::resume,
           answer,
           begin,
           lane_ended,
           more_lanes,
           node_committed,
           lane_timer,
           struct cancel>(std::move(received),
                          [this](auto sent) { receive(*sent); });
}

void lane_actor::receive(begin&) {
  start_body();
}

void lane_actor::receive(actors::resume& waiting) {
  go_on(waiting.suspended);
}

void lane_actor::receive(more_lanes&) {
  if (!lanes_)
    return;
  lanes_->more_under_way = false;
  go_on_with_lanes();
}

void lane_actor::receive(struct cancel& wished) {
  cancel_lane(wished.reason);
}

// -- the coroutine ------------------------------------------------------------

task<agent_end> lane_actor::body() {
  if (start_.visit)
    return run_node(*this, start_);
  return run_agent(*this,
                   start_.caller,
                   start_.which,
                   start_.branch,
                   agent_call(start_.above, start_.number),
                   start_.from);
}

void lane_actor::start_body() {
  const executor::current_guard here(this);
  const run_scope run_here(run_.get());
  // The lane keeps its coroutine until that has ended.
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
    // If the lane did not end, its run would wait forever.
    end_if_out_of_memory);
}

void lane_actor::finish(result<agent_end> outcome) {
  // The parent waits for this letter, so it outlives the lane.
  auto ended = std::make_unique<lane_ended>();
  ended->index = index_;
  ended->last_said = std::move(last_said_);
  if (std::holds_alternative<compiled_workflow>(start_.which.kind()))
    ended->output = std::move(last_output_);
  ended->outcome = std::move(outcome);
  parent_->tell(std::move(ended));
  quit();
}

void lane_actor::go_on(std::coroutine_handle<> suspended) {
  const executor::current_guard here(this);
  const run_scope run_here(run_.get());
  suspended.resume();
}

void lane_actor::post(std::coroutine_handle<> suspended) {
  tell(std::make_unique<struct resume>(suspended));
}

// -- waiting ------------------------------------------------------------------

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
  // Set first: a wait that begins from now on ends at once. The stop token then
  // reaches models and tools; lanes and agents as tools get letters.
  cancelled_ = reason;
  stop_.request_stop();
  if (lanes_)
    lanes_->cancel(reason);
  if (nodes_) {
    nodes_->cancel(reason);
    go_on_with_nodes();
  }
  if (calls_) {
    calls_->cancel(reason);
    if (calls_->is_over())
      return go_on_with_calls();
    // Tools that have not stopped by then are abandoned. If all end before, the
    // wait has ended and the answer is ignored.
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
  // No `begin_wait`: an event that is under way is committed, and the lane
  // waits for that even if it is cancelled.
  auto sent = std::make_unique<actors::emit>();
  sent->from = this;
  sent->request = &request;
  root_lane_->tell(std::move(sent));
}

// -- tools --------------------------------------------------------------------

void lane_actor::call(tool_turn& request) {
  const auto wait = begin_wait(request.waiting, [&request](const error& why) {
    for (auto& each : request.calls)
      each.outcome = why;
  });
  if (!wait)
    return;
  // The turn ends when all its tools have ended. A cancellation asks them to
  // stop and waits for the grace period.
  calls_ = std::make_unique<tool_calls>(*this, request, *wait);
  if (!calls_->is_over())
    return with_memory_or_end([this] { calls_->start(); });
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

// -- lanes --------------------------------------------------------------------

void lane_actor::start_lanes(fan_out_request& request) {
  if (cancelled_ || request.lanes.empty()) {
    if (cancelled_)
      request.outcome = *cancelled_;
    return post(request.waiting);
  }
  ++fan_out_count_;
  fan_out_request_ = &request;
  lanes_ = std::make_unique<fan_out>(*this, request);
  // A checkpoint may say that all lanes have ended already.
  if (const auto waiting = advance_lanes())
    post(waiting);
}

ref<lane_actor> lane_actor::spawn_below(std::size_t index, lane_start start) {
  if (!start.temp)
    start.temp = temp();
  if (!start.nested)
    start.nested = nested();
  auto lane = spawn_actor<lane_actor>(
    home_system(), run_, *root_lane_, *this, index, std::move(start));
  lane->tell(std::make_unique<begin>());
  return lane;
}

void lane_actor::call_after(std::chrono::nanoseconds delay,
                            std::function<void()> due) {
  // Used only as a weak reference to the lane.
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
  // The lane may wait for a later fan-out by now.
  if ((lanes_ || nodes_) && arrived.fan_out == fan_out_count_)
    arrived.due();
  go_on_with_nodes();
}

void lane_actor::receive(lane_ended& ended) {
  if (nodes_) {
    nodes_->receive(ended);
    return go_on_with_nodes();
  }
  if (!lanes_) {
    calls_->receive(ended);
    return go_on_with_calls();
  }
  lanes_->receive(ended);
  go_on_with_lanes();
}

void lane_actor::go_on_with_lanes() {
  if (const auto waiting = advance_lanes())
    go_on(waiting);
}

std::coroutine_handle<> lane_actor::advance_lanes() {
  // Lanes that have started wait for the others.
  with_memory_or_end([this] { lanes_->start_more(); });
  if (!lanes_->is_over())
    return nullptr;
  lanes_->finish();
  lanes_ = nullptr;
  return std::exchange(fan_out_request_, nullptr)->waiting;
}

// -- workflows ----------------------------------------------------------------

void lane_actor::open_nodes() {
  ++fan_out_count_;
  nodes_ = std::make_unique<node_lanes>(*this);
}

void lane_actor::close_nodes() noexcept {
  nodes_ = nullptr;
}

void lane_actor::hear_commit(std::uint64_t key,
                             const event_ptr& committed) noexcept {
  with_memory_or_end([&] {
    auto told = std::make_unique<node_committed>();
    told->visit = key;
    told->event = committed;
    tell(std::move(told));
  });
}

void lane_actor::receive(node_committed& told) {
  if (!nodes_)
    return;
  nodes_->receive(told);
  go_on_with_nodes();
}

// Resumes the workflow if it waits for news and there is some.
void lane_actor::go_on_with_nodes() {
  if (nodes_)
    if (const auto waiting = nodes_->take_waiting())
      go_on(waiting);
}

void lane_actor::hear(const event_ptr& committed) {
  const auto is_said = [](const troupe::part& element) {
    return element.text() != nullptr && !element.thought;
  };
  if (committed && std::ranges::any_of(committed->content.parts, is_said)
      && !is_node_input(*committed))
    last_said_ = committed;
}

} // namespace troupe::actors
