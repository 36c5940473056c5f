#include "troupe/load/experiment_run.hpp"

#include "troupe/stores/open_store.hpp"
#include "troupe/stores/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace troupe::load {

namespace {

using clock = std::chrono::steady_clock;

// Number of events before a fork that the report may show.
constexpr std::size_t past_events_max = 32;

std::string last_text(const event_slice& events) {
  std::string text;
  for (const auto& said : events)
    if (said->author != "user" && !said->text().empty())
      text = said->text();
  return text;
}

class experiment_runner {
public:
  experiment_runner(const experiment& planned,
                    runtime& on,
                    std::string run,
                    const experiment_watcher& watch,
                    std::stop_token stop)
    : planned_(planned),
      on_(on),
      run_(std::move(run)),
      watch_(watch),
      stop_(std::move(stop)),
      begun_(clock::now()) {}

  /// Returns when all started runs have ended.
  result<void> perform(const std::vector<planned_run>& runs,
                       const agent_file_options& more);

  std::vector<experiment_run> take_runs() { return std::move(done_); }

  std::vector<session_key> take_sessions() { return std::move(started_); }

private:
  session_key place_of(const planned_run& which) const {
    auto name = fmt::format("{}-{}-{}-{}-{}",
                            planned_.name,
                            run_,
                            planned_.variants[which.variant].name,
                            which.input + 1,
                            which.repeat + 1);
    if (!planned_.from)
      return {std::move(name), "user", "session"};
    auto place = planned_.from->session;
    place.id = std::move(name);
    return place;
  }

  task<experiment_run> perform_one(planned_run which, agent root);
  task<> keep_one(planned_run which, agent root);
  task<result<session>> make_session(session_key key);
  task<result<session>> make_fork(session_key key);
  task<result<session>> fetch_behind(session start);
  void read_log(experiment_run& made,
                const session& start,
                const session& held) const;
  void tell();

