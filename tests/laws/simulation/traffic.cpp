#include "traffic.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/engine/lent_thread.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace troupe::testing {

using namespace std::chrono_literals;

traffic::traffic(world& in,
                 history& told,
                 const plan& chosen,
                 std::vector<std::unique_ptr<program>>& programs)
  : world_(in),
    told_(told),
    plan_(chosen),
    programs_(programs),
    chance_(chosen.seed * 3 + 7),
    readers_(in, told, chosen, programs),
    followed_(chosen.seed * 11 + 17),
    pipeline_(std::make_shared<pipeline_setup>(
      pipeline_setup{in,
                     told,
                     chosen.changes,
                     dice(chosen.seed * 5 + 11),
                     chosen.overwrites,
                     dice(chosen.seed * 7 + 13)})),
    left_(chosen.operations),
    burst_of_(chosen.clients),
    waits_(chosen.clients) {}

// -- order of clients ----

void traffic::start() {
  for (std::size_t client = 0; client < plan_.clients; ++client)
    later(client);
}

void traffic::later(std::size_t client) {
  ++active_;
  world_.after(chance_.time(plan_.think_time), [this, client] {
    --active_;
    act(client);
  });
}

void traffic::wake() {
  for (const auto client : std::exchange(parked_, {}))
    later(client);
}

program* traffic::program_of(std::size_t client) const {
  const auto& found = programs_[client % programs_.size()];
  return found && found->open_runtime() != nullptr ? found.get() : nullptr;
}

void traffic::act(std::size_t client) {
  if (left_ == 0)
    return;
  if (program_of(client) == nullptr) {
    parked_.push_back(client);
    return;
  }
  const auto burst = burst_of_[client] = ++bursts_;
  // Held until the end of the burst, because answers may come before that.
  ++waits_[client];
  for (auto count = chance_.below(plan_.burst_max) + 1; count > 0 && left_ > 0;
       --count) {
    if (program_of(client) == nullptr)
      break;
    readers_.start_sometimes(client, burst, any_session(followed_));
    // The start of a reader may run other jobs. These may end the program, or
    // begin the last operation.
    auto* on = program_of(client);
    if (on == nullptr || left_ == 0)
      break;
    --left_;
    act_once(client, *on->open_runtime());
  }
  std::erase_if(
    writers_, [burst](const auto& each) { return each.first.first == burst; });
  if (!wish_
      && (chance_.one_in(plan_.crashes) || chance_.one_in(plan_.restarts)))
    wish_
      = wish{client % programs_.size(),
             plan_.restarts == 0 || (plan_.crashes != 0 && chance_.one_in(2))};
  if (--waits_[client] == 0)
    later(client);
}

// A blocked caller runs activations of owners itself. The number of the call
// decides which calls are such, and after how many activations the thread
// leaves.
void traffic::act_once(std::size_t client, runtime& on) {
  const auto number = told_.calls.size();
  if (number % 4 != 3)
    return call_once(client, on);
  actors::lent_thread lent(detail::backend_of(on)->shared());
  call_once(client, on);
  for (auto activations = number / 4 % 8; activations > 0 && lent.run_next();
       --activations) {
  }
}

void traffic::call_once(std::size_t client, runtime& on) {
  auto& sessions = on.sessions();
  auto drawn = chance_.below(100 + plan_.runs + plan_.writes + plan_.rewinds
                             + plan_.forks + plan_.removals * 2);
  const auto is_next = [&drawn](std::size_t weight) {
    if (drawn < weight)
      return true;
    drawn -= weight;
    return false;
  };
  // Sessions are created first, so that most calls find one.
  if (told_.calls.size() < plan_.users * plan_.sessions * 2)
    create(client, sessions);
  else if (chance_.one_in(plan_.retries))
    repeat(client, sessions);
  else if (is_next(54))
    append(client, sessions);
  else if (is_next(22))
    get(client, sessions);
  else if (is_next(12))
    create(client, sessions);
  else if (is_next(6))
    read_state(client, sessions);
  else if (is_next(6))
    list(client, sessions);
  else if (is_next(plan_.runs))
    run(client, on);
  else if (is_next(plan_.writes))
    write(client, sessions);
  else if (is_next(plan_.rewinds))
    rewind(client, sessions);
  else if (is_next(plan_.forks))
    fork(client, sessions);
  else if (chance_.one_in(5))
    remove_user(client, sessions);
  else
    remove(client, sessions);
}

