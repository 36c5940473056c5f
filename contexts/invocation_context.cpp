#include "troupe/contexts/invocation_context.hpp"

#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/contexts/lanes/host.hpp"
#include "troupe/contexts/lanes/isolation.hpp"
#include "troupe/contexts/lanes/recovered_run.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

namespace {

// Suspends until the lane has answered one request. `Start` is the member
// function of the lane that takes the request.
template <class Request, void (lane_host::*Start)(Request&)>
class lane_await {
public:
  lane_await(lane_host& lane, Request request)
    : lane_(lane),
      request_(std::move(request)) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    request_.waiting = waiting;
    (lane_.*Start)(request_);
  }

  Request await_resume() { return std::move(request_); }

private:
  lane_host& lane_;
  Request request_;
};

using emit_await = lane_await<emit_request, &lane_host::emit>;
using model_await = lane_await<model_call, &lane_host::ask>;
using tool_await = lane_await<tool_turn, &lane_host::call>;
using sleep_await = lane_await<sleep_request, &lane_host::sleep>;
using refresh_await = lane_await<refresh_request, &lane_host::refresh>;
using history_await = lane_await<history_request, &lane_host::read>;

// Continues in a later job of the lane.
class post_await {
public:
  explicit post_await(lane_host& lane) : lane_(lane) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) { lane_.post(waiting); }

  void await_resume() const noexcept {}

private:
  lane_host& lane_;
};

// A body that repeats its events may have caught the refusal of one of them.
// The event must not take effect now, behind those that came after it.
void check_not_refused(const lane_host& lane,
                       const std::string& key,
                       std::uint64_t number,
                       const std::string& agent_name) {
  const auto* recovered = lane.recovered();
  if (recovered != nullptr && recovered->last_numbered(key) > number
      && recovered->number_of(fmt::format("{}/{}", key, number)) == 0)
    throw error(errc::conflict,
                fmt::format("event {} of agent '{}' was refused before the run "
                            "was recovered",
                            number,
                            agent_name));
}

template <class T>
T or_throw(result<T> outcome) {
  if (!outcome)
    throw outcome.error();
  if constexpr (!std::is_void_v<T>)
    return std::move(*outcome);
}

// Joins the actions set through the context with those of the event.
void join_actions(event_actions& into, event_actions from) {
  into.state_delta.merge(from.state_delta);
  into.escalate = into.escalate || from.escalate;
  into.skip_summarization = into.skip_summarization || from.skip_summarization;
  if (!from.transfer_to_agent.empty())
    into.transfer_to_agent = std::move(from.transfer_to_agent);
  for (auto& [name, version] : from.artifact_delta)
    into.artifact_delta[name] = version;
  if (!from.extra.is_null()) {
    auto all = into.extra.is_null() ? json::object() : into.extra.data();
    all.update(from.extra.data());
    into.extra = std::move(all);
  }
}

// Takes the bases of the recorded writes, behind those of the event's own.
std::unique_ptr<basis_check> take_bases(troupe::state& from,
                                        lost_updates policy,
                                        std::vector<write_basis> bases) {
  for (auto& each : from.reads().take_bases())
    bases.push_back(std::move(each));
  if (bases.empty())
    return nullptr;
  return std::make_unique<basis_check>(std::move(bases),
                                       policy == lost_updates::refuse);
}

} // namespace

invocation_context::invocation_context(lane_host& lane,
                                       const agent& which,
                                       std::string agent_name,
                                       std::string branch,
                                       const invocation_context* caller)
  : callback_context(lane.facts(),
                     std::move(agent_name),
                     troupe::state({}, lane.facts().limits)),
    lane_(lane),
    which_(&which),
    branch_(std::move(branch)),
    caller_(caller) {
  if (lane_.facts().lost_updates != lost_updates::ignore)
    state_.reads().start();
  renew();
}

