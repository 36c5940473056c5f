// The ids of a session's newest events, so that a retried append takes effect
// once.
//
// Keeps a hash and a number per id; the id itself is compared where the event
// is, in the log or in the batch under way.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::actors {

class recent_ids {
public:
  /// Remembers `id` as event number `number` (from 1), and forgets numbers
  /// `kept` and more below it.
  void add(std::string_view id, std::uint64_t number, std::size_t kept) {
    add(id_hash(id), number, kept);
  }

  /// The same for an id of which only the `id_hash` is at hand.
  void add(std::uint32_t hash, std::uint64_t number, std::size_t kept) {
    // Below the number before it, since this one may be forgotten again.
    if ((used_ + 1) * 2 > slots_.size())
      rebuild(number - 1, kept);
    insert({hash, static_cast<std::uint32_t>(number)});
  }

  /// The number of the event with this id, or 0. `has_id` says whether an event
  /// number has it. Numbers beyond the newest that was really appended may come
  /// up; `has_id` sorts them out.
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

  /// Forgets `id` as event number `number`, which was refused after all.
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
  };

  // In a hash, of which ids use 31 bits: the slot stays, for those that were
  // put behind it, and matches no id.
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
      return; // Once in four billion events an id is not remembered.
    auto at = added.hash & mask();
    while (slots_[at].number != 0)
      at = (at + 1) & mask();
    slots_[at] = added;
    ++used_;
  }

  void rebuild(std::uint64_t newest, std::size_t kept) {
    auto before = std::move(slots_);
    std::size_t live = 1;
    for (const auto& each : before)
      live += is_live(each, newest, kept);
    // Room for as many again before the next time.
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
