// The keys of one scope: a map that copies in O(1) and whose copies share
// everything that has not changed.
//
// Up to 32 keys lie in one sorted vector, more in a hash trie. What nobody else
// holds is edited in place, so an owner without readers pays for no copy. Not
// thread-safe itself; copies of it are independent values, also across threads.

#pragma once

#include "troupe/core/value.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <functional>
#include <string_view>

namespace troupe {

class state_map {
public:
  state_map() noexcept;
  state_map(const state_map& other) noexcept;
  state_map(state_map&& other) noexcept;
  state_map& operator=(state_map other) noexcept;
  ~state_map();

  /// The value of `name`, or null; valid until this map changes or ends.
  const value* find(std::string_view name) const noexcept;

  void set(std::string_view name, value data);

  /// Whether `name` was there.
  bool erase(std::string_view name);

  std::size_t size() const noexcept { return size_; }

  /// Visits every key once, in no particular order.
  void for_each(const std::function<void(std::string_view name,
                                         const value& data)>& visit) const;

  struct node;

private:
  boost::intrusive_ptr<node> root_;
  std::size_t size_ = 0;
};

bool operator==(const state_map& left, const state_map& right);

} // namespace troupe
