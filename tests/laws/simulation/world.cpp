#include "world.hpp"

#include "troupe/actors/running/shared.hpp"
#include "troupe/contexts/task.hpp"

#include "held_locks.hpp"

#include <cassert>
#include <utility>

namespace troupe::testing {

namespace {

// A bound that no seed reaches.
constexpr std::size_t steps_max = 4'000'000;
constexpr std::chrono::hours patience{24};

class simulated_clock final : public environment {
public:
  simulated_clock(world& in, std::uint64_t seed)
    : world_(in),
      ids_(scattered(seed), scattered(seed + 1)) {}

  timestamp now() override { return world_.now(); }

  std::string new_id() override { return ids_.next(); }

  void call_after(std::chrono::nanoseconds delay,
                  std::function<void()> done) override {
    world_.after(delay, std::move(done));
  }

private:
  world& world_;
  id_source ids_;
};

} // namespace

world::world(std::uint64_t seed) : choices_(seed) {}

world::~world() = default;

std::shared_ptr<environment> world::make_environment(std::uint64_t seed) {
  return std::make_shared<simulated_clock>(*this, seed);
}

timestamp world::now() const {
  return timestamp(
    std::chrono::seconds(1'780'000'000)
    + std::chrono::duration_cast<std::chrono::microseconds>(elapsed_));
}

std::size_t world::jobs() const noexcept {
  return ready_.size() + left_;
}

// -- scheduling ----

void world::post(actors::job_kind kind, std::function<void()> work) {
  ready_.push_back({static_cast<std::size_t>(kind), std::move(work), nullptr});
  if (current_ != nullptr && kind == actors::job_kind::actor && !holds_a_lock()
      && choices_.one_in(habits_.preempts))
    pause(std::chrono::nanoseconds(0));
}

void world::after(std::chrono::nanoseconds delay, std::function<void()> work) {
  later_.emplace(moment(elapsed_ + delay, ++scheduled_),
                 job{timer_kind, std::move(work), nullptr});
}

void world::pause(std::chrono::nanoseconds duration) {
  // A runtime that ends writes for the last time outside of all jobs.
  if (current_ == nullptr)
    return;
  // Values that the runtime keeps per thread belong to the running job.
  const actors::run_scope no_run(nullptr);
  const executor::current_guard no_executor(nullptr);
  leave([this, until = elapsed_ + duration](job left) {
    if (until > elapsed_)
      later_.emplace(moment(until, ++scheduled_), std::move(left));
    else
      ready_.push_back(std::move(left));
  });
}

void world::leave(std::function<void(job)> keep) {
  keep_ = std::move(keep);
  current_->leave();
}

// -- steps ----

void world::run_until(const std::function<bool()>& done) {
  assert(current_ == nullptr);
  while (!done()) {
    if (ready_.empty() && later_.empty())
      throw stuck("no job is left, but a caller waits");
    if (steps_ > steps_max)
      throw stuck("the simulation does not end");
    if (quiet_ > patience)
      throw stuck("nothing happens any more, but a caller waits");
    step();
  }
}

void world::step() {
  ++steps_;
  if (ready_.empty() || (!later_.empty() && choices_.one_in(habits_.hurries)))
    return move_time();
  const auto index = pick();
  auto chosen = std::move(ready_[index]);
  ready_[index] = std::move(ready_.back());
  ready_.pop_back();
  mix((index << 8U) | chosen.kind);
  run(std::move(chosen));
}

std::size_t world::pick() {
  auto index = choices_.below(ready_.size());
  if (habits_.slow[ready_[index].kind] && !choices_.one_in(4))
    index = choices_.below(ready_.size());
  return index;
}

// Moves time to the next moment; all that is due then becomes ready. Only time
// in which no job was ready counts as quiet.
void world::move_time() {
  const auto next = std::max(elapsed_, later_.begin()->first.first);
  if (ready_.empty())
    quiet_ += next - elapsed_;
  elapsed_ = next;
  mix(static_cast<std::uint64_t>(elapsed_.count()));
  while (!later_.empty() && later_.begin()->first.first <= elapsed_)
    ready_.push_back(std::move(later_.extract(later_.begin()).mapped()));
}

void world::run(job chosen) {
  bool ended = false;
  std::unique_ptr<fiber> on;
  current_kind_ = chosen.kind;
  if (chosen.left) {
    on = std::move(chosen.left);
    --left_;
    current_ = on.get();
    ended = on->go_on();
  } else {
    if (idle_.empty())
      idle_.push_back(std::make_unique<fiber>());
    on = std::move(idle_.back());
    idle_.pop_back();
    current_ = on.get();
    ended = on->start(std::move(chosen.work));
  }
  current_ = nullptr;
  if (ended) {
    idle_.push_back(std::move(on));
    return;
  }
  ++left_;
  std::exchange(keep_, nullptr)(job{current_kind_, nullptr, std::move(on)});
}

// -- notes ----

void world::mix(std::uint64_t number) noexcept {
  hash_ = scattered(hash_ ^ number);
}

void world::note(std::string_view what) {
  quiet_ = std::chrono::nanoseconds(0);
  for (const char each : what)
    hash_ = (hash_ ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
  if (on_note)
    on_note(what);
}

} // namespace troupe::testing
