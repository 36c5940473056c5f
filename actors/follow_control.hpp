// State that a reader of a session's events shares with its letters: the events
// that it has fetched and not delivered, and its place in the log.

#pragma once

#include "troupe/actors/reader_control.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::detail {

class follow_control final
  : public reader_control<actors::followed, event_ptr> {
public:
  /// `from` is the number of the last event that is not delivered; unset: the
  /// newest event.
  follow_control(std::shared_ptr<actors::setup> shared,
                 session_key key,
                 std::optional<std::uint64_t> from);

  /// Number of the last event that was delivered, or at first that of `from`;
  /// unset until the place is known.
  std::optional<std::uint64_t> revision() const;

private:
  void install(actors::followed answer) override;
  std::optional<event_ptr> take_fetched() override;
  void drop_fetched() override;
  void send_letter() override;

  const session_key key_;
  actors::followed fetched_;
  std::size_t taken_ = 0; // Events of `fetched_` that were delivered.
  std::optional<actors::follow_place> place_;
  bool is_wish_ = false; // The place is the caller's, not a session's.
};

} // namespace troupe::detail
