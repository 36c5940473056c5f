#include "troupe/load/load_test.hpp"

#include "troupe/core/environment.hpp"
#include "troupe/load/measuring/inspection.hpp"
#include "troupe/load/measuring/recorder.hpp"
#include "troupe/runtime/runtime.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace troupe::load {

namespace {

using clock = std::chrono::steady_clock;

// A caller's record of its own appends.
class caller_memory {
public:
  // The numbers that a compare-and-set expects.
  numbers_before before(const workload& plan,
                        const planned_append& next) const {
    numbers_before found;
    if (next.what->kind == append_kind::compare_and_set)
      for (const auto where : scopes_of(*next.what))
        if (const auto known = newest_.find(owner(plan, next, where));
            known != newest_.end())
          found[static_cast<std::size_t>(where)] = known->second;
    return found;
  }

  void stored(const workload& plan, const planned_append& done) {
    if (done.what->kind == append_kind::compare_and_set)
      for (const auto where : scopes_of(*done.what))
        newest_[owner(plan, done, where)] = done.number;
  }

  // After a failure with unknown outcome, the next compare-and-set shows
  // whether the append took effect.
  void failed(const workload& plan, const planned_append& done, errc code) {
    if (done.what->kind != append_kind::compare_and_set)
      return;
    for (const auto where : scopes_of(*done.what)) {
      const auto at = owner(plan, done, where);
      if (code == errc::conflict) {
        if (const auto known = unknown_.find(at); known != unknown_.end()) {
          newest_[at] = known->second;
          unknown_.erase(known);
        }
      } else if (code == errc::store_failed || code == errc::internal) {
        unknown_[at] = done.number;
      }
    }
  }

private:
  static std::uint64_t
  owner(const workload& plan, const planned_append& done, scope where) {
    const std::uint64_t user = plan.user_of(done.session);
    const std::uint64_t number = where == scope::session ? done.session
                                 : where == scope::user  ? user
                                                         : plan.app_of(user);
    return static_cast<std::uint64_t>(where) << 56U | number;
  }

  std::unordered_map<std::uint64_t, std::uint64_t> newest_;
  std::unordered_map<std::uint64_t, std::uint64_t> unknown_;
};

fate fate_of(const result<event_ptr>& answered) {
  if (answered)
    return fate::stored;
  switch (answered.error().code()) {
  case errc::store_failed:
  case errc::internal:
    return fate::unknown;
  default:
    return fate::refused;
  }
}

// CPU time of the whole process or of the calling thread.
std::chrono::nanoseconds cpu_time(clockid_t of = CLOCK_PROCESS_CPUTIME_ID) {
  timespec used{};
  ::clock_gettime(of, &used);
  return std::chrono::seconds(used.tv_sec)
         + std::chrono::nanoseconds(used.tv_nsec);
}

// Measures the CPU time of making an append and recording its answer, without
// the runtime: other programs do not make it longer. The first rounds only
// touch the memory.
std::chrono::nanoseconds measure_own_cost(const workload& plan) {
  constexpr std::uint64_t rounds = 4'000;
  constexpr std::chrono::milliseconds time_max{25};
  recorder into(plan.chosen().mix.size());
  caller_memory memory;
  caller_ledger told;
  told.reserve(2 * rounds);
  std::uint64_t number = 0;
  const auto measure = [&] {
    const auto begun = clock::now();
    const auto cpu_begun = cpu_time(CLOCK_THREAD_CPUTIME_ID);
    const auto first = number;
    do {
      const auto planned = plan.plan(0, number);
      const auto made = plan.make(planned, memory.before(plan, planned));
      const auto now = clock::now();
      told.send(planned.session);
      told.tell(number, made.id.empty() ? fate::refused : fate::stored);
      memory.stored(plan, planned);
      const auto took = clock::now() - now;
      into.stored(0, planned, took, took);
      ++number;
    } while (number - first < rounds && clock::now() - begun < time_max);
    return (cpu_time(CLOCK_THREAD_CPUTIME_ID) - cpu_begun)
           / static_cast<std::int64_t>(number - first);
  };
  measure();
  return measure();
}

class load_test {
public:
  load_test(const workload& plan,
            session_service& sessions,
            recorder& records,
            std::stop_token stop)
    : plan_(plan),
      sessions_(sessions),
      stop_(std::move(stop)),
      records_(records),
      told_(plan.chosen().callers),
      memories_(plan.chosen().callers),
      keys_(plan.chosen().sessions) {
    for (std::size_t index = 0; index < keys_.size(); ++index)
      keys_[index] = plan_.session(index);
  }

