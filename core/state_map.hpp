// The keys of one scope: a map whose copies cost O(1) and share all unchanged
// parts.
//
// Up to 32 keys are in one sorted vector, more in a hash trie. Nodes that no
// copy shares are edited in place, so an owner without readers copies nothing.
// One map is not thread-safe; copies of it are independent values, also on
// other threads.

#pragma once

#include "troupe/core/value.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <functional>
#include <string_view>

namespace troupe {

/// A map from key names without prefix to values. Copies cost O(1).
class state_map {
public:
  state_map() noexcept;
  /// Shares all nodes with `other`. O(1).
  state_map(const state_map& other) noexcept;
  /// Takes over the keys; `other` is empty afterwards.
  state_map(state_map&& other) noexcept;
  /// Replaces all keys. O(1), apart from the destruction of old ones.
  state_map& operator=(state_map other) noexcept;
  ~state_map();

  /// Returns the value of `name`, or null. Valid until this map changes or is
  /// destroyed.
  const value* find(std::string_view name) const noexcept;

  /// Inserts or replaces a key. Copies the nodes on its path that other maps
  /// share.
  void set(std::string_view name, value data);

  /// Removes a key. Returns false if it did not exist.
  bool erase(std::string_view name);

  /// Number of keys.
  std::size_t size() const noexcept { return size_; }

  /// Visits every key once, in no particular order.
  void for_each(const std::function<void(std::string_view name,
                                         const value& data)>& visit) const;

  struct node;

private:
  boost::intrusive_ptr<node> root_;
  std::size_t size_ = 0;
};

/// Compares all keys and values by content.
bool operator==(const state_map& left, const state_map& right);

} // namespace troupe
