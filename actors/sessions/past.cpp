#include "troupe/actors/sessions/past.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

const std::vector<std::unique_ptr<append>>* past_of(const append& letter) {
  const auto* const creation = as<create>(letter);
  return creation != nullptr ? &creation->past : nullptr;
}

} // namespace

bool reaches(const append& letter, scope where) noexcept {
  const auto* past = past_of(letter);
  return letter.touches(where)
         || (past != nullptr
             && std::ranges::any_of(*past, [where](const auto& each) {
                  return each->touches(where);
                }));
}

void add_to(climb& up, append& accepted) {
  const auto add = [&up](append& each) {
    const bool to_app = each.touches(scope::app);
    if (to_app || each.touches(scope::user))
      up.events.push_back(&each);
    up.touches_app = up.touches_app || to_app;
  };
  add(accepted);
  if (const auto* past = past_of(accepted); past != nullptr && !past->empty()) {
    up.all_or_nothing = true;
    for (const auto& each : *past)
      add(*each);
  }
}

void reset_all(append& letter) {
  letter.reset();
  if (const auto* past = past_of(letter))
    for (const auto& each : *past)
      each->reset();
}

error with_number(std::size_t number, const error& why) {
  return {why.code(), fmt::format("event {}: {}", number, why.message())};
}

} // namespace troupe::actors
