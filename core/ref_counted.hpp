// An intrusive, thread-safe reference count that can tell whether its object is
// shared.
//
// An owner may edit an object in place while it holds the only reference;
// `is_unique` is that test. Used with `boost::intrusive_ptr`.

#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <cstdint>

namespace troupe {

/// The base class of `Derived`, whose objects `boost::intrusive_ptr` counts and
/// deletes. They are made by `new`.
template <class Derived>
class ref_counted {
public:
  ref_counted() = default;

  /// Starts a count of its own at 0: references belong to one object.
  ref_counted(const ref_counted&) noexcept {}

  /// Keeps the count: references belong to one object.
  ref_counted& operator=(const ref_counted&) noexcept { return *this; }

  /// Returns true if the caller's pointer is the only one. It stays so until
  /// the caller copies its pointer.
  bool is_unique() const noexcept {
    return count_.load(std::memory_order_acquire) == 1;
  }

  friend void intrusive_ptr_add_ref(const Derived* object) noexcept {
    object->count_.fetch_add(1, std::memory_order_relaxed);
  }

  friend void intrusive_ptr_release(const Derived* object) noexcept {
    if (object->is_unique()
        || object->count_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete object;
  }

protected:
  ~ref_counted() = default;

private:
  mutable std::atomic<std::uint32_t> count_{0};
};

} // namespace troupe
