// A store controlled by the test. It keeps its data on a place in memory, holds
// commits back, and fails on request.

#pragma once

#include "troupe/stores/shared/memory_store.hpp"

#include "../forwarding_store.hpp"
#include "runtime_fixture.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace troupe::testing {

/// A gate that blocks its first visitor until the test opens it.
class gate {
public:
  void pass() {
    if (!taken_.exchange(true)) {
      arrived_.add();
      opened_.await(1);
    }
  }

  void await_arrival() { arrived_.await(1); }

  void open() { opened_.add(); }

private:
  std::atomic<bool> taken_ = false;
  tally arrived_;
  tally opened_;
};

/// Controls all stores on one place; shared with the test.
class store_script {
public:
  enum class step {
    work,
    fail,        ///< Nothing is written.
    fail_anyway, ///< Written, but reported as failed.
    vanish,      ///< Fails, and so do all later loads.
  };

  /// Sets the results of the next commits; later ones work.
  void next_commits(std::deque<step> steps) {
    const std::lock_guard guard(mutex_);
    commits_ = std::move(steps);
  }

  /// Decides the result of every commit, unless null.
  void each_commit(std::function<step()> decide) {
    const std::lock_guard guard(mutex_);
    decide_ = std::move(decide);
  }

  void fail_loads(bool failing) {
    const std::lock_guard guard(mutex_);
    loads_fail_ = failing;
  }

  /// Makes the store fail to report changes of others.
  void fail_looks(bool failing) {
    const std::lock_guard guard(mutex_);
    looks_fail_ = failing;
  }

  /// Makes commits wait from now on.
  void hold() {
    const std::lock_guard guard(mutex_);
    held_ = true;
  }

  void release() {
    const std::lock_guard guard(mutex_);
    held_ = false;
    changed_.notify_all();
  }

  step take_commit() {
    arrived.add();
    std::unique_lock guard(mutex_);
    if (!changed_.wait_for(guard, patience, [this] { return !held_; }))
      return step::fail;
    if (decide_)
      return decide_();
    if (commits_.empty())
      return step::work;
    const auto taken = commits_.front();
    commits_.pop_front();
    return taken;
  }

  bool loads_fail() const {
    const std::lock_guard guard(mutex_);
    return loads_fail_;
  }

  bool looks_fail() const {
    const std::lock_guard guard(mutex_);
    return looks_fail_;
  }

  /// Called before events or a session are loaded, before a look for changes of
  /// others, and after it. Set them before the store is used.
  std::function<void()> on_event_load;
  std::function<void()> on_session_load;
  std::function<void()> on_look;
  std::function<void()> on_looked;

  /// Makes the answer of `take_lost_history` while `has_lost` is true. Set it
  /// before `has_lost`.
  std::function<lost_history()> on_loss;
  std::atomic<bool> has_lost = false;

  tally arrived; ///< Commits that have reached the store.
  tally scope_loads;
  tally session_loads;
  tally event_loads;
  tally id_looks;

  /// The events found by their ids: copies of the stored events.
  std::vector<std::weak_ptr<const event>> found() const {
    const std::lock_guard guard(mutex_);
    return found_;
  }

  event_ptr keep_found(const event& stored) {
    auto copy = std::make_shared<const event>(stored);
    const std::lock_guard guard(mutex_);
    found_.emplace_back(copy);
    return copy;
  }

  std::atomic<std::size_t> events_read = 0;

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<step> commits_;
  std::function<step()> decide_;
  bool loads_fail_ = false;
  bool looks_fail_ = false;
  bool held_ = false;
  std::vector<std::weak_ptr<const event>> found_;
};

class staged_store final : public forwarding_store {
public:
  staged_store(std::unique_ptr<store> within,
               std::shared_ptr<store_script> script)
    : forwarding_store(std::move(within)),
      script_(std::move(script)) {}

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    // The script decides the commits that callers and runs wait for.
    if (std::ranges::all_of(changes, [](const store_change& change) {
          return change.kind == change_kind::close_runs;
        }))
      return forwarding_store::commit(changes);
    switch (script_->take_commit()) {
    case store_script::step::vanish:
      script_->fail_loads(true);
      return broken();
    case store_script::step::fail:
      return broken();
    case store_script::step::fail_anyway: {
      auto outcome = forwarding_store::commit(changes);
      return outcome && !outcome->moved.empty() ? outcome : broken();
    }
    case store_script::step::work:
      break;
    }
    return forwarding_store::commit(changes);
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    if (script_->looks_fail())
      return broken();
    if (script_->on_look)
      script_->on_look();
    auto moved = forwarding_store::changed_elsewhere();
    if (script_->on_looked)
      script_->on_looked();
    return moved;
  }

  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override {
    script_->scope_loads.add();
    if (script_->loads_fail())
      return broken();
    return forwarding_store::load_scope(owner);
  }

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override {
    script_->session_loads.add();
    if (script_->on_session_load)
      script_->on_session_load();
    if (script_->loads_fail())
      return broken();
    auto loaded = forwarding_store::load_session(key, options);
    if (loaded && *loaded)
      script_->events_read += (*loaded)->events.size();
    return loaded;
  }

  result<std::optional<stored_session>>
  load_session_at(const session_key& key,
                  std::uint64_t revision,
                  std::size_t events_max) override {
    if (script_->loads_fail())
      return broken();
    return forwarding_store::load_session_at(key, revision, events_max);
  }

  result<std::optional<earlier_shared_state>>
  load_shared_state_at(const session_key& key,
                       std::uint64_t revision) override {
    if (script_->loads_fail())
      return broken();
    return forwarding_store::load_shared_state_at(key, revision);
  }

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override {
    script_->event_loads.add();
    if (script_->on_event_load)
      script_->on_event_load();
    if (script_->loads_fail())
      return broken();
    auto loaded = forwarding_store::load_events(key, first, last);
    if (loaded)
      script_->events_read += loaded->size();
    return loaded;
  }

  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override {
    script_->id_looks.add();
    if (script_->loads_fail())
      return broken();
    auto found = forwarding_store::find_events(key, ids);
    if (found)
      for (auto& each : *found)
        if (each)
          each = script_->keep_found(*each);
    return found;
  }

  std::optional<lost_history> take_lost_history() override {
    if (script_->has_lost.exchange(false))
      return script_->on_loss();
    return forwarding_store::take_lost_history();
  }

private:
  static error broken() { return {errc::store_failed, "told to fail"}; }

  const std::shared_ptr<store_script> script_;
};

/// A place that outlives the runtimes on it.
struct staged_place {
  /// Options for one more runtime on the place.
  runtime_options options() const {
    auto chosen = beside();
    chosen.store
      = std::make_shared<staged_store>(make_memory_store(place), script);
    return chosen;
  }

  /// Options for a runtime that the script does not control.
  runtime_options beside() const {
    runtime_options chosen;
    chosen.append_wait_max = {}; // A slow machine refuses nothing.
    chosen.store = make_memory_store(place);
    return chosen;
  }

  /// Returns the damage found in the stored data.
  std::vector<std::string> damage() const {
    return make_memory_store(place)->check({}).value();
  }

  std::shared_ptr<memory_data> place = make_memory_data();
  std::shared_ptr<store_script> script = std::make_shared<store_script>();
};

} // namespace troupe::testing