  const experiment& planned_;
  runtime& on_;
  const std::string run_;
  const experiment_watcher& watch_;
  const std::stop_token stop_;
  const clock::time_point begun_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t under_way_ = 0;
  std::size_t failed_ = 0;
  std::size_t planned_runs_ = 0;
  std::exception_ptr thrown_;
  std::vector<experiment_run> done_;
  std::vector<session_key> started_;
};

std::vector<key_difference> changes_between(const session& start,
                                            const session& end) {
  auto keys = diff(start, end).keys;
  // Other runs may have changed the others, too.
  std::erase_if(keys, [](const auto& each) {
    return split_key(each.key).where != scope::session;
  });
  return keys;
}

void experiment_runner::read_log(experiment_run& made,
                                 const session& start,
                                 const session& held) const {
  const auto own = held.events().from(start.revision() + 1).live();
  auto lines = timelines_of(own, planned_.prices.get());
  if (!lines.empty())
    made.line = std::move(lines.front());
  // The log of a failed run ends before its failure.
  if (!made.error.empty())
    made.line.error = made.error;
  made.output = last_text(own);
  for (const auto& key : planned_.keys)
    if (auto found = held.state().find(key))
      made.state[key] = found->data();
  made.changes = changes_between(start, held);
}

// The session of a run, as it is before the run.
task<result<session>> experiment_runner::make_session(session_key key) {
  if (planned_.from)
    co_return co_await make_fork(std::move(key));
  create_request wanted(std::move(key));
  wanted.state = planned_.state;
  co_return co_await on_.sessions().create(std::move(wanted));
}

task<result<session>> experiment_runner::make_fork(session_key key) {
  auto sessions = on_.sessions();
  auto made = co_await sessions.fork(
    planned_.from->session, {.at = planned_.from->revision}, key.id);
  if (!made || planned_.state.empty())
    co_return made;
  auto changed = delta::from_json(planned_.state);
  if (!changed)
    co_return changed.error();
  event set;
  set.author = "system";
  set.actions.state_delta = std::move(*changed);
  const auto appended = co_await sessions.append_event(key, std::move(set));
  if (!appended)
    co_return appended.error();
  co_return co_await sessions.get(std::move(key), {.num_recent_events = 0});
}

// The session with its events behind `start`. A fork may have a long past,
// which is not read.
task<result<session>> experiment_runner::fetch_behind(session start) {
  auto sessions = on_.sessions();
  const auto newest
    = co_await sessions.get(start.key(), {.num_recent_events = 0});
  if (!newest)
    co_return newest;
  const auto count = newest->revision() - start.revision();
  co_return co_await sessions.get(
    start.key(), {.num_recent_events = count, .at = newest->revision()});
}

task<experiment_run> experiment_runner::perform_one(planned_run which,
                                                    agent root) {
  experiment_run made;
  made.which = which;
  made.session = place_of(which);
  const auto fail = [&made](const error& why) {
    made.error = to_string(why.code());
    made.reason = why.message();
  };
  const auto start = co_await make_session(made.session);
  if (!start) {
    fail(start.error());
    co_return made;
  }
  run_options options;
  options.step_times = true;
  options.deadline = planned_.deadline;
  const auto begun = clock::now();
  auto running
    = on_.run(root, made.session, planned_.inputs[which.input], options);
  {
    const std::stop_callback cut_off(stop_, [&running] { running.cancel(); });
    const auto ended = co_await running.wait();
    made.wall = clock::now() - begun;
    if (!ended)
      fail(ended.error());
  }
  if (const auto waits = running.waits_for();
      made.error.empty() && !waits.empty()) {
    made.error = "waiting";
    made.reason
      = fmt::format("the run waits for {} answers from outside", waits.size());
  }
  const auto held = co_await fetch_behind(*start);
  if (held)
    read_log(made, *start, *held);
  else if (made.error.empty())
    fail(held.error());
  co_return made;
}

task<> experiment_runner::keep_one(planned_run which, agent root) {
  auto made = co_await perform_one(which, std::move(root));
  // A run that the end of the experiment cancels says nothing about its
  // variant.
  if (stop_.stop_requested() && made.error == "cancelled")
    co_return;
  const std::lock_guard guard(mutex_);
  failed_ += made.error.empty() ? 0 : 1;
  done_.push_back(std::move(made));
}

// Requires `mutex_`.
void experiment_runner::tell() {
  if (!watch_)
    return;
  experiment_progress now;
  now.run = run_;
  now.done = done_.size();
  now.failed = failed_;
  now.running = under_way_;
  now.planned = planned_runs_;
  now.elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(
    clock::now() - begun_);
  if (now.done > 0)
    now.left = now.elapsed * static_cast<std::int64_t>(now.planned - now.done)
               / static_cast<std::int64_t>(now.done);
  watch_(now);
}

result<void> experiment_runner::perform(const std::vector<planned_run>& runs,
                                        const agent_file_options& more) {
  planned_runs_ = runs.size();
  result<void> outcome;
  std::unique_lock guard(mutex_);
  tell();
  for (const auto& which : runs) {
    changed_.wait(guard, [this] { return under_way_ < planned_.at_once; });
    if (stop_.stop_requested() || thrown_)
      break;
    ++under_way_;
    started_.push_back(place_of(which));
    guard.unlock();
    // Reads files on this thread, since the others run agents.
    auto root = make_agents(planned_, which, more);
    if (!root) {
      guard.lock();
      --under_way_;
      started_.pop_back();
      outcome = root.error();
      break;
    }
    start(keep_one(which, std::move(*root)),
          [this](const std::exception_ptr& thrown) {
            const std::lock_guard lock(mutex_);
            --under_way_;
            if (thrown)
              thrown_ = thrown;
            tell();
            changed_.notify_all();
          });
    guard.lock();
  }
  changed_.wait(guard, [this] { return under_way_ == 0; });
  if (thrown_)
    std::rethrow_exception(thrown_);
  return outcome;
}

result<void> check_forks(const experiment& planned,
                         const location<store>& where) {
  const auto own = where.object();
  if (planned.from && own && !own->can_fork())
    return error(errc::invalid_argument,
                 "this store cannot fork sessions: it does not override "
                 "store::can_fork");
  return {};
}

// Finds the session at which all runs begin, and fixes its revision.
result<void> find_start(experiment_outcome& made, runtime& on) {
  if (!made.made.from)
    return {};
  auto& from = *made.made.from;
  const auto held
    = on.sessions()
        .get(from.session,
             {.num_recent_events = past_events_max, .at = from.revision})
        .get();
  if (!held)
    return held.error();
  from.session = held->key();
  from.revision = held->revision();
  made.past = held->events().live();
  return {};
}

} // namespace

result<experiment_outcome> run_experiment(const experiment& planned,
                                          runtime_options options,
                                          const agent_file_options& more,
                                          const experiment_watcher& watch,
                                          const std::stop_token& stop) {
  if (auto fit = check_amounts(planned); !fit)
    return fit.error();
  if (auto fit = check_start(planned); !fit)
    return fit.error();
  if (auto fit = check_forks(planned, options.store); !fit)
    return fit.error();
  for (std::size_t index = 0; index < planned.variants.size(); ++index)
    if (auto made = make_agents(planned, {index, 0, 0}, more); !made)
      return made.error();
  experiment_outcome made;
  made.made = planned;
  made.store = without_password(name_of(options.store));
  made.made_on = this_machine();
  made.made_with = these_versions(name_of(options.store));
  auto opened = runtime::open(std::move(options));
  if (!opened)
    return opened.error();
  if (auto found = find_start(made, *opened); !found)
    return found.error();
  made.started = opened->environment()->now();
  made.run = opened->environment()->new_id().substr(0, 8);
  const auto begun = clock::now();
  experiment_runner running(made.made, *opened, made.run, watch, stop);
  auto performed = running.perform(plan_runs(planned), more);
  made.elapsed = clock::now() - begun;
  made.interrupted = stop.stop_requested();
  made.runs = running.take_runs();
  made.sessions = running.take_sessions();
  std::ranges::sort(made.runs, {}, [](const experiment_run& each) {
    return std::tuple(each.which.variant, each.which.input, each.which.repeat);
  });
  if (auto closed = opened->shut_down(); !closed && performed)
    return closed.error();
  if (!performed)
    return performed.error();
  return made;
}

} // namespace troupe::load