// -- records ----

call_record& traffic::note(std::size_t client, call_kind kind) {
  auto& made = told_.calls.emplace_back();
  made.kind = kind;
  made.client = client;
  made.burst = burst_of_[client];
  made.place_in_burst = told_.calls.size();
  made.before = told_.written.size();
  made.faults_before = told_.faults();
  ++open_;
  ++waits_[client];
  world_.note("call " + std::to_string(told_.calls.size()) + " "
              + std::string(to_string(kind)));
  return made;
}

void traffic::settle(call_record& call, const std::string& code) {
  world_.note("answer to " + std::string(to_string(call.kind)) + " "
              + call.event.id + call.write.id + " " + to_string(call.key) + ": "
              + code);
  ++call.answers;
  if (call.answers > 1)
    return;
  call.code = code;
  call.answered_at = ++told_.answered;
  call.after = told_.written.size();
  call.faults_after = told_.faults();
  if (const auto& used = programs_[call.client % programs_.size()]) {
    call.was_closing = used->is_closing();
    call.was_dead = used->is_dead();
  }
  --open_;
  if (--waits_[call.client] == 0)
    later(call.client);
}

template <class T, class Keep>
completion<T> traffic::answer_to(call_record& call, Keep keep) {
  return [this, &call, keep](result<T> answer) {
    if (answer)
      keep(call, std::move(*answer));
    else
      call.reason = answer.error().message();
    settle(call, answer ? "ok" : std::string(to_string(answer.error().code())));
  };
}

session_key traffic::any_session() {
  return any_session(chance_);
}

session_key traffic::any_session(dice& chance) const {
  static constexpr std::array<const char*, 3> users{"ann", "ben", "cy"};
  if (!forks_.empty() && chance.one_in(2))
    return chance.pick(forks_);
  return {chance.one_in(4) ? "other" : "press",
          users[chance.below(plan_.users)],
          "s" + std::to_string(chance.below(plan_.sessions))};
}

// A revision that the session has at the moment, or the one after the newest.
std::uint64_t traffic::any_revision(const session_key& key) {
  std::uint64_t newest = 0;
  for (const auto& each : told_.kept())
    if (each.session_revision
        && each.owner == owner_name{key.app, key.user, key.id})
      newest = *each.session_revision;
  return chance_.below(newest + 2);
}

// -- calls ----

void traffic::create(std::size_t client, session_service& sessions) {
  auto& call = note(client, call_kind::create);
  call.key = any_session();
  call.created.app = call.key.app;
  call.created.user = call.key.user;
  call.created.id = call.key.id;
  const auto token = told_.new_token();
  call.created.state = make_sets(chance_, token, true);
  call.created.state["born"] = token;
  sessions.create(call.created)
    .then(answer_to<session>(call, [](call_record& to, session answer) {
      to.fetched.emplace(std::move(answer));
    }));
}

void traffic::append(std::size_t client, session_service& sessions) {
  auto& call = note(client, call_kind::append);
  call.key = any_session();
  const auto token = told_.new_token();
  auto& said = call.event;
  said.id = "e-" + token;
  said.author = "user";
  said.content = user_text("appended");
  said.actions.state_delta
    = as_delta(make_changes(chance_, plan_.changes, token, true));
  if (chance_.one_in(8))
    said.timestamp = world_.now() - std::chrono::hours(chance_.below(2));
  if (chance_.one_in(10))
    call.how.expected_revision = chance_.below(12);
  send(call, sessions);
}

