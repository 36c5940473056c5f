#include "troupe/runtime/run.hpp"

#include "troupe/actors/backend.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/actors/tool_pool.hpp"

namespace troupe {

namespace {

error blocked() {
  return {errc::would_deadlock,
          "a blocking call on a thread of the runtime; use the form with a "
          "completion, or co_await the _async form"};
}

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
    cancel();
}

const std::string& run::invocation_id() const noexcept {
  return control_->invocation_id;
}

result<event_ptr> run::next() {
  if (detail::is_runtime_thread())
    return blocked();
  const actors::tool_pool::lend lent;
  return control_->next();
}

void run::next(completion<event_ptr> done) {
  control_->next(std::move(done));
}

result<void> run::wait() {
  if (detail::is_runtime_thread())
    return blocked();
  const actors::tool_pool::lend lent;
  return control_->wait();
}

void run::wait(completion<void> done) {
  control_->wait(std::move(done));
}

std::vector<std::string> run::waits_for() const {
  return control_->waits_for();
}

void run::cancel() {
  control_->cancel({errc::cancelled, "the run was cancelled"});
}

void run::detach() {
  control_.reset();
}

} // namespace troupe
