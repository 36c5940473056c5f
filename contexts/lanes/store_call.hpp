// A call of a store beside the state, such as that of artifacts, by a pending
// answer.

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/contexts/task.hpp"

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace troupe {

/// A store of a runtime, and a function that runs work on threads that may
/// block.
template <class Store>
struct store_access {
  /// The store; never null.
  std::shared_ptr<Store> store;
  /// Runs `work` on a thread that may block, and does not wait for it. Returns
  /// false, and drops the work, once the runtime has ended.
  std::function<bool(std::function<void()> work)> post;
};

/// Returns the `result<T>` of `work`, which gets the store. A store of the
/// user's own may throw; its exception becomes `errc::internal`.
template <class T, class Store, class Work>
result<T> call_kept(Store& kept, const Work& work) {
  try {
    return work(kept);
  } catch (const std::exception& failure) {
    return error(errc::internal, failure.what());
  } catch (...) {
    return error(errc::internal,
                 "a store threw an exception that is not a std::exception");
  }
}

/// `wait` works on the calling thread, `start` on a thread that may block.
/// `check` can refuse the call when it starts; it must refuse if `Access` is
/// null. `note` gets a successful result on the thread that asked for it,
/// except after `then`.
template <class T, class Access, class Work, class Check, class Note>
class store_call final : public detail::call<T> {
public:
  store_call(std::shared_ptr<const Access> access,
             Work work,
             Check check,
             Note note)
    : access_(std::move(access)),
      work_(std::make_shared<const Work>(std::move(work))),
      check_(std::move(check)),
      note_(std::move(note)) {}

  void start(completion<T> done) override {
    if (auto ready = check_(); !ready)
      return done(ready.error());
    const auto posted = access_->post([access = access_, work = work_, done] {
      done(call_kept<T>(*access->store, *work));
    });
    if (!posted)
      done(error(errc::cancelled, "the runtime has ended"));
  }

  result<T> wait() override {
    if (auto ready = check_(); !ready)
      return ready.error();
    if (executor::current() != nullptr)
      return error(
        errc::would_deadlock,
        "this call would block a thread of the runtime; co_await it");
    auto outcome = call_kept<T>(*access_->store, *work_);
    receive(outcome);
    return outcome;
  }

  void receive(const result<T>& answer) override {
    if (answer)
      note_(*answer);
  }

private:
  const std::shared_ptr<const Access> access_;
  const std::shared_ptr<const Work> work_;
  const Check check_;
  const Note note_;
};

/// Makes such a call.
template <class T, class Access, class Work, class Check, class Note>
pending<T> call_store(std::shared_ptr<const Access> access,
                      Work work,
                      Check check,
                      Note note) {
  return pending<T>(std::make_unique<store_call<T, Access, Work, Check, Note>>(
    std::move(access), std::move(work), std::move(check), std::move(note)));
}

/// Fails with `errc::cancelled` once the call of the tool was given up;
/// `is_closed` may be null.
inline result<void> check_open(const std::atomic<bool>* is_closed) {
  if (is_closed != nullptr && *is_closed)
    return error(errc::cancelled, "the call of this tool was given up");
  return {};
}

} // namespace troupe