// Sends an earlier event again, whether it was answered or refused or not;
// sometimes with other content.
void traffic::repeat(std::size_t client, session_service& sessions) {
  std::vector<const call_record*> sent;
  for (const auto& each : told_.calls)
    if (each.kind == call_kind::append)
      sent.push_back(&each);
  if (sent.empty())
    return append(client, sessions);
  const auto recent = std::min<std::size_t>(sent.size(), 12);
  const auto& first = *sent[sent.size() - 1 - chance_.below(recent)];
  auto& call = note(client, call_kind::append);
  call.key = first.key;
  // A fork may have the event from its parent.
  if (!forks_.empty() && chance_.one_in(3))
    call.key = chance_.pick(forks_);
  call.event = first.event;
  if (chance_.one_in(6))
    call.event.content = user_text("something else");
  if (chance_.one_in(3))
    call.how = first.how;
  send(call, sessions);
}

void traffic::send(call_record& call, session_service& sessions) {
  auto done = answer_to<event_ptr>(call, [](call_record& to, event_ptr answer) {
    to.stored = std::move(answer);
  });
  const bool is_shared = chance_.one_in(4);
  // The number of the burst decides instead of a random draw, so that older
  // seeds keep their histories.
  if (call.burst % 8 == 0)
    return send_in_order(call, sessions, std::move(done));
  if (is_shared)
    sessions
      .append_event(
        call.key, std::make_shared<const event>(call.event), call.how)
      .then(std::move(done));
  else
    sessions.append_event(call.key, call.event, call.how).then(std::move(done));
}

void traffic::send_in_order(call_record& call,
                            session_service& sessions,
                            completion<event_ptr> done) {
  call.is_ordered = true;
  auto& writer
    = writers_.try_emplace({call.burst, call.key}, sessions.writer(call.key))
        .first->second;
  writer.append(call.event, call.how).then(std::move(done));
}

void traffic::get(std::size_t client, session_service& sessions) {
  auto& call = note(client, call_kind::get);
  call.key = any_session();
  if (chance_.one_in(3))
    call.wanted.num_recent_events = chance_.below(6);
  if (chance_.one_in(6))
    call.wanted.after = world_.now()
                        - std::chrono::duration_cast<std::chrono::microseconds>(
                          chance_.time(1s));
  if (chance_.one_in(plan_.past_reads))
    call.wanted.at = any_revision(call.key);
  sessions.get(call.key, call.wanted)
    .then(answer_to<session>(call, [](call_record& to, session answer) {
      to.fetched.emplace(std::move(answer));
    }));
}

void traffic::list(std::size_t client, session_service& sessions) {
  auto& call = note(client, call_kind::list);
  call.key = any_session();
  call.listed.app = call.key.app;
  if (chance_.one_in(2))
    call.listed.user = call.key.user;
  call.listed.limit = 1 + chance_.below(4);
  if (!cursors_.empty() && chance_.one_in(2))
    call.listed.cursor = cursors_[chance_.below(cursors_.size())];
  sessions.list(call.listed)
    .then(answer_to<session_page>(call,
                                  [this](call_record& to, session_page answer) {
                                    if (!answer.next_cursor.empty())
                                      cursors_.push_back(answer.next_cursor);
                                    to.page = std::move(answer);
                                  }));
}

void traffic::remove(std::size_t client, session_service& sessions) {
  auto& call = note(client, call_kind::remove);
  call.key = any_session();
  sessions.remove(call.key).then(answer_to<bool>(
    call, [](call_record& to, bool answer) { to.removed = answer; }));
}

void traffic::remove_user(std::size_t client, session_service& sessions) {
  auto& call = note(client, call_kind::remove_user);
  call.key = any_session();
  sessions.remove_user(call.key.app, call.key.user)
    .then(answer_to<bool>(
      call, [](call_record& to, bool answer) { to.removed = answer; }));
}

