#include "troupe/runtime/run.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/engine/tool_pool.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/core/support/low_memory.hpp"

namespace troupe {

namespace {

using control_ptr = std::shared_ptr<detail::run_control>;

// A question to a run. The run answers a blocked thread itself, without a job.
template <class T,
          result<T> (detail::run_control::*Block)(),
          void (detail::run_control::*Start)(completion<T>)>
class question final : public detail::call<T> {
public:
  explicit question(control_ptr asked) : asked_(std::move(asked)) {}

  void start(completion<T> done) override {
    ((*asked_).*Start)(std::move(done));
  }

  result<T> wait() override {
    if (detail::is_runtime_thread())
      return actors::would_deadlock();
    const actors::tool_pool::lend lent;
    return ((*asked_).*Block)();
  }

private:
  const control_ptr asked_;
};

using next_event
  = question<event_ptr, &detail::run_control::next, &detail::run_control::next>;
using run_end
  = question<void, &detail::run_control::wait, &detail::run_control::wait>;

} // namespace

run::run(std::shared_ptr<detail::run_control> control)
  : control_(std::move(control)) {}

run::run(run&&) noexcept = default;

run& run::operator=(run&& other) noexcept {
  std::swap(control_, other.control_);
  return *this;
}

run::~run() {
  if (control_)
    with_memory_or_end([this] { cancel(); });
}

const std::string& run::invocation_id() const noexcept {
  return control_->invocation_id;
}

pending<event_ptr> run::next() {
  return pending<event_ptr>(std::make_unique<next_event>(control_));
}

pending<void> run::wait() {
  return pending<void>(std::make_unique<run_end>(control_));
}

std::vector<std::string> run::waits_for() const {
  return control_->waits_for();
}

std::vector<lost_update> run::lost_updates() const {
  return control_->losses();
}

std::size_t run::lost_updates_count() const {
  return control_->losses_count();
}

void run::cancel() {
  control_->cancel({errc::cancelled, "the run was cancelled"});
}

void run::leave() {
  control_->leave({errc::cancelled,
                   "the run was left; where its store keeps it, another "
                   "process can recover it"});
}

void run::detach() {
  control_.reset();
}

run::iterator::iterator(run* source) : source_(source) {
  ++*this;
}

run::iterator& run::iterator::operator++() {
  current_ = source_->next().value();
  return *this;
}

} // namespace troupe
