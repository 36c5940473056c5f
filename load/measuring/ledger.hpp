// The appends of a load test and their answers. The verdict compares them with
// the stored events.

#pragma once

#include "troupe/load/workload.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::load {

/// The caller's knowledge of one append.
enum class fate : std::uint8_t {
  sent,    ///< No answer yet.
  stored,  ///< Acknowledged.
  refused, ///< Refused: it has no effect.
  unknown, ///< It may have taken effect (`errc::store_failed`).
};

/// The appends of one caller, by number. One thread calls `send`. Other threads
/// may call `tell` at the same time if `reserve` has made room for all appends.
class caller_ledger {
public:
  /// Makes room for `count` appends, so that `send` moves none of them up to
  /// then.
  void reserve(std::size_t count) { sent_.reserve(count); }

  /// Adds an append to the session with this index. Its number is `size()`
  /// before the call.
  void send(std::uint32_t session) { sent_.push_back({session, fate::sent}); }

  /// Sets the answer to append `number`, which has been sent.
  void tell(std::uint64_t number, fate told) { sent_[number].told = told; }

  /// Number of appends sent, answered or not.
  std::size_t size() const noexcept { return sent_.size(); }

  /// Index of the session of append `number`.
  std::uint32_t session_of(std::uint64_t number) const {
    return sent_[number].session;
  }

  /// Answer to append `number`; `fate::sent` if there is none yet.
  fate told_of(std::uint64_t number) const { return sent_[number].told; }

private:
  struct entry {
    std::uint32_t session;
    fate told;
  };

  std::vector<entry> sent_;
};

/// The appends of all callers, by index of the caller.
using ledger = std::vector<caller_ledger>;

} // namespace troupe::load
