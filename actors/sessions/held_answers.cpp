#include "troupe/actors/sessions/held_answers.hpp"

#include <utility>

namespace troupe::actors {

std::uint64_t held_answers::hold(letter_list answers) {
  groups_.push_back({std::move(answers), ++refreshes_, std::nullopt});
  return refreshes_;
}

void held_answers::hold_behind(letter_ptr answer) {
  if (groups_.back().refresh != 0)
    groups_.emplace_back();
  groups_.back().letters.push_back(std::move(answer));
}

void held_answers::note(std::uint64_t refresh, const result<session>& seen) {
  for (auto& each : groups_)
    if (each.refresh != 0 && each.refresh <= refresh && !each.seen)
      each.seen = seen;
}

void held_answers::give_up(const error& why) {
  note(refreshes_, why);
}

std::optional<held_answers::group> held_answers::take() {
  if (groups_.empty()
      || (groups_.front().refresh != 0 && !groups_.front().seen))
    return std::nullopt;
  std::optional<group> oldest(std::move(groups_.front()));
  groups_.pop_front();
  return oldest;
}

} // namespace troupe::actors
