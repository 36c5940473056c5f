// One immutable JSON value, cheap to copy and safe to share between threads.
//
// Numbers, booleans and null are stored inside; strings, lists and objects are
// shared by a reference count.

#pragma once

#include "troupe/core/json.hpp"
#include "troupe/core/ref_counted.hpp"

#include <utility>

namespace troupe {

/// One immutable JSON value; null by default. Copies cost O(1) and may be used
/// on other threads.
class value {
public:
  /// Makes null.
  value() = default;

  /// Takes over `data`. Implicit, so that JSON can be passed as a value.
  value(json data) {
    if (data.is_structured() || data.is_string())
      shared_ = boost::intrusive_ptr<const shared>(new shared(std::move(data)));
    else
      scalar_ = std::move(data);
  }

  /// Returns the JSON. Valid until this value is assigned to, moved from or
  /// destroyed.
  const json& data() const noexcept {
    return shared_ ? shared_->data : scalar_;
  }

  /// Returns true for JSON null.
  bool is_null() const noexcept { return !shared_ && scalar_.is_null(); }

  /// Gives access to members of the JSON, as in `held->is_string()`.
  const json* operator->() const noexcept { return &data(); }

  friend bool operator==(const value& left, const value& right) {
    return (left.shared_ && left.shared_ == right.shared_)
           || equal(left.data(), right.data());
  }

private:
  struct shared : ref_counted<shared> {
    explicit shared(json held) : data(std::move(held)) {}

    const json data;
  };

  json scalar_;
  boost::intrusive_ptr<const shared> shared_;
};

} // namespace troupe
