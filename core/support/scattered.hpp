// Numbers that look random and are equal on every machine.

#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

/// Spreads neighbouring numbers over 64 bits (the finalizer of splitmix64).
constexpr std::uint64_t scattered(std::uint64_t number) noexcept {
  number += 0x9e3779b97f4a7c15U;
  number = (number ^ (number >> 30U)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27U)) * 0x94d049bb133111ebU;
  return number ^ (number >> 31U);
}

/// Makes a number of a text (FNV-1a). It is the same on every machine, unlike
/// that of std::hash.
constexpr std::uint64_t fnv_hash(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char next : text)
    hash = (hash ^ static_cast<unsigned char>(next)) * 0x100000001b3U;
  return hash;
}

/// Returns the upper bits as a fraction, from 0 to below 1.
constexpr double fraction_of(std::uint64_t bits) noexcept {
  return static_cast<double>(bits >> 11U) * 0x1.0p-53;
}

} // namespace troupe