void invocation_context::renew() {
  auto newest = lane_.view();
  if (newest.events.hides(lane_.message_number()))
    throw error(errc::cancelled,
                fmt::format("session {} was rewound to before the message of "
                            "this run",
                            to_string(facts_->session)));
  oldest_ = newest.trimmed_to + 1;
  auto first = std::max(lane_.first_read(*which_, newest.events), oldest_);
  // Another process may have rewound the session: the newest events are then
  // older than those that this run keeps.
  if (first <= newest.before
      && newest.events.newest_rewind() > lane_.message_number())
    first = newest.before + 1;
  if (first <= newest.before)
    throw error(errc::internal,
                fmt::format("agent '{}' reads events from number {} on, but "
                            "only those from {} on are in memory",
                            agent_name_,
                            first,
                            newest.before + 1));
  if (first > newest.revision() + 1)
    throw gone();
  state_.renew(std::move(newest.state));
  events_ = newest.events.from(first);
  first_revision_ = events_.span() > 0 ? events_.first_number() : first;
  newest_ = newest.revision();
}

error invocation_context::gone() const {
  return error(errc::cancelled,
               fmt::format("session {} was deleted, or the store has lost "
                           "events of it that this run has seen",
                           to_string(facts_->session)));
}

std::stop_token invocation_context::stop() const {
  return lane_.stop();
}

event_slice invocation_context::history(std::size_t count) const {
  if (count > events_.size() && first_revision_ > oldest_)
    throw error(
      errc::invalid_argument,
      fmt::format("agent '{}' wants the newest {} events, but it reads the "
                  "session from number {} on, which is {} events; read older "
                  "ones with events_before, or state that the agent reads more",
                  agent_name_,
                  count,
                  first_revision_,
                  events_.size()));
  return events_.recent(count);
}

task<event_slice> invocation_context::events_before(std::uint64_t revision,
                                                    std::size_t count) {
  const auto newest = this->revision();
  if (revision == 0 || revision - 1 > newest)
    throw error(errc::invalid_argument,
                fmt::format("there is no event before number {}: session {} "
                            "has {} events",
                            revision,
                            to_string(facts_->session),
                            newest));
  if (revision <= oldest_ || count == 0)
    co_return event_slice();
  history_request request;
  request.first = std::max(revision > count ? revision - count : 1, oldest_);
  request.last = revision - 1;
  auto answered = co_await history_await(lane_, request);
  if (!answered.outcome && answered.outcome.error().code() == errc::gone) {
    // The session was trimmed since the run last saw it.
    co_await refresh();
    if (request.last < oldest_)
      co_return event_slice();
    answered = co_await history_await(lane_, std::move(request));
  }
  if (!answered.outcome && answered.outcome.error().code() == errc::corrupt) {
    // The session may have been removed or truncated since the run last saw it.
    // If it is shorter after the refresh, that is the reason for the failure.
    co_await refresh();
    if (answered.last > this->revision())
      throw gone();
  }
  renew();
  co_return or_throw(std::move(answered.outcome));
}

task<event_ptr> invocation_context::emit(event said) {
  return emit(std::move(said), {});
}

task<event_ptr> invocation_context::emit(event said,
                                         std::vector<write_basis> bases) {
  return send(std::move(said), std::move(bases), nullptr, 0);
}

task<event_ptr> invocation_context::emit_heard(event said,
                                               std::vector<write_basis> bases,
                                               commit_listener& listener,
                                               std::uint64_t key) {
  return send(std::move(said), std::move(bases), &listener, key);
}

