#include "troupe/actors/owners/session_past.hpp"

#include "troupe/actors/owners/append_letter.hpp"
#include "troupe/actors/owners/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace troupe::actors {

namespace {

error with_number(std::size_t number, const error& why) {
  return {why.code(), fmt::format("event {}: {}", number, why.message())};
}

const std::vector<std::unique_ptr<append>>* past_of(const append& letter) {
  const auto* const creation = as<create>(letter);
  return creation != nullptr ? &creation->past : nullptr;
}

} // namespace

result<std::vector<std::unique_ptr<append>>>
make_past(std::vector<event> events, setup& shared) {
  std::vector<std::unique_ptr<append>> past;
  past.reserve(events.size());
  std::unordered_set<std::string_view> ids;
  for (auto& said : events) {
    const auto number = past.size() + 1;
    if (said.partial)
      return with_number(number,
                         {errc::invalid_argument,
                          "a partial event cannot be in a session's past"});
    auto letter = make_append(std::move(said), {}, shared);
    if (!letter)
      return with_number(number, letter.error());
    // The letter keeps the id alive.
    if (!ids.insert((*letter)->event->id).second)
      return with_number(
        number,
        {errc::invalid_argument,
         fmt::format("the id '{}' comes twice", (*letter)->event->id)});
    past.push_back(std::move(*letter));
  }
  return past;
}

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

// -- in the session -----------------------------------------------------------

// Judges the past with its creation. They are alone in their batch: the session
// does not exist before, and a creation ends its batch.
bool session_actor::accept_past(create& first) {
  for (const auto& each : first.past) {
    const auto owned = each->changes().share(scope::session);
    if (!owned.empty())
      if (auto judged
          = state_.judge(owned, each->resolved, false, shared().options.limits);
          !judged) {
        const auto number = accepted_.size();
        drop_creation(with_number(number, judged.error()));
        return false;
      }
    accepted_.push_back(each.get());
  }
  return true;
}

void session_actor::drop_creation(error why) {
  accepted_.front()->refuse(std::move(why));
  accepted_.clear();
  state_.abandon();
}

} // namespace troupe::actors
