// A store to play with: on a place in memory, it holds commits back and fails
// when told.

#pragma once

#include "troupe/stores/memory_store.hpp"

#include "stage.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace troupe::testing {

/// Closed to the first who comes, until a test opens it.
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

/// How the stores on one place are to behave; shared with the test.
class store_script {
public:
  enum class step {
    work,
    fail,        ///< Nothing is written.
    fail_anyway, ///< It is written, but reported as failed.
    vanish,      ///< It fails, and so do all loads from here on.
  };

  /// What the next commits do; those after them work.
  void next_commits(std::deque<step> steps) {
    const std::lock_guard guard(mutex_);
    commits_ = std::move(steps);
  }

  /// What every commit does, unless null.
  void each_commit(std::function<step()> decide) {
    const std::lock_guard guard(mutex_);
    decide_ = std::move(decide);
  }

  void fail_loads(bool failing) {
    const std::lock_guard guard(mutex_);
    loads_fail_ = failing;
  }

  /// Whether the store cannot say what others have written.
  void fail_looks(bool failing) {
    const std::lock_guard guard(mutex_);
    looks_fail_ = failing;
  }

  /// Commits wait from here on.
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

  /// Called before events or a session are loaded, and before and once the
  /// store has said what others have written, unless null. Set before that
  /// happens.
  std::function<void()> on_event_load;
  std::function<void()> on_session_load;
  std::function<void()> on_look;
  std::function<void()> on_looked;

  tally arrived; ///< Commits that have come as far as the store.
  tally scope_loads;
  tally session_loads;
  tally event_loads;
  tally id_looks;
  std::atomic<std::size_t> events_read = 0;

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<step> commits_;
  std::function<step()> decide_;
  bool loads_fail_ = false;
  bool looks_fail_ = false;
  bool held_ = false;
};

class staged_store final : public store {
public:
  staged_store(std::unique_ptr<store> within,
               std::shared_ptr<store_script> script)
    : within_(std::move(within)),
      script_(std::move(script)) {}

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    switch (script_->take_commit()) {
    case store_script::step::vanish:
      script_->fail_loads(true);
      return broken();
    case store_script::step::fail:
      return broken();
    case store_script::step::fail_anyway: {
      auto outcome = within_->commit(changes);
      return outcome && !outcome->moved.empty() ? outcome : broken();
    }
    case store_script::step::work:
      break;
    }
    return within_->commit(changes);
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    if (script_->looks_fail())
      return broken();
    if (script_->on_look)
      script_->on_look();
    auto moved = within_->changed_elsewhere();
    if (script_->on_looked)
      script_->on_looked();
    return moved;
  }

  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override {
    script_->scope_loads.add();
    if (script_->loads_fail())
      return broken();
    return within_->load_scope(owner);
  }

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override {
    script_->session_loads.add();
    if (script_->on_session_load)
      script_->on_session_load();
    if (script_->loads_fail())
      return broken();
    auto loaded = within_->load_session(key, options);
    if (loaded && *loaded)
      script_->events_read += (*loaded)->events.size();
    return loaded;
  }

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override {
    script_->event_loads.add();
    if (script_->on_event_load)
      script_->on_event_load();
    if (script_->loads_fail())
      return broken();
    auto loaded = within_->load_events(key, first, last);
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
    return within_->find_events(key, ids);
  }

  std::optional<lost_history> take_lost_history() override {
    return within_->take_lost_history();
  }

  result<std::vector<session_row>> list(const row_query& query) override {
    return within_->list(query);
  }

  result<std::vector<std::string>>
  check(const std::function<void(double)>& on_progress) override {
    return within_->check(on_progress);
  }

  result<void> close() override { return within_->close(); }

private:
  static error broken() { return {errc::store_failed, "told to fail"}; }

  const std::unique_ptr<store> within_;
  const std::shared_ptr<store_script> script_;
};

/// A place that outlives the runtimes on it.
struct staged_place {
  /// Options for one more runtime on it.
  runtime_options options() const {
    runtime_options chosen;
    chosen.custom_store
      = std::make_shared<staged_store>(make_memory_store(place), script);
    return chosen;
  }

  /// The same for one that the script says nothing to.
  runtime_options beside() const {
    runtime_options chosen;
    chosen.custom_store = make_memory_store(place);
    return chosen;
  }

  /// What is wrong with what is stored.
  std::vector<std::string> damage() const {
    return make_memory_store(place)->check({}).value();
  }

  std::shared_ptr<memory_place> place = make_memory_place();
  std::shared_ptr<store_script> script = std::make_shared<store_script>();
};

} // namespace troupe::testing
