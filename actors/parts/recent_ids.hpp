// Ids of a session's newest events, so that a retried append takes effect once.
//
// Stores a hash and a number for each id. The full id is compared with the
// event itself, in the log or in the batch under way.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::actors {

class recent_ids {
public:
  /// Adds `id` as that of event `number` (from 1). Ids of events `kept` or more
  /// below it are forgotten.
  void add(std::string_view id, std::uint64_t number, std::size_t kept) {
    add(id_hash(id), number, kept);
  }

  /// The same for an id of which only the `id_hash` is known.
  void add(std::uint32_t hash, std::uint64_t number, std::size_t kept) {
    // `number - 1`: event `number` may still be refused and forgotten again.
    if ((used_ + 1) * 2 > slots_.size())
      rebuild(number - 1, kept);
    insert({hash, static_cast<std::uint32_t>(number)});
  }

  /// The number of the event with this id, or 0. `has_id(number)` compares the
  /// full id. It must also reject numbers of events that were never appended.
  template <class HasId>
  std::uint64_t find(std::string_view id,
                     std::uint64_t newest,
                     std::size_t kept,
                     const HasId& has_id) const {
    if (slots_.empty())
      return 0;
    const auto hash = id_hash(id);
    for (auto at = hash & mask(); slots_[at].number != 0;
         at = (at + 1) & mask())
      if (slots_[at].hash == hash) {
        const auto number = full(slots_[at].number, newest);
        if (number + kept > newest && has_id(number))
          return number;
      }
    return 0;
  }

  /// Forgets `id` as event `number`, which was refused.
  void forget(std::string_view id, std::uint64_t number) noexcept {
    if (slots_.empty())
      return;
    const auto hash = id_hash(id);
    const auto low = static_cast<std::uint32_t>(number);
    for (auto at = hash & mask(); slots_[at].number != 0;
         at = (at + 1) & mask())
      if (slots_[at].hash == hash && slots_[at].number == low) {
        slots_[at].hash |= dropped;
        return;
      }
  }

private:
  struct slot {
    std::uint32_t hash = 0;
    std::uint32_t number = 0; // The low half; 0: free.

    friend bool operator==(const slot&, const slot&) = default;
  };

  // Flag in a slot's hash, of which ids use 31 bits. The slot matches no id,
  // but stays, since a probe for a later id passes over it.
  static constexpr std::uint32_t dropped = std::uint32_t{1} << 31U;

  static bool
  is_live(slot each, std::uint64_t newest, std::size_t kept) noexcept {
    return each.number != 0 && (each.hash & dropped) == 0
           && full(each.number, newest) + kept > newest;
  }

  std::size_t mask() const noexcept { return slots_.size() - 1; }

  // The number with this low half that is closest to `newest`.
  static std::uint64_t full(std::uint32_t low, std::uint64_t newest) noexcept {
    const auto distance
      = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(newest));
    return newest
           + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
  }

  void insert(slot added) noexcept {
    if (added.number == 0)
      return; // One id in four billion is not kept.
    auto at = added.hash & mask();
    for (; slots_[at].number != 0; at = (at + 1) & mask())
      if (slots_[at] == added)
        return; // The event was undone, and is decided again.
    slots_[at] = added;
    ++used_;
  }

  void rebuild(std::uint64_t newest, std::size_t kept) {
    auto before = std::move(slots_);
    std::size_t live = 1;
    for (const auto& each : before)
      live += is_live(each, newest, kept);
    // Room for as many ids again before the next rebuild.
    std::size_t size = 8;
    while (size < live * 4)
      size *= 2;
    slots_.assign(size, slot());
    used_ = 0;
    for (const auto& each : before)
      if (is_live(each, newest, kept))
        insert(each);
  }

  std::vector<slot> slots_; // Its size is a power of two.
  std::size_t used_ = 0;
};

} // namespace troupe::actors
