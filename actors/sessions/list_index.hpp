// Index of an app's sessions in the order of `list`. Used without a store only.
//
// A page costs as much as the rows that it shows plus the sessions that changed
// since the last page. A change only notes the session; the next `list` sorts
// it in.

#pragma once

#include "troupe/actors/sessions/list_gather.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

class list_index;

/// App and user of a session; shared by all sessions of a user.
struct user_names {
  std::string app;
  std::string user;
  /// Index in which its sessions are listed; null over a store, which lists
  /// them itself.
  std::shared_ptr<list_index> listed = nullptr;
};

/// The entry of one session. Removed from the index when it is destroyed.
class listing {
public:
  /// Not listed before the first `touch`. The index of `names` is not null.
  listing(std::shared_ptr<const user_names> names, std::string id);
  ~listing();
  listing(const listing&) = delete;
  listing& operator=(const listing&) = delete;

  /// Sets the time of the last update; later pages show it. Costs one atomic
  /// exchange if no page was made since the last call. Called on the session's
  /// thread only.
  void touch(timestamp time);

private:
  friend class list_index;

  const std::string& user() const noexcept { return names_->user; }

  const std::shared_ptr<const user_names> names_;
  const std::string id_;
  std::atomic<std::int64_t> time_{0};
  // The entry is in the index's `changed_` list. Set before the lock is taken;
  // reset under the lock before `time_` is read. So a concurrent change is
  // either read or noted again.
  std::atomic<bool> changed_{false};
  // Guarded by the lock of the index.
  std::size_t place_ = 0; // Its index in `changed_`.
  std::optional<std::int64_t> sorted_by_;
};

/// Thread-safe.
class list_index {
public:
  /// The first `count` positions after `from`, for one user or for all. Users
  /// for which `is_shown` is false are left out.
  std::vector<page_start>
  page(const std::optional<std::string>& user,
       const std::optional<page_start>& from,
       std::size_t count,
       const std::function<bool(const std::string& user)>& is_shown);

private:
  friend class listing;

  struct by_rank {
    using is_transparent = void;
    bool operator()(const listing* left, const listing* right) const;
    bool operator()(const page_start& left, const listing* right) const;
    bool operator()(const listing* left, const page_start& right) const;
  };

  using order = std::set<listing*, by_rank>;

  void note(listing& changed);
  void leave(listing& ended);
  void sort_in();
  void take_out(listing& moved);

  std::mutex mutex_;
  std::vector<listing*> changed_;
  order all_;
  std::unordered_map<std::string, order> users_;
};

} // namespace troupe::actors
