#include "troupe/contexts/callback_context.hpp"

#include "troupe/contexts/lanes/host.hpp"
#include "troupe/contexts/lanes/memory_access.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace troupe {

namespace {

using access_ptr = std::shared_ptr<const memory_access>;

// Adds to memory unless it is refused when it starts.
class addition_call final : public detail::call<std::size_t> {
public:
  addition_call(const run_facts& facts,
                memory_addition wanted,
                const std::atomic<bool>* is_closed)
    : access_(facts.memory),
      key_(facts.session),
      wanted_(std::move(wanted)),
      is_closed_(is_closed) {}

  void start(completion<std::size_t> done) override {
    if (auto ready = check(); !ready)
      return done(ready.error());
    auto made = access_->add(key_, std::move(wanted_));
    if (!made)
      return done(made.error());
    made->then(std::move(done));
  }

  result<std::size_t> wait() override {
    if (auto ready = check(); !ready)
      return ready.error();
    auto made = access_->add(key_, std::move(wanted_));
    return made ? made->get() : made.error();
  }

private:
  result<void> check() const {
    if (!access_)
      return without_memory();
    return check_open(is_closed_);
  }

  const access_ptr access_;
  const session_key key_;
  memory_addition wanted_;
  const std::atomic<bool>* is_closed_; // Outlives the start of the call.
};

pending<std::size_t> add(const run_facts& facts,
                         memory_addition wanted,
                         const std::atomic<bool>* is_closed) {
  return pending<std::size_t>(
    std::make_unique<addition_call>(facts, std::move(wanted), is_closed));
}

} // namespace

pending<std::size_t> callback_context::add_session_to_memory() {
  return add(*facts_, {memory_addition::whole_session()}, is_closed_);
}

pending<std::size_t>
callback_context::add_events_to_memory(std::vector<event_ptr> events) {
  return add(*facts_, {std::move(events)}, is_closed_);
}

pending<std::size_t>
callback_context::add_memory(std::vector<memory_entry> entries) {
  for (auto& each : entries)
    if (each.timestamp == timestamp())
      each.timestamp = facts_->environment->now();
  return add(*facts_, {std::move(entries)}, is_closed_);
}

const trace_context& callback_context::trace() const noexcept {
  return trace_ ? *trace_ : facts_->trace;
}

void callback_context::set_trace(trace_context made) {
  trace_ = std::make_unique<const trace_context>(std::move(made));
}

} // namespace troupe
