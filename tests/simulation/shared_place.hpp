// What all programs of a simulation keep their sessions in.

#pragma once

#include "troupe/stores/memory_store.hpp"

#include <filesystem>
#include <memory>

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

private:
  std::shared_ptr<memory_place> memory_;
  /// Empty for memory.
  std::filesystem::path folder_;
};

} // namespace troupe::testing