void traffic::read_state(std::size_t client, session_service& sessions) {
  const bool of_user = chance_.one_in(2);
  auto& call
    = note(client, of_user ? call_kind::user_state : call_kind::app_state);
  call.key = any_session();
  auto done = answer_to<json>(
    call, [](call_record& to, json answer) { to.state = std::move(answer); });
  if (of_user)
    sessions.user_state(call.key.app, call.key.user).then(std::move(done));
  else
    sessions.app_state(call.key.app).then(std::move(done));
}

// Sometimes sends the newest write to the same state again, or another
// operation under its id.
void traffic::write(std::size_t client, session_service& sessions) {
  const auto key = any_session();
  wanted_write wanted;
  wanted.of_user = chance_.one_in(2);
  const auto earlier = std::find_if(
    told_.calls.rbegin(), told_.calls.rend(), [&](const call_record& each) {
      return each.kind == call_kind::write && each.key.app == key.app
             && each.write.of_user == wanted.of_user
             && (!wanted.of_user || each.key.user == key.user);
    });
  const bool repeats = earlier != told_.calls.rend() && chance_.one_in(3);
  if (repeats && !chance_.one_in(5)) {
    wanted = earlier->write;
  } else {
    const auto token = told_.new_token();
    wanted.id = repeats ? earlier->write.id : "w-" + token;
    wanted.change = make_change(
      chance_, plan_.changes, token, wanted.of_user ? "user:" : "app:");
    if (chance_.one_in(8))
      wanted.expected_revision = chance_.below(12);
  }
  auto& call = note(client, call_kind::write);
  call.key = key;
  call.write = std::move(wanted);
  send_write(call, sessions);
}

void traffic::rewind(std::size_t client, session_service& sessions) {
  auto& call = note(client, call_kind::rewind);
  call.key = any_session();
  auto& [to, before_run, expected] = call.rewind;
  if (plan_.forks > 0 && chance_.one_in(3))
    before_run = any_run(call.key);
  if (before_run.empty())
    to = chance_.below(12);
  if (chance_.one_in(4))
    expected = to.value_or(0) + chance_.below(6);
  sessions
    .rewind(call.key,
            to ? rewind_target::to(*to) : rewind_target::before_run(before_run),
            {.expected_revision = expected})
    .then(answer_to<rewound_session>(
      call, [](call_record& told, rewound_session answer) {
        told.stored = answer.event;
        told.rewound.emplace(std::move(answer));
      }));
}

// A run that was started on the session or on another one.
std::string traffic::any_run(const session_key& key) {
  std::vector<std::string> ids;
  for (const auto& each : told_.runs)
    if (each.key == key || chance_.one_in(8))
      ids.push_back(each.invocation_id);
  return ids.empty() ? std::string() : chance_.pick(ids);
}

// The id is a new one most often, and otherwise one that may be taken.
void traffic::fork(std::size_t client, session_service& sessions) {
  constexpr std::size_t forks_max = 8;
  auto& call = note(client, call_kind::fork);
  call.key = any_session();
  if (chance_.one_in(2))
    call.fork.how.at = any_revision(call.key);
  call.fork.how.keep_open_calls = chance_.one_in(4);
  call.fork.id = chance_.one_in(3) ? any_session().id
                                   : "f" + std::to_string(told_.calls.size());
  forks_.push_back(call.target());
  if (forks_.size() > forks_max)
    forks_.erase(forks_.begin());
  sessions.fork(call.key, call.fork.how, call.fork.id)
    .then(answer_to<session>(call, [](call_record& to, session answer) {
      to.fetched.emplace(std::move(answer));
    }));
}

