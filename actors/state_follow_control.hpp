// State that a reader of an app's or a user's state shares with its letters:
// the state that it has seen last.

#pragma once

#include "troupe/actors/reader_control.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::detail {

class state_follow_control final
  : public reader_control<actors::followed_state, std::optional<state_change>> {
public:
  /// `owner` is an app or a user, whose names are checked. `from` is the
  /// revision that the caller knows; unset: the present one.
  state_follow_control(std::shared_ptr<actors::setup> shared,
                       owner_name owner,
                       std::optional<std::uint64_t> from);
  ~state_follow_control() override;

  /// Revision of the last delivery, or at first that of the start; unset until
  /// it is known.
  std::optional<std::uint64_t> revision() const;

private:
  void install(actors::followed_state answer) override;
  std::optional<std::optional<state_change>> take_fetched() override;
  void drop_fetched() override;
  void send_letter() override;
  void take_letter_back() override;

  const owner_name owner_;
  std::optional<actors::state_place> place_;
  std::optional<actors::followed_state> fetched_;
  std::optional<std::uint64_t> delivered_;
};

} // namespace troupe::detail
