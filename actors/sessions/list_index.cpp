#include "troupe/actors/sessions/list_index.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace troupe::actors {

namespace {

std::int64_t count_of(timestamp time) {
  return time.time_since_epoch().count();
}

// Newest first. `~` instead of a minus, which could overflow.
auto rank(std::int64_t time, const std::string& user, const std::string& id) {
  return std::tuple(~time, std::string_view(user), std::string_view(id));
}

auto rank(const page_start& place) {
  return rank(count_of(place.time), place.user, place.id);
}

} // namespace

// -- listing ------------------------------------------------------------------

listing::listing(std::shared_ptr<const user_names> names, std::string id)
  : names_(std::move(names)),
    id_(std::move(id)) {}

listing::~listing() {
  names_->listed->leave(*this);
}

void listing::touch(timestamp time) {
  time_.store(count_of(time), std::memory_order_relaxed);
  if (!changed_.exchange(true, std::memory_order_acq_rel))
    names_->listed->note(*this);
}

// -- index --------------------------------------------------------------------

bool list_index::by_rank::operator()(const listing* left,
                                     const listing* right) const {
  return rank(*left->sorted_by_, left->user(), left->id_)
         < rank(*right->sorted_by_, right->user(), right->id_);
}

bool list_index::by_rank::operator()(const page_start& left,
                                     const listing* right) const {
  return rank(left) < rank(*right->sorted_by_, right->user(), right->id_);
}

bool list_index::by_rank::operator()(const listing* left,
                                     const page_start& right) const {
  return rank(*left->sorted_by_, left->user(), left->id_) < rank(right);
}

void list_index::note(listing& changed) {
  const std::lock_guard guard(mutex_);
  changed.place_ = changed_.size();
  changed_.push_back(&changed);
}

void list_index::leave(listing& ended) {
  const std::lock_guard guard(mutex_);
  if (ended.changed_.load(std::memory_order_relaxed)) {
    changed_.back()->place_ = ended.place_;
    std::swap(changed_[ended.place_], changed_.back());
    changed_.pop_back();
  }
  take_out(ended);
}

void list_index::take_out(listing& moved) {
  if (!moved.sorted_by_)
    return;
  all_.erase(&moved);
  const auto of_user = users_.find(moved.user());
  of_user->second.erase(&moved);
  if (of_user->second.empty())
    users_.erase(of_user);
  moved.sorted_by_.reset();
}

void list_index::sort_in() {
  for (auto* each : changed_) {
    take_out(*each);
    each->changed_.exchange(false, std::memory_order_acq_rel);
    each->sorted_by_ = each->time_.load(std::memory_order_relaxed);
  }
  // Changed sessions are mostly newer than all others. Inserted in sorted order
  // from the oldest on, each goes to the front, which the hint makes free of a
  // search.
  std::ranges::sort(changed_, by_rank());
  for (auto next = changed_.rbegin(); next != changed_.rend(); ++next) {
    all_.emplace_hint(all_.begin(), *next);
    auto& of_user = users_[(*next)->user()];
    of_user.emplace_hint(of_user.begin(), *next);
  }
  changed_.clear();
}

std::vector<page_start>
list_index::page(const std::optional<std::string>& user,
                 const std::optional<page_start>& from,
                 std::size_t count,
                 const std::function<bool(const std::string&)>& is_shown) {
  const std::lock_guard guard(mutex_);
  sort_in();
  std::vector<page_start> found;
  const order* shown = &all_;
  if (user) {
    const auto of_user = users_.find(*user);
    if (of_user == users_.end())
      return found;
    shown = &of_user->second;
  }
  for (auto next = from ? shown->upper_bound(*from) : shown->begin();
       next != shown->end() && found.size() < count;
       ++next) {
    const auto& each = **next;
    if (is_shown(each.user()))
      found.push_back({timestamp(std::chrono::microseconds(*each.sorted_by_)),
                       each.user(),
                       each.id_});
  }
  return found;
}

} // namespace troupe::actors
