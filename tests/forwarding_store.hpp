// A store that passes every call on to another one: the base of stores that
// tests put between the owners and a real store.

#pragma once

#include "troupe/stores/store.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

class forwarding_store : public store {
public:
  explicit forwarding_store(std::unique_ptr<store> kept)
    : kept_(std::move(kept)) {}

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    return kept_->commit(changes);
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    return kept_->changed_elsewhere();
  }

  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override {
    return kept_->load_scope(owner);
  }

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override {
    return kept_->load_session(key, options);
  }

  result<std::optional<stored_session>>
  load_session_at(const session_key& key,
                  std::uint64_t revision,
                  std::size_t events_max) override {
    return kept_->load_session_at(key, revision, events_max);
  }

  result<std::optional<earlier_shared_state>>
  load_shared_state_at(const session_key& key,
                       std::uint64_t revision) override {
    return kept_->load_shared_state_at(key, revision);
  }

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override {
    return kept_->load_events(key, first, last);
  }

  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override {
    return kept_->find_events(key, ids);
  }

  bool can_fork() const noexcept override { return kept_->can_fork(); }

  bool can_trim() const noexcept override { return kept_->can_trim(); }

  bool can_list_runs() const noexcept override {
    return kept_->can_list_runs();
  }

  result<std::vector<open_run>> list_runs(const run_query& query) override {
    return kept_->list_runs(query);
  }

  result<void> renew_holder(const std::string& id) override {
    return kept_->renew_holder(id);
  }

  result<void> remove_holder(const std::string& id) override {
    return kept_->remove_holder(id);
  }

  std::optional<lost_history> take_lost_history() override {
    return kept_->take_lost_history();
  }

  result<std::vector<session_row>> list(const row_query& query) override {
    return kept_->list(query);
  }

  result<std::vector<session_row>>
  list_by_name(const name_query& query) override {
    return kept_->list_by_name(query);
  }

  result<std::vector<std::string>>
  list_users(const user_query& query) override {
    return kept_->list_users(query);
  }

  result<std::vector<std::string>> list_apps(const app_query& query) override {
    return kept_->list_apps(query);
  }

  result<std::vector<std::string>>
  check(const std::function<void(double done)>& on_progress) override {
    return kept_->check(on_progress);
  }

  result<void> close() override { return kept_->close(); }

protected:
  store& kept() noexcept { return *kept_; }

private:
  const std::unique_ptr<store> kept_;
};

} // namespace troupe::testing
