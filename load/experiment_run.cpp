#include "troupe/load/experiment_run.hpp"

#include "troupe/stores/open_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace troupe::load {

namespace {

using clock = std::chrono::steady_clock;

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

private:
  session_key place_of(const planned_run& which) const {
    return {fmt::format("{}-{}-{}-{}-{}",
                        planned_.name,
                        run_,
                        planned_.variants[which.variant].name,
                        which.input + 1,
                        which.repeat + 1),
            "user",
            "session"};
  }

  task<experiment_run> perform_one(planned_run which, agent root);
  task<> keep_one(planned_run which, agent root);
  void read_log(experiment_run& made, const session& held) const;
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
};

void experiment_runner::read_log(experiment_run& made,
                                 const session& held) const {
  auto lines = timelines_of(held.events());
  if (!lines.empty())
    made.line = std::move(lines.front());
  // The log of a failed run ends before its failure.
  if (!made.error.empty())
    made.line.error = made.error;
  made.output = last_text(held.events());
  for (const auto& key : planned_.keys)
    if (auto found = held.state().find(key))
      made.state[key] = found->data();
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
  create_request wanted(made.session);
  wanted.state = planned_.state;
  const auto created = co_await on_.sessions().create(std::move(wanted));
  if (!created) {
    fail(created.error());
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
  const auto held = co_await on_.sessions().get(made.session);
  if (held)
    read_log(made, *held);
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
    guard.unlock();
    // Reads files on this thread, since the others run agents.
    auto root = make_agents(planned_, which, more);
    if (!root) {
      guard.lock();
      --under_way_;
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

} // namespace

result<experiment_outcome> run_experiment(const experiment& planned,
                                          runtime_options options,
                                          const agent_file_options& more,
                                          const experiment_watcher& watch,
                                          const std::stop_token& stop) {
  if (auto fit = check_amounts(planned); !fit)
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
  made.started = opened->environment()->now();
  made.run = opened->environment()->new_id().substr(0, 8);
  const auto begun = clock::now();
  experiment_runner running(planned, *opened, made.run, watch, stop);
  auto performed = running.perform(plan_runs(planned), more);
  made.elapsed = clock::now() - begun;
  made.interrupted = stop.stop_requested();
  made.runs = running.take_runs();
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
