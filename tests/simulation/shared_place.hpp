// What all programs of a simulation keep their sessions in.

#pragma once

#include "troupe/stores/memory_store.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace troupe::testing {

enum class place_kind : std::uint8_t { memory, sqlite };

/// Empty at first, and gone with its owner.
class shared_place {
public:
  explicit shared_place(place_kind kind);
  ~shared_place();
  shared_place(const shared_place&) = delete;
  shared_place& operator=(const shared_place&) = delete;

  /// One program's way to it.
  std::unique_ptr<store> open() const;

  /// Goes back to what `kept` makes, under the programs that use it.
  void lose_all_but(std::span<const store_change> kept);

  /// How often it has gone back.
  std::uint64_t losses() const noexcept { return losses_; }

  /// What is there now; null for a place on disk.
  const std::shared_ptr<memory_place>& memory() const noexcept {
    return memory_;
  }

private:
  std::uint64_t losses_ = 0;
  std::shared_ptr<memory_place> memory_;
  /// Empty for memory.
  std::filesystem::path folder_;
};

} // namespace troupe::testing
