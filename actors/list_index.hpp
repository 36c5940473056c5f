// The sessions of an app that is kept in memory alone, in the order of `list`.
//
// A page costs what it shows and what has changed since the page before: a
// session that changes is noted once, and sorted in when somebody lists.

#pragma once

#include "troupe/actors/list_gather.hpp"

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

/// A session's place in the index, which it leaves with its end.
class listing {
public:
  /// Not listed before the first `touch`. Both names outlive it.
  listing(std::shared_ptr<list_index> index,
          const std::string& user,
          const std::string& id);
  ~listing();
  listing(const listing&) = delete;
  listing& operator=(const listing&) = delete;

  /// Notes the time of the last update. Pages that are asked for from now on
  /// show it. Costs one atomic exchange when nobody has listed since the last
  /// call. For the thread of the session alone.
  void touch(timestamp time);

private:
  friend class list_index;

  const std::shared_ptr<list_index> index_;
  const std::string& user_;
  const std::string& id_;
  std::atomic<std::int64_t> time_{0};
  // It is in the index's list of what has changed. Set before the lock is
  // taken, reset under it before the time is read: no change is missed.
  std::atomic<bool> changed_{false};
  // Under the lock of the index.
  std::size_t place_ = 0; // In the list of what has changed.
  std::optional<std::int64_t> sorted_by_;
};

/// Thread-safe.
class list_index {
public:
  /// The places of the first `count` sessions behind `from`, of one user or of
  /// all, without the users that `is_shown` is false for.
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
