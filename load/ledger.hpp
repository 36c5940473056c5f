// What a load test has sent, and what it was told of each append. The verdict
// compares it with what is there.

#pragma once

#include "troupe/load/workload.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::load {

/// What the caller was told.
enum class fate : std::uint8_t {
  sent,    ///< Nothing yet.
  stored,  ///< Acknowledged.
  refused, ///< It had no effect, and never will.
  unknown, ///< It may have taken effect (`errc::store_failed`).
};

/// The appends of one caller, by their numbers. One thread sends; the fates of
/// what it has sent may be told on others, if there is room for all of them.
class caller_ledger {
public:
  void reserve(std::size_t count) { sent_.reserve(count); }

  void send(std::uint32_t session) { sent_.push_back({session, fate::sent}); }

  void tell(std::uint64_t number, fate told) { sent_[number].told = told; }

  std::size_t size() const noexcept { return sent_.size(); }

  std::uint32_t session_of(std::uint64_t number) const {
    return sent_[number].session;
  }

  fate told_of(std::uint64_t number) const { return sent_[number].told; }

private:
  struct entry {
    std::uint32_t session;
    fate told;
  };

  std::vector<entry> sent_;
};

/// By caller.
using ledger = std::vector<caller_ledger>;

} // namespace troupe::load
