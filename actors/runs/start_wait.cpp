#include "troupe/actors/runs/start_wait.hpp"

#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/running/holder_name.hpp"
#include "troupe/actors/running/lease.hpp"
#include "troupe/agents/turns/recovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

using run_list = std::vector<open_run>;

constexpr std::chrono::milliseconds longest_delay{500};
// A wait this long is told to the operator.
constexpr std::chrono::seconds silent_wait_max{1};

// Returns the runs of other processes that have not ended, as far as known. If
// there are none, the store forgets the processes that have died, since it
// would wait for the lease. Uses the rule of the commit that opens the run
// (`run_gate`). Blocks.
result<run_list>
read_ahead(store& kept, setup& shared, const start_wait::settings& chosen) {
  auto listed = list_session(kept, chosen.session);
  if (!listed)
    return listed.error();
  run_list ahead;
  std::vector<std::string> died;
  for (auto& each : *listed) {
    if (each.invocation_id == chosen.invocation_id
        || each.holder == shared.holder_id
        || is_silent(each, shared.options.run_lease))
      continue;
    // No process executes a run that its process has left.
    if (is_left(each.holder) || has_died(each.holder, shared.holder_id))
      died.push_back(std::move(each.holder));
    else
      ahead.push_back(std::move(each));
  }
  if (ahead.empty())
    for (const auto& holder : died)
      shared.store->forget_holder(holder);
  return ahead;
}

std::string warning_of(const open_run& ahead,
                       const std::string& waiting,
                       std::chrono::nanoseconds lease) {
  using std::chrono::ceil;
  using std::chrono::milliseconds;
  const auto silent = *ahead.silent;
  return fmt::format(
    "run {} waits for run {} of session {}, which process {} has; it begins "
    "when that run has ended, or in {} ms if that process gives no sign of "
    "life until then (`troupe runs` lists the open runs; once their process "
    "has ended, `troupe run --recover` continues one and `troupe runs --close` "
    "gives it up)",
    waiting,
    ahead.invocation_id,
    to_string(ahead.key),
    ahead.holder,
    ceil<milliseconds>(lease - silent).count());
}

} // namespace

start_wait::start_wait(std::shared_ptr<setup> shared,
                       settings chosen,
                       std::shared_ptr<wait_answer> run)
  : shared_(std::move(shared)),
    chosen_(std::move(chosen)),
    run_(std::move(run)),
    began_(shared_->environment->elapsed()) {}

void start_wait::await(const error& refusal, bool ends_alone) {
  refusal_ = refusal;
  ends_alone_ = ends_alone;
  if (!std::exchange(has_looked_, true))
    return look();
  look_later();
}

void start_wait::look_later() {
  const auto delay = delay_;
  delay_ = std::min(2 * delay_, longest_delay);
  shared_->environment->call_after(delay, [weak = weak_from_this()] {
    if (const auto self = weak.lock())
      self->look();
  });
}

void start_wait::look() {
  if (chosen_.recovers)
    return find_own();
  look_ahead(std::nullopt);
}

// Finds the holder of the run that is recovered. The run may have gone on, or
// may have been given up or recovered meanwhile.
void start_wait::find_own() {
  find_free(shared_, chosen_.session, chosen_.invocation_id)
    .then(
      [weak = weak_from_this()](const result<std::optional<open_run>>& found) {
        const auto self = weak.lock();
        if (!self)
          return;
        if (!found)
          return self->tell(found.error());
        if (!*found)
          return self->tell(
            no_open_run(self->chosen_.session, self->chosen_.invocation_id));
        auto from = holder_of(**found, *self->shared_);
        if (!self->chosen_.is_alone)
          return self->tell(std::move(from));
        self->look_ahead(std::move(from));
      });
}

// The call counts until it is complete, so the queue and the runtime's data
// outlive the read.
void start_wait::look_ahead(const holder& found) {
  auto wanted = std::make_unique<answered<run_list>>();
  wanted->done = [weak = weak_from_this(), found](result<run_list> ahead) {
    if (const auto self = weak.lock())
      self->decide(std::move(ahead), found);
  };
  if (!admit_call(*wanted, *shared_))
    return;
  read_then_complete<run_list>(
    *shared_,
    std::move(wanted),
    [shared = shared_, chosen = chosen_](store& kept) {
      return read_ahead(kept, *shared, chosen);
    });
}

void start_wait::decide(result<run_list> ahead, const holder& found) {
  // The end of the runtime cancels the run.
  if (!ahead && shared_->closing)
    return;
  // If the store cannot list the runs, its next commit tells.
  const bool is_alone = !ahead || ahead->empty();
  if (chosen_.queues && is_alone && ends_alone_ && was_alone_)
    return tell(holder(*refusal_));
  was_alone_ = is_alone && ends_alone_;
  if (chosen_.queues && is_alone)
    return tell(found);
  if (!chosen_.queues)
    return tell(ahead && ahead->empty() ? found : holder(*refusal_));
  warn_once(ahead->front());
  look_later();
}

void start_wait::tell(holder found) {
  run_->with_lane([&found](lane_actor& lane) {
    auto told = std::make_unique<struct try_again>();
    told->holder = std::move(found);
    lane.tell(std::move(told));
  });
}

void start_wait::warn_once(const open_run& ahead) {
  if (!shared_->on_warning || has_warned_
      || shared_->environment->elapsed() - began_ < silent_wait_max)
    return;
  has_warned_ = true;
  shared_->on_warning(
    warning_of(ahead, chosen_.invocation_id, shared_->options.run_lease));
}

} // namespace troupe::actors
