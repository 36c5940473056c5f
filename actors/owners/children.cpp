#include "troupe/actors/owners/children.hpp"

#include "troupe/actors/engine/inbox_actor.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>

namespace troupe::actors {

namespace {

letter_list taken(std::unique_ptr<letter_list> parked) {
  return parked ? std::move(*parked) : letter_list();
}

} // namespace

void children::child::send(letter_ptr sent) {
  if (parked_)
    parked_->push_back(std::move(sent));
  else
    tell(std::move(sent));
}

bool children::child::park() {
  if (parked_)
    return false;
  parked_ = std::make_unique<letter_list>();
  return true;
}

void children::child::tell(letter_ptr sent) const {
  actor_->tell(std::move(sent));
}

children::child* children::find(const std::string& name) {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second;
}

std::vector<std::string> children::names(const std::string& behind,
                                         std::size_t limit) const {
  std::vector<std::string_view> found;
  for (const auto& [name, known] : all_)
    if (name > behind && !known.is_parked())
      found.push_back(name);
  const auto last = std::min(found.size(), limit);
  const auto middle = found.begin() + static_cast<std::ptrdiff_t>(last);
  std::partial_sort(found.begin(), middle, found.end());
  return {found.begin(), middle};
}

void children::answer_leaving(const std::string& name) {
  auto* const known = find(name);
  if (known == nullptr)
    return; // It was removed meanwhile.
  const auto step = known->park() ? retire::step::granted : retire::step::kept;
  known->tell(std::make_unique<retire>(step, name));
}

letter_list children::resume(const std::string& name) {
  return taken(std::move(all_.at(name).parked_));
}

letter_list children::forget(const std::string& name) {
  const auto found = all_.find(name);
  assert(found != all_.end());
  auto parked = taken(std::move(found->second.parked_));
  all_.erase(found);
  return parked;
}

letter_list children::keep_idle(const std::string& name,
                                std::unique_ptr<idle_child> state) {
  auto& known = all_.at(name);
  known.actor_.reset();
  known.idle_ = std::move(state);
  return taken(std::move(known.parked_));
}

void children::forget_idle() {
  std::erase_if(all_,
                [](const auto& each) { return each.second.idle_ != nullptr; });
}

void children::shut_down() {
  for (const auto& [name, known] : all_)
    if (known.actor_)
      known.tell(std::make_unique<actors::shut_down>());
}

} // namespace troupe::actors
