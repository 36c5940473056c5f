// Events as lines of JSON, for the followers of a session, which all send the
// same line.
//
// An event never changes, so a line that was made once stays true.

#pragma once

#include "troupe/core/event.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::serving {

/// Thread-safe.
class event_lines {
public:
  /// Returns the event in the form of ADK. The newest short lines are kept,
  /// since writing one takes about as long as sending it.
  std::shared_ptr<const std::string> of(const event_ptr& said);

private:
  // Does not keep the content of the event.
  struct slot {
    std::weak_ptr<const event> from;
    std::shared_ptr<const std::string> line;
  };

  // A prime, because addresses are multiples of powers of two.
  static constexpr std::size_t slots_max = 17;

  std::mutex mutex_;
  std::array<slot, slots_max> slots_;
};

} // namespace troupe::serving
