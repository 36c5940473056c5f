// One immutable JSON value, cheap to copy and safe to share between threads.
//
// Numbers, booleans and null lie inside; strings, lists and objects are shared
// by a reference count.

#pragma once

#include "troupe/core/json.hpp"
#include "troupe/core/ref_counted.hpp"

#include <utility>

namespace troupe {

class value {
public:
  /// Null.
  value() = default;

  value(json data) {
    if (data.is_structured() || data.is_string())
      shared_ = boost::intrusive_ptr<const shared>(new shared(std::move(data)));
    else
      scalar_ = std::move(data);
  }

  const json& data() const noexcept {
    return shared_ ? shared_->data : scalar_;
  }

  bool is_null() const noexcept { return !shared_ && scalar_.is_null(); }

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