void traffic::send_write(call_record& call, session_service& sessions) {
  const auto& [id, of_user, change, expected] = call.write;
  const auto& [key, kind, operand, compared] = change;
  const auto state = of_user
                       ? sessions.state_of_user(call.key.app, call.key.user)
                       : sessions.state_of_app(call.key.app);
  const shared_write_options how(id, expected);
  auto done = answer_to<shared_write>(
    call, [](call_record& to, shared_write answer) { to.wrote = answer; });
  switch (kind) {
  case operation_kind::set:
    return state.set(key, operand, how).then(std::move(done));
  case operation_kind::erase:
    return state.erase(key, how).then(std::move(done));
  case operation_kind::add:
    return state.add(key, operand, how).then(std::move(done));
  case operation_kind::append:
    return state.append(key, operand, how).then(std::move(done));
  case operation_kind::add_to_set:
    return state.add_to_set(key, operand, how).then(std::move(done));
  case operation_kind::min:
    return state.min(key, operand, how).then(std::move(done));
  case operation_kind::max:
    return state.max(key, operand, how).then(std::move(done));
  case operation_kind::merge:
    return state.merge(key, operand, how).then(std::move(done));
  case operation_kind::compare_and_set:
    return state.compare_and_set(key, compared, operand, how)
      .then(std::move(done));
  }
}

// -- runs ----

void traffic::run(std::size_t client, runtime& on) {
  static constexpr std::array<run_policy, 3> policies{
    run_policy::queue, run_policy::reject, run_policy::interleave};
  auto& record = told_.runs.emplace_back();
  record.key = any_session();
  record.before = told_.written.size();
  record.faults_before = told_.faults();
  const auto token = told_.new_token();
  run_options options;
  options.policy = chance_.pick(policies);
  options.lost_updates = plan_.lost_updates;
  record.may_be_rejected = options.policy == run_policy::reject;
  const auto sets = make_sets(chance_, token, true);
  auto recorded = delta::from_json(sets).value();
  recorded.drop(scope::temp);
  told_.recorded[token] = std::move(recorded);
  options.model_calls_max = 2 + chance_.below(8);
  if (chance_.one_in(4))
    options.model_timeout = 1ms + 1ms * chance_.below(30);
  if (chance_.one_in(4))
    options.tool_timeout = 1ms + 1ms * chance_.below(20);
  if (chance_.one_in(5))
    options.deadline = 1ms + 1ms * chance_.below(100);
  record.has_deadline
    = options.model_timeout || options.tool_timeout || options.deadline;
  options.grace = 1ms + 1ms * chance_.below(30);
  const auto root = make_pipeline(pipeline_);
  ++open_;
  auto started = programs_[client % programs_.size()]->keep(
    on.run(root, record.key, {token, sets}, options));
  record.invocation_id = started->invocation_id();
  world_.note("run " + record.invocation_id);
  if (chance_.one_in(5))
    world_.after(chance_.time(80ms), [weak = std::weak_ptr(started), &record] {
      record.is_cancelled = true;
      if (const auto held = weak.lock())
        held->cancel();
    });
  follow(started, record, client);
}

void traffic::follow(const std::shared_ptr<troupe::run>& started,
                     run_record& record,
                     std::size_t client) {
  started->next().then([this, weak = std::weak_ptr(started), &record, client](
                         result<event_ptr> next) {
    if (next && *next) {
      world_.note("event " + (*next)->id);
      record.taken.push_back(std::move(*next));
      record.taken_at.push_back(told_.written.size());
      const auto held = weak.lock();
      if (held)
        return follow(held, record, client);
      told_.complaints.emplace_back(record.invocation_id,
                                    "a run outlived its handle");
    }
    ++record.ends;
    if (record.ends > 1)
      return;
    record.code = next ? "ok" : std::string(to_string(next.error().code()));
    if (!next)
      record.reason = next.error().message();
    record.after = told_.written.size();
    record.faults_after = told_.faults();
    if (const auto held = weak.lock()) {
      record.lost = held->lost_updates();
      record.lost_count = held->lost_updates_count();
    }
    if (const auto& used = programs_[client % programs_.size()]) {
      record.was_closing = used->is_closing();
      record.was_dead = used->is_dead();
    }
    world_.note("end of run " + record.invocation_id + " " + record.code);
    --open_;
  });
}

} // namespace troupe::testing
