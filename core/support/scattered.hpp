// Numbers that look random and are equal on every machine.

#pragma once

#include <cstdint>

namespace troupe {

/// Spreads neighbouring numbers over 64 bits (the finalizer of splitmix64).
constexpr std::uint64_t scattered(std::uint64_t number) noexcept {
  number += 0x9e3779b97f4a7c15U;
  number = (number ^ (number >> 30U)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27U)) * 0x94d049bb133111ebU;
  return number ^ (number >> 31U);
}

/// Returns the upper bits as a fraction, from 0 to below 1.
constexpr double fraction_of(std::uint64_t bits) noexcept {
  return static_cast<double>(bits >> 11U) * 0x1.0p-53;
}

} // namespace troupe
