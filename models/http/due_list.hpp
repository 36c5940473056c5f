// Keys with due times, for one thread. Finding the first and moving a key take
// O(log n).

#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace troupe {

template <class Key>
class due_list {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Sets the due time of a key, and replaces an earlier one.
  void set(const Key& key, time_point when) {
    const auto [known, is_new] = times_.try_emplace(key, when);
    if (!is_new) {
      if (known->second == when)
        return;
      order_.erase({known->second, key});
      known->second = when;
    }
    order_.emplace(when, key);
  }

  void remove(const Key& key) {
    const auto known = times_.find(key);
    if (known == times_.end())
      return;
    order_.erase({known->second, key});
    times_.erase(known);
  }

  bool contains(const Key& key) const { return times_.contains(key); }

  std::optional<time_point> next() const {
    if (order_.empty())
      return std::nullopt;
    return order_.begin()->first;
  }

  /// Removes and returns the first key if it is due.
  std::optional<Key> take(time_point now) {
    if (order_.empty() || order_.begin()->first > now)
      return std::nullopt;
    return take_any();
  }

  /// Removes and returns the first key, due or not.
  std::optional<Key> take_any() {
    if (order_.empty())
      return std::nullopt;
    auto found = std::move(order_.extract(order_.begin()).value().second);
    times_.erase(found);
    return found;
  }

private:
  std::set<std::pair<time_point, Key>> order_;
  std::unordered_map<Key, time_point> times_;
};

} // namespace troupe