task<event_ptr> invocation_context::send(event said,
                                         std::vector<write_basis> bases,
                                         commit_listener* listener,
                                         std::uint64_t key) {
  emit_request request;
  request.event = std::move(said);
  request.listener = listener;
  request.key = key;
  // A partial event is not stored, so it carries no recorded changes.
  if (!request.event.partial) {
    request.basis = take_bases(state_, facts_->lost_updates, std::move(bases));
    auto recorded = state_.take();
    recorded.merge(request.event.actions.state_delta);
    state_.reads().note_event(recorded);
    request.event.actions.state_delta = std::move(recorded);
    join_actions(request.event.actions,
                 std::exchange(actions(), event_actions()));
  }
  // The event may be one of another agent, which the body passes on.
  if (numbers_events() && request.event.id.empty())
    remove_place(request.event);
  complete(request.event);
  if (request.event.id.empty() && !request.event.partial && numbers_events()) {
    request.event.id = placed_id(
      rewound_, events_, fmt::format("{}/{}", event_key_, ++numbered_));
    request.has_new_id = !repeats_;
    if (rewound_ == 0)
      check_not_refused(lane_, event_key_, numbered_, agent_name_);
  }
  // Pieces of a stream are not stored, so they tell no failures.
  if (!request.event.partial)
    if (auto caught = lane_.take_caught(); !caught.is_null())
      set_fact(request.event, caught_fact, std::move(caught));
  if (request.basis)
    if (auto checked = request.basis->check_turn(); !checked) {
      state_.reads().forget();
      throw checked.error();
    }
  auto answered = co_await emit_await(lane_, std::move(request));
  // The step does not know whether its writes took effect.
  if (!answered.outcome)
    state_.reads().forget();
  renew();
  auto stored = or_throw(std::move(answered.outcome));
  lane_.note_replayed(*this, *stored);
  // Uses the stored event, because a plugin may have changed it.
  if (!stored->partial)
    escalated_ = escalated_ || stored->actions.escalate;
  co_return stored;
}

void invocation_context::complete(event& said) const {
  if (said.author.empty())
    said.author = agent_name_;
  if (said.branch.empty())
    said.branch = branch_;
  if (!scope_.empty())
    set_scope(said, scope_);
  if (lane_.tells_places())
    set_place(said, place_, step_);
}

// Events of callbacks are known by their step.
bool invocation_context::numbers_events() const noexcept {
  return !event_key_.empty() && step_ == agent_step::body;
}

emit_request invocation_context::make_update(const delta& changes) const {
  emit_request request;
  complete(request.event);
  request.event.actions.state_delta = changes;
  request.temp_only = changes.operations().front().where == scope::temp;
  return request;
}

std::optional<value>
invocation_context::find_below(const std::string& key) const {
  return readonly_state(state_.snapshot()).find(key);
}

std::optional<json>
invocation_context::find_update(const std::string& id,
                                const std::string& key) const {
  if (!repeats_ || id.empty())
    return std::nullopt;
  const auto wanted = split_key(key);
  for (auto index = events_.size(); index > 0; --index) {
    const auto& said = *events_[index - 1];
    if (said.id != id)
      continue;
    lane_.note_replayed(*this, said);
    for (const auto& done : said.actions.state_delta.share(wanted.where))
      if (done.name == wanted.name)
        return done.operand.data();
    throw error(errc::conflict,
                fmt::format("agent '{}' runs again and updates '{}' where it "
                            "has made another event before: '{}'; its body "
                            "must repeat its events in the same order",
                            agent_name_,
                            key,
                            id));
  }
  return std::nullopt;
}

task<json> invocation_context::update_with(std::string key,
                                           state_update change) {
  std::string id;
  if (numbers_events())
    id = placed_id(
      rewound_, events_, fmt::format("{}/update-{}", event_key_, ++updates_));
  if (auto stored = find_update(id, key))
    co_return std::move(*stored);
  for (std::size_t retries = 0;; ++retries) {
    const auto now = find_below(key);
    auto next = change(now ? std::optional(now->data()) : std::nullopt);
    troupe::state written({}, facts_->limits);
    written.compare_and_set(key, now ? now->data() : json(), next);
    auto request = make_update(written.take());
    request.event.id = id;
    request.has_new_id = !id.empty() && !repeats_;
    auto answered = co_await emit_await(lane_, std::move(request));
    renew();
    if (answered.outcome) {
      written.set(key, next);
      state_.reads().note_event(written.recorded());
      co_return next;
    }
    if (answered.outcome.error().code() != errc::conflict
        || retries >= facts_->update_retries_max)
      throw answered.outcome.error();
    // The session may not have seen the newest state of its user or app.
    if (find_below(key) == now)
      co_await refresh();
  }
}

