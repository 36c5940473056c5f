// A call of `next` of a reader.

#pragma once

#include "troupe/actors/pending_call.hpp"
#include "troupe/actors/reader_control.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace troupe::actors {

/// A question to a reader. It answers a blocked thread itself, without a job.
template <class Answer, class Delivery>
class reader_call final : public detail::call<Delivery> {
public:
  using reader = detail::reader_control<Answer, Delivery>;

  explicit reader_call(std::shared_ptr<reader> asked)
    : asked_(std::move(asked)) {}

  std::optional<result<Delivery>> answer_now() override {
    return asked_->next_now();
  }

  void start(completion<Delivery> done) override {
    asked_->next(std::move(done));
  }

  result<Delivery> wait() override {
    if (detail::is_runtime_thread())
      return would_deadlock();
    const tool_pool::lend lent;
    return asked_->next();
  }

private:
  const std::shared_ptr<reader> asked_;
};

/// Returns the pending answer of a reader.
template <class Answer, class Delivery>
pending<Delivery>
next_of(std::shared_ptr<detail::reader_control<Answer, Delivery>> asked) {
  return pending<Delivery>(
    std::make_unique<reader_call<Answer, Delivery>>(std::move(asked)));
}

} // namespace troupe::actors
