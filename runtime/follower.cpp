#include "troupe/runtime/follower.hpp"

#include "troupe/actors/follow_control.hpp"
#include "troupe/actors/pending_call.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <utility>

namespace troupe {

namespace {

using reader_ptr = std::shared_ptr<detail::follow_control>;

// A question to a follower. It answers a blocked thread itself, without a job.
class next_followed final : public detail::call<event_ptr> {
public:
  explicit next_followed(reader_ptr asked) : asked_(std::move(asked)) {}

  std::optional<result<event_ptr>> answer_now() override {
    return asked_->next_now();
  }

  void start(completion<event_ptr> done) override {
    asked_->next(std::move(done));
  }

  result<event_ptr> wait() override {
    if (detail::is_runtime_thread())
      return actors::would_deadlock();
    const actors::tool_pool::lend lent;
    return asked_->next();
  }

private:
  const reader_ptr asked_;
};

} // namespace

follower::follower(std::shared_ptr<detail::follow_control> control)
  : control_(std::move(control)) {}

follower::follower(follower&&) noexcept = default;

follower& follower::operator=(follower&& other) noexcept {
  std::swap(control_, other.control_);
  return *this;
}

follower::~follower() {
  if (control_)
    with_memory_or_end([this] { close(); });
}

pending<event_ptr> follower::next() {
  return pending<event_ptr>(std::make_unique<next_followed>(control_));
}

std::optional<std::uint64_t> follower::revision() const {
  return control_->revision();
}

void follower::close() {
  control_->close();
}

follower::iterator::iterator(follower* source) : source_(source) {
  ++*this;
}

follower::iterator& follower::iterator::operator++() {
  current_ = source_->next().value();
  return *this;
}

} // namespace troupe
