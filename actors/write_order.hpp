// The order of one writer's appends, which its first failure cuts.
//
// Invariant: an append takes effect only while no earlier append of the same
// writer is refused. The session checks it when it decides the append, and
// notes each refusal before it decides what stands behind. A refusal that is
// decided again is taken back; one that was answered stays until `resume`.

#pragma once

#include "troupe/core/session_request.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::actors {

/// Thread-safe. Places are numbered in the order in which they are taken.
class write_order {
public:
  /// Takes the next place. Fails with `errc::cancelled` behind a failure that
  /// was answered, and then takes none.
  result<std::uint64_t> enter();

  /// The holder of a place has its answer.
  void leave();

  /// Why the append at `place` must not take effect: an earlier one is refused.
  std::optional<error> refusal_of(std::uint64_t place) const;

  /// Notes a refusal that is not answered yet.
  void refuse(std::uint64_t place, const error& why);

  /// Takes back the refusal of `place`, which is decided again.
  void mend(std::uint64_t place);

  /// Notes a failure that is about to be answered.
  void fail(std::uint64_t place, const error& why);

  /// Forgets all failures once every place taken so far is left, then calls
  /// `done`: at once if no failure was answered.
  void resume(completion<void> done);

private:
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::size_t under_way_ = 0;
  std::map<std::uint64_t, error> refused_;
  bool has_failed_ = false; // A failure was answered.
  std::vector<completion<void>> waiting_;
};

/// The place of an append in the order of its writer; one without a writer has
/// none, and nothing here does anything. Thread-safe like the order.
class write_place {
public:
  write_place() = default;

  write_place(std::shared_ptr<write_order> order, std::uint64_t number)
    : order_(std::move(order)),
      number_(number) {}

  bool exists() const noexcept { return order_ != nullptr; }

  /// Why the append must not take effect, unless it may.
  std::optional<error> refusal() const {
    return order_ ? order_->refusal_of(number_) : std::nullopt;
  }

  void refuse(const error& why) const {
    if (order_)
      order_->refuse(number_, why);
  }

  void mend() const {
    if (order_)
      order_->mend(number_);
  }

  /// Hands the answer to the caller of the writer, and leaves the place.
  void answer(const completion<event_ptr>& done,
              result<event_ptr> outcome) const;

private:
  std::shared_ptr<write_order> order_;
  std::uint64_t number_ = 0;
};

} // namespace troupe::actors
