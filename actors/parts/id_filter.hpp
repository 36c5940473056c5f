// A Bloom filter over the hashes of a session's event ids: tells which ids the
// session certainly does not have.
//
// Built from the hashes in the store when callers send their own event ids to a
// session whose older ids are not in memory. Afterwards the store is asked only
// about ids that the filter may contain.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::actors {

class id_filter {
public:
  /// Makes an empty filter with room for one and a half times `ids`. An id
  /// takes 12 bits at first, and 8 when the filter is full.
  explicit id_filter(std::size_t ids)
    : room_(ids + ids / 2 + room_min),
      words_((room_ * bits_per_id + 63) / 64) {}

  /// Adds an id by its `id_hash`.
  void add(std::uint32_t hash) noexcept {
    for_each_bit(hash, [](std::uint64_t& word, std::uint64_t bit) {
      word |= bit;
      return true;
    });
    ++count_;
  }

  /// False: no id with this hash was added. True: one probably was; a full
  /// filter is wrong for one in fifty of the other hashes.
  bool may_have(std::uint32_t hash) const noexcept {
    return for_each_bit(hash, [](std::uint64_t word, std::uint64_t bit) {
      return (word & bit) != 0;
    });
  }

  bool is_full() const noexcept { return count_ >= room_; }

  std::size_t bytes() const noexcept {
    return words_.size() * sizeof words_[0];
  }

private:
  static constexpr std::size_t bits_per_id = 8;
  static constexpr std::size_t room_min = 1'024;
  static constexpr int probes = 5;

  template <class Words, class Visit>
  static bool
  visit_bits(Words& words, std::uint32_t hash, const Visit& visit) noexcept {
    // MurmurHash3's finalizer spreads the 31 bits over 64. The two halves give
    // all probes (double hashing).
    std::uint64_t mixed = hash + 0x9e37'79b9'7f4a'7c15U;
    mixed = (mixed ^ (mixed >> 33U)) * 0xff51'afd7'ed55'8ccdU;
    mixed = (mixed ^ (mixed >> 33U)) * 0xc4ce'b9fe'1a85'ec53U;
    mixed ^= mixed >> 33U;
    const auto step = (mixed >> 32U) | 1U;
    const std::uint64_t bits = words.size() * 64;
    for (int probe = 0; probe < probes; ++probe) {
      const auto place = mixed % bits;
      if (!visit(words[place / 64], std::uint64_t{1} << (place % 64)))
        return false;
      mixed += step;
    }
    return true;
  }

  template <class Visit>
  bool for_each_bit(std::uint32_t hash, const Visit& visit) noexcept {
    return visit_bits(words_, hash, visit);
  }

  template <class Visit>
  bool for_each_bit(std::uint32_t hash, const Visit& visit) const noexcept {
    return visit_bits(words_, hash, visit);
  }

  std::size_t room_;
  std::size_t count_ = 0;
  std::vector<std::uint64_t> words_;
};

} // namespace troupe::actors