task<> invocation_context::emit_partial(event piece) {
  piece.partial = true;
  co_await emit(std::move(piece));
}

task<model_response> invocation_context::ask(model_ptr asked,
                                             model_request request) {
  model_call call;
  call.asked = std::move(asked);
  call.branch = branch_;
  call.scope = scope_;
  call.request = std::move(request);
  if (call.request.trace.parent.empty())
    call.request.trace = trace();
  if (!place_.empty())
    call.request.key = fmt::format(
      "{}/{}/request-{}", facts_->invocation_id, place_, ++asked_);
  auto answered = co_await model_await(lane_, std::move(call));
  renew();
  co_return or_throw(std::move(answered.outcome));
}

task<std::vector<tool_call>>
invocation_context::call(std::vector<tool_call> calls) {
  tool_turn turn;
  turn.owner = which_;
  turn.caller = this;
  turn.calls = std::move(calls);
  auto answered = co_await tool_await(lane_, std::move(turn));
  renew();
  co_return std::move(answered.calls);
}

task<> invocation_context::run(const agent& other) {
  if (paused_) {
    // A body that catches the exception and tries again must notice a
    // cancellation.
    co_await post_await(lane_);
    if (lane_.stop().stop_requested())
      throw error(errc::cancelled, "the run was cancelled");
    throw agent_paused{paused_};
  }
  const auto number = lane_.number_call(*this, other);
  const auto before = from_ ? from_->finished : std::uint64_t{0};
  // Agents that ended before the pause are skipped, so their effects do not
  // happen twice.
  if (finished_ < before) {
    ++finished_;
    co_return;
  }
  checkpoint_ptr from;
  if (from_ && finished_ == before)
    from = from_->at;
  auto end = co_await lane_.run(*this, other, number, std::move(from));
  renew();
  escalated_ = escalated_ || end.escalated;
  if (end.paused) {
    auto where = std::make_shared<checkpoint>();
    where->agent = agent_name_;
    where->finished = finished_;
    where->at = std::move(end.paused);
    paused_ = std::move(where);
    throw agent_paused{paused_};
  }
  ++finished_;
}

void invocation_context::wait_for(std::string call_id) {
  if (!paused_) {
    auto where = std::make_shared<checkpoint>();
    where->agent = agent_name_;
    where->waits_for.push_back(std::move(call_id));
    where->finished = finished_;
    paused_ = std::move(where);
  }
  throw agent_paused{paused_};
}

task<> invocation_context::sleep(std::chrono::nanoseconds duration) {
  sleep_request request;
  request.duration = duration;
  auto answered = co_await sleep_await(lane_, std::move(request));
  renew();
  or_throw(std::move(answered.outcome));
}

task<> invocation_context::refresh() {
  auto answered = co_await refresh_await(lane_, refresh_request());
  renew();
  or_throw(std::move(answered.outcome));
}

bool invocation_context::has_leftovers() const noexcept {
  return !state_.recorded().empty();
}

task<> invocation_context::emit_leftovers() {
  const bool acts = has_effect(actions());
  if (!acts && !has_leftovers())
    co_return;
  const bool temp_only
    = !acts
      && std::ranges::all_of(
        state_.recorded().operations(),
        [](const operation& done) { return done.where == scope::temp; });
  if (!temp_only) {
    co_await emit(event());
    co_return;
  }
  emit_request request;
  request.basis = take_bases(state_, facts_->lost_updates, {});
  complete(request.event);
  request.event.actions.state_delta = state_.take();
  state_.reads().note_event(request.event.actions.state_delta);
  request.temp_only = true;
  auto answered = co_await emit_await(lane_, std::move(request));
  if (!answered.outcome)
    state_.reads().forget();
  renew();
  or_throw(std::move(answered.outcome));
}

} // namespace troupe
