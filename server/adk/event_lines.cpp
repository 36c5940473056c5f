#include "troupe/server/adk/event_lines.hpp"

#include "troupe/core/json.hpp"
#include "troupe/server/adk/forms.hpp"

#include <cstddef>
#include <functional>

namespace troupe::serving {

std::shared_ptr<const std::string> event_lines::of(const event_ptr& said) {
  constexpr std::size_t kept_bytes_max = std::size_t{64} << 10U;
  auto& kept = slots_[std::hash<event_ptr>()(said) % slots_max];
  {
    const std::lock_guard guard(mutex_);
    if (kept.line && kept.from.lock() == said)
      return kept.line;
  }
  // Without the lock, so that others do not wait for a large event.
  auto line = std::make_shared<const std::string>(to_text(event_form(*said)));
  if (line->size() > kept_bytes_max)
    return line;
  const std::lock_guard guard(mutex_);
  kept = {said, line};
  return line;
}

} // namespace troupe::serving
