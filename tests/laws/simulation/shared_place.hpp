// The place where all programs of a simulation keep their sessions.

#pragma once

#include "troupe/stores/shared/memory_store.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

namespace troupe::testing {

enum class place_kind : std::uint8_t { memory, sqlite };

/// Empty at first; deleted with this object.
class shared_place {
public:
  /// `clock` is that of a place in memory; empty: that of the system.
  explicit shared_place(place_kind kind, std::function<timestamp()> clock = {});
  ~shared_place();
  shared_place(const shared_place&) = delete;
  shared_place& operator=(const shared_place&) = delete;

  /// Opens a store on the place for one program.
  std::unique_ptr<store> open() const;

  /// Replaces the content by the result of `kept`, while programs use it.
  void lose_all_but(std::span<const store_change> kept);

  /// Number of times that the place has lost commits.
  std::uint64_t losses() const noexcept { return losses_; }

  /// The current memory; null for a place on disk.
  const std::shared_ptr<memory_data>& memory() const noexcept {
    return memory_;
  }

private:
  std::uint64_t losses_ = 0;
  std::function<timestamp()> clock_;
  std::shared_ptr<memory_data> memory_;
  /// Empty for a place in memory.
  std::filesystem::path folder_;
};

} // namespace troupe::testing
