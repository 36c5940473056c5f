#include "troupe/server/recovery/recovery.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

namespace troupe::serving {

namespace {

// The reader of a recovered run. It drops the events, which followers of the
// session get, so that none wait in the run.
class recovery : public std::enable_shared_from_this<recovery> {
public:
  recovery(served_ptr on, active_run_ptr recovered, recovery_calls calls)
    : on_(std::move(on)),
      run_(std::move(recovered)),
      calls_(std::move(calls)) {}

  void start() {
    constexpr std::chrono::milliseconds patience{2'000};
    on_->threads->call_after(patience, [self = weak_from_this()] {
      if (const auto held = self.lock())
        held->begin({});
    });
    ask();
  }

private:
  void ask() {
    run_->handle.next().then(
      [self = shared_from_this()](const result<event_ptr>& next) {
        self->receive(next);
      });
  }

  void receive(const result<event_ptr>& next) {
    if (!next)
      return finish(next.error());
    if (*next == nullptr)
      return finish({});
    has_event_ = true;
    begin({});
    ask();
  }

  void begin(const result<void>& outcome) {
    if (!has_begun_.exchange(true) && calls_.begun)
      calls_.begun(outcome);
  }

  // The run is removed first, so a client with its answer can try again.
  void finish(const result<void>& outcome) {
    // Without an event, another process was faster, or the store failed: no run
    // has failed.
    const bool counts = outcome || has_event_
                        || (outcome.error().code() != errc::conflict
                            && outcome.error().code() != errc::not_found
                            && outcome.error().code() != errc::store_failed
                            && outcome.error().code() != errc::busy);
    on_->runs.remove(run_->handle.invocation_id(), !outcome && counts);
    begin(outcome);
    if (calls_.ended)
      calls_.ended(outcome);
  }

  const served_ptr on_;
  const active_run_ptr run_;
  const recovery_calls calls_;
  std::atomic<bool> has_begun_{false};
  bool has_event_ = false; // Used by one answer of `next` at a time.
};

} // namespace

result<void> start_recovery(const served_ptr& on,
                            const agent& root,
                            const session_key& session,
                            const std::string& invocation_id,
                            const run_options& options,
                            recovery_calls calls) {
  auto reserved = on->runs.reserve(invocation_id);
  if (!reserved)
    return run_is_taken(invocation_id);
  auto recovered = on->runs.add(
    session, on->on.recover(root, session, invocation_id, options));
  reserved.reset(); // The run is in the list, from which its end removes it.
  std::make_shared<recovery>(on, std::move(recovered), std::move(calls))
    ->start();
  return {};
}

error run_is_taken(const std::string& invocation_id) {
  return {errc::busy,
          fmt::format("run {} is under way in this server, or another request "
                      "recovers or closes it",
                      invocation_id)};
}

} // namespace troupe::serving
