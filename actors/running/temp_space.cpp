#include "troupe/actors/running/temp_space.hpp"

#include "troupe/contexts/lanes/event_place.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

constexpr std::string_view result_key = "result";

} // namespace

void temp_space::note_names() {
  for (const auto& done : share.share(scope::temp))
    if (!(keeps_result_ && done.name == result_key)
        && std::ranges::find(untold_, done.name) == untold_.end())
      untold_.push_back(done.name);
}

bool temp_space::tell_result(event& said) {
  if (!keeps_result_
      || std::ranges::find(
           share.share(scope::temp), result_key, &operation::name)
           == share.share(scope::temp).end())
    return false;
  const auto* result = state.judged_keys().find(std::string(result_key));
  set_fact(said, result_fact, result != nullptr ? result->data() : json());
  set_fact(said, lane_fact, place_);
  return true;
}

void temp_space::tell_names(event& said) const {
  set_temp_names(said, {.lane = place_, .names = untold_});
}

void temp_space::forget_names(const event& stored) {
  if (untold_.empty())
    return;
  const auto told = temp_names_in(stored);
  if (told.lane == place_)
    std::erase_if(untold_, [&told](const std::string& name) {
      return std::ranges::find(told.names, name) != told.names.end();
    });
}

} // namespace troupe::actors
