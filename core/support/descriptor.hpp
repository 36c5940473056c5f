// A file descriptor with an owner.

#pragma once

#include <utility>

namespace troupe {

/// Owns a file descriptor and closes it at the end. One of a negative number
/// owns nothing.
class descriptor {
public:
  descriptor() = default;

  explicit descriptor(int number) noexcept : number_(number) {}

  descriptor(descriptor&& other) noexcept
    : number_(std::exchange(other.number_, -1)) {}

  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  ~descriptor();

  int number() const noexcept { return number_; }

  /// Gives the descriptor to the caller, who closes it.
  int release() noexcept { return std::exchange(number_, -1); }

private:
  int number_ = -1;
};

} // namespace troupe