  result<void> create_sessions();
  void run(const watcher& watch, outcome& into);

  // The appends with the answers that the callers got.
  const ledger& told() const noexcept { return told_; }

private:
  bool is_over() const { return ending_ || stop_.stop_requested(); }

  void keep(const std::exception_ptr& thrown);
  bool take_one();
  task<> append_closed(std::uint32_t caller);
  task<> read_closed(std::uint32_t reader);
  void append_open(outcome& into);
  void answered(const planned_append& planned,
                const result<event_ptr>& outcome,
                clock::time_point due,
                clock::time_point sent);
  void watch_seconds(const std::stop_token& done,
                     const watcher& watch,
                     outcome& into);

  const workload& plan_;
  session_service& sessions_;
  const std::stop_token stop_;
  recorder& records_;
  ledger told_;
  std::vector<caller_memory> memories_;
  std::mutex thrown_mutex_;
  std::exception_ptr thrown_;
  std::vector<session_key> keys_;
  clock::time_point begun_;
  std::atomic<std::uint64_t> taken_ = 0;
  std::atomic<std::uint64_t> offered_ = 0;
  std::atomic<std::uint64_t> in_flight_ = 0;
  std::atomic<bool> ending_ = false;
};

// Creates some thousand sessions at a time, so that none is refused as `busy`.
result<void> load_test::create_sessions() {
  constexpr std::size_t at_once = 1'024;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t under_way = 0;
  std::optional<error> failure;
  for (const auto& key : keys_) {
    std::unique_lock guard(mutex);
    changed.wait(guard, [&] { return under_way < at_once; });
    if (failure || stop_.stop_requested())
      break;
    ++under_way;
    guard.unlock();
    sessions_.create(key).then([&](const result<session>& made) {
      const std::lock_guard lock(mutex);
      --under_way;
      if (!made && !failure)
        failure = made.error();
      changed.notify_all();
    });
  }
  std::unique_lock guard(mutex);
  changed.wait(guard, [&] { return under_way == 0; });
  return failure ? result<void>(*failure) : result<void>();
}

// Keeps an exception of the test itself. Without this it would only show as
// slow appends.
void load_test::keep(const std::exception_ptr& thrown) {
  if (!thrown)
    return;
  const std::lock_guard guard(thrown_mutex_);
  thrown_ = thrown;
  ending_ = true;
}

// Takes one of the remaining appends; false if there is none.
bool load_test::take_one() {
  if (is_over())
    return false;
  const auto& appends = plan_.chosen().appends;
  if (appends)
    return taken_.fetch_add(1, std::memory_order_relaxed) < *appends;
  return clock::now() - begun_ < plan_.chosen().duration;
}

void load_test::answered(const planned_append& planned,
                         const result<event_ptr>& outcome,
                         clock::time_point due,
                         clock::time_point sent) {
  const auto now = clock::now();
  told_[planned.caller].tell(planned.number, fate_of(outcome));
  if (outcome)
    records_.stored(planned.caller, planned, now - due, now - sent);
  else
    records_.failed(planned.caller, outcome.error().code());
}

task<> load_test::append_closed(std::uint32_t caller) {
  auto& memory = memories_[caller];
  for (std::uint64_t number = 0; take_one(); ++number) {
    const auto planned = plan_.plan(caller, number);
    auto made = plan_.make(planned, memory.before(plan_, planned));
    told_[caller].send(planned.session);
    const auto sent = clock::now();
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    offered_.fetch_add(1, std::memory_order_relaxed);
    const auto outcome = co_await sessions_.append_event(keys_[planned.session],
                                                         std::move(made));
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    answered(planned, outcome, sent, sent);
    if (outcome)
      memory.stored(plan_, planned);
    else
      memory.failed(plan_, planned, outcome.error().code());
  }
}

task<> load_test::read_closed(std::uint32_t reader) {
  for (std::uint64_t number = 0; !is_over(); ++number) {
    const auto planned = plan_.plan(~reader, number);
    const auto sent = clock::now();
    const auto read = co_await sessions_.get(keys_[planned.session],
                                             {.num_recent_events = 20});
    if (read)
      records_.read(reader, clock::now() - sent);
    else
      records_.failed_read(reader, read.error().code());
  }
}

// Latency counts from the time when an append was due, so that a stall is not
// hidden by appends that were not made meanwhile. Appends that are not begun
// within the duration are not offered: this thread was too slow, not the store.
void load_test::append_open(outcome& into) {
  const auto& chosen = plan_.chosen();
  // By default the kernel may wake a thread 50 us late.
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  const auto count = chosen.appends.value_or(static_cast<std::uint64_t>(
    chosen.rate * static_cast<double>(chosen.duration.count()) / 1'000));
  const auto end
    = chosen.appends ? clock::time_point::max() : begun_ + chosen.duration;
  for (auto& each : told_)
    each.reserve(count / chosen.callers + 1);
  std::mutex mutex;
  std::condition_variable_any woken;
  for (std::uint64_t index = 0; index < count && !is_over(); ++index) {
    const auto due = begun_
                     + std::chrono::nanoseconds(static_cast<std::int64_t>(
                       static_cast<double>(index) * 1e9 / chosen.rate));
    // Short sleeps are more exact; long ones can be ended early.
    if (due - clock::now() > std::chrono::milliseconds(20)) {
      std::unique_lock guard(mutex);
      if (woken.wait_until(guard, stop_, due, [this] { return is_over(); }))
        break;
    } else {
      std::this_thread::sleep_until(due);
    }
    if (clock::now() >= end)
      break;
    const auto caller = static_cast<std::uint32_t>(index % chosen.callers);
    const auto planned = plan_.plan(caller, index / chosen.callers);
    auto made = plan_.make(planned, {});
    told_[caller].send(planned.session);
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    offered_.fetch_add(1, std::memory_order_relaxed);
    const auto sent = clock::now();
    into.lateness.record(sent - due);
    sessions_.append_event(keys_[planned.session], std::move(made))
      .then([this, planned, due, sent](const result<event_ptr>& outcome) {
        answered(planned, outcome, due, sent);
        in_flight_.fetch_sub(1, std::memory_order_acq_rel);
        in_flight_.notify_all();
      });
  }
  into.offering = clock::now() - begun_;
  for (auto left = in_flight_.load(); left != 0; left = in_flight_.load())
    in_flight_.wait(left);
}

void load_test::watch_seconds(const std::stop_token& done,
                              const watcher& watch,
                              outcome& into) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock guard(mutex);
  std::uint64_t offered_before = 0;
  // Values after the last full second are reported at the end.
  bool is_last = false;
  for (std::size_t second = 1; !is_last; ++second) {
    woken.wait_until(
      guard, done, begun_ + std::chrono::seconds(second), [] { return false; });
    is_last = done.stop_requested();
    auto latest = records_.take_interval();
    const auto now = clock::now();
    latest.at
      = std::chrono::duration_cast<std::chrono::milliseconds>(now - begun_);
    latest.in_flight = in_flight_;
    latest.memory = resident_bytes();
    const auto offered = offered_.load();
    latest.offered = offered - std::exchange(offered_before, offered);
    if (is_last && latest.stored + latest.failed == 0)
      return;
    into.seconds.push_back(latest);
    if (is_last || !watch)
      continue;
    progress shown;
    shown.newest = into.seconds.back();
    for (const auto& each : into.seconds) {
      shown.stored += each.stored;
      shown.failed += each.failed;
    }
    shown.elapsed = shown.newest.at;
    if (!plan_.chosen().appends)
      shown.left = std::max(plan_.chosen().duration - shown.elapsed,
                            std::chrono::milliseconds(0));
    else if (shown.stored > 0)
      shown.left = shown.elapsed
                   * static_cast<std::int64_t>(
                     *plan_.chosen().appends
                     - std::min(*plan_.chosen().appends, shown.stored))
                   / static_cast<std::int64_t>(shown.stored);
    watch(shown);
  }
}

void load_test::run(const watcher& watch, outcome& into) {
  const auto& chosen = plan_.chosen();
  const auto cpu_before = cpu_time();
  begun_ = clock::now();
  std::jthread watching(
    [&](const std::stop_token& done) { watch_seconds(done, watch, into); });
  std::latch readers(static_cast<std::ptrdiff_t>(chosen.readers));
  for (std::size_t index = 0; index < chosen.readers; ++index)
    start(read_closed(static_cast<std::uint32_t>(index)),
          [&](const std::exception_ptr& thrown) {
            keep(thrown);
            readers.count_down();
          });
  if (chosen.arrival == arrival::open) {
    append_open(into);
  } else {
    std::latch callers(static_cast<std::ptrdiff_t>(chosen.callers));
    for (std::size_t index = 0; index < chosen.callers; ++index)
      start(append_closed(static_cast<std::uint32_t>(index)),
            [&](const std::exception_ptr& thrown) {
              keep(thrown);
              callers.count_down();
            });
    callers.wait();
  }
  into.elapsed = clock::now() - begun_;
  // The rest of the duration counts, even if no append was due in it.
  if (chosen.arrival == arrival::open && !chosen.appends && !is_over())
    into.elapsed
      = std::max<std::chrono::nanoseconds>(into.elapsed, chosen.duration);
  if (chosen.arrival == arrival::closed)
    into.offering = into.elapsed;
  into.cpu = cpu_time() - cpu_before;
  ending_ = true;
  readers.wait();
  watching.request_stop();
  watching.join();
  if (thrown_)
    std::rethrow_exception(thrown_);
  into.interrupted = stop_.stop_requested();
  into.memory = resident_bytes();
  for (const auto& each : told_)
    into.sent += each.size();
  records_.finish(into);
}

// Compares all sessions, users and apps of the test with the ledger.
result<verdict> inspect(const workload& plan,
                        const ledger& told,
                        session_service& sessions,
                        const watcher& watch) {
  const auto& chosen = plan.chosen();
  inspection looking(plan, told);
  progress shown;
  shown.to_check = chosen.sessions;
  auto shown_at = clock::now();
  for (std::size_t index = 0; index < chosen.sessions; ++index) {
    const auto held = sessions.get(plan.session(index)).get();
    if (held)
      looking.look_at_session(index, *held);
    else if (held.error().code() == errc::not_found)
      looking.miss_session(index); // All of its events are lost.
    else
      return held.error();
    shown.checked = index + 1;
    if (watch && clock::now() - shown_at >= std::chrono::seconds(1)) {
      shown_at = clock::now();
      watch(shown);
    }
  }
  for (std::size_t user = 0; user < chosen.users; ++user) {
    const auto state = sessions
                         .user_state(plan.app_name(plan.app_of(user)),
                                     workload::user_name(user))
                         .get();
    if (!state)
      return state.error();
    looking.look_at_user(user, *state);
  }
  for (std::size_t app = 0; app < chosen.apps; ++app) {
    const auto state = sessions.app_state(plan.app_name(app)).get();
    if (!state)
      return state.error();
    looking.look_at_app(app, *state);
  }
  return looking.finish();
}

// Returns true if the state outlives the runtime.
bool is_kept(const settings& chosen) {
  return chosen.store.address() != nullptr
         && !chosen.store.address()->starts_with("memory:");
}

runtime_options options_for(const settings& chosen) {
  runtime_options options;
  options.store = chosen.store;
  options.durability = chosen.durability;
  return options;
}

// Inspects the state by a new runtime, if the store outlives the one that wrote
// it. `closing` is the error of closing the store; the inspection is made in
// any case.
result<verdict> inspect_stored(const workload& plan,
                               const ledger& told,
                               runtime& on,
                               const watcher& watch,
                               result<void>& closing) {
  if (!is_kept(plan.chosen())) {
    auto found = inspect(plan, told, on.sessions(), watch);
    closing = on.shut_down();
    return found;
  }
  closing = on.shut_down();
  auto again = runtime::open(options_for(plan.chosen()));
  if (!again)
    return again.error();
  auto found = inspect(plan, told, again->sessions(), watch);
  if (auto closed = again->shut_down(); !closed && closing)
    closing = std::move(closed);
  return found;
}

} // namespace

result<outcome> run_load_test(const settings& chosen,
                              const watcher& watch,
                              const std::stop_token& stop) {
  if (auto fit = check_settings(chosen); !fit)
    return fit.error();
  recorder records(chosen.mix.size());
  auto options = options_for(chosen);
  options.on_commit
    = [&records](std::size_t events) { records.committed(events); };
  auto opened = runtime::open(std::move(options));
  if (!opened)
    return opened.error();
  outcome made;
  made.chosen = chosen;
  made.chosen.store = name_of(chosen.store); // An own one is closed by then.
  made.made_on = this_machine();
  made.made_with = these_versions(name_of(chosen.store));
  made.started = opened->environment()->now();
  made.run = opened->environment()->new_id().substr(0, 8);
  const workload plan(chosen, made.run);
  made.own_cost = measure_own_cost(plan);
  load_test test(plan, opened->sessions(), records, stop);
  if (auto ready = test.create_sessions(); !ready)
    return ready.error();
  if (stop.stop_requested())
    return error(errc::cancelled, "interrupted before the test began");
  records.forget_batches();
  test.run(watch, made);
  result<void> closing;
  auto found = inspect_stored(plan, test.told(), *opened, watch, closing);
  if (!closing)
    made.closing = to_string(closing.error());
  if (found)
    made.found = std::move(*found);
  else
    made.unchecked = to_string(found.error());
  return made;
}

} // namespace troupe::load
