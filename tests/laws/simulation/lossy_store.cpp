#include "lossy_store.hpp"

#include "troupe/stores/shared/memory_store.hpp"

#include "shared_place.hpp"

#include <set>

namespace troupe::testing {

namespace {

class lossy_store final : public store {
public:
  explicit lossy_store(const shared_place& on)
    : place_(on),
      written_(make_memory_store(on.memory())),
      losses_(on.losses()) {}

  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    if (notices_loss()) {
      std::set<owner_name> all;
      for (const auto& each : changes)
        for (const auto& owner : owners_of(each))
          all.insert(owner);
      return commit_outcome{{all.begin(), all.end()}};
    }
    return written_->commit(changes);
  }

  result<std::vector<moved_owner>> changed_elsewhere() override {
    if (notices_loss())
      return std::vector<moved_owner>();
    return written_->changed_elsewhere();
  }

  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override {
    return read().load_scope(owner);
  }

  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override {
    return read().load_session(key, options);
  }

  result<std::optional<stored_session>>
  load_session_at(const session_key& key,
                  std::uint64_t revision,
                  std::size_t events_max) override {
    return read().load_session_at(key, revision, events_max);
  }

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override {
    return read().load_events(key, first, last);
  }

  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override {
    return read().find_events(key, ids);
  }

  bool can_fork() const noexcept override { return true; }

  bool can_trim() const noexcept override { return true; }

  bool can_list_runs() const noexcept override { return true; }

  result<std::vector<open_run>> list_runs(const run_query& query) override {
    return read().list_runs(query);
  }

  result<void> renew_holder(const std::string& id) override {
    return read().renew_holder(id);
  }

  result<void> remove_holder(const std::string& id) override {
    return read().remove_holder(id);
  }

  std::optional<lost_history> take_lost_history() override {
    return std::exchange(lost_, {});
  }

  result<std::vector<session_row>> list(const row_query& query) override {
    return read().list(query);
  }

  result<std::vector<std::string>>
  check(const std::function<void(double)>& on_progress) override {
    return read().check(on_progress);
  }

  result<void> close() override { return {}; }

private:
  static std::vector<owner_name> owners_of(const store_change& change) {
    const auto& owner = change.owner;
    std::vector<owner_name> all{owner};
    if (change.user_revision)
      all.push_back({owner.app, owner.user});
    if (change.app_revision)
      all.push_back({owner.app});
    return all;
  }

  // Returns true if the place has lost commits since the last commit or query
  // for changes, and takes over the newest content.
  bool notices_loss() {
    if (losses_ == place_.losses())
      return false;
    written_ = make_memory_store(place_.memory());
    losses_ = place_.losses();
    lost_ = lost_history{1, "the place has lost its last commits"};
    return true;
  }

  // A load reads the current content, whether the loss has been noticed or not.
  store& read() {
    if (!read_ || read_losses_ != place_.losses()) {
      read_ = make_memory_store(place_.memory());
      read_losses_ = place_.losses();
    }
    return *read_;
  }

  const shared_place& place_;
  std::unique_ptr<store> written_;
  std::unique_ptr<store> read_;
  std::uint64_t losses_;
  std::uint64_t read_losses_ = 0;
  std::optional<lost_history> lost_;
};

} // namespace

std::unique_ptr<store> make_lossy_store(const shared_place& on) {
  return std::make_unique<lossy_store>(on);
}

} // namespace troupe::testing
