#include "troupe/core/event_log.hpp"

#include "troupe/core/rewind.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <numeric>

namespace troupe {

namespace detail {

// -- hidden events ------------------------------------------------------------

std::uint64_t event_holes::rank_of(std::uint64_t number) const noexcept {
  const auto next = std::ranges::lower_bound(holes, number, {}, &hole::first);
  if (next == holes.begin())
    return number - 1;
  const auto& before = *std::prev(next);
  return number > before.last ? before.rank + (number - before.last - 1)
                              : before.rank;
}

std::uint64_t event_holes::number_at(std::uint64_t rank) const noexcept {
  const auto next = std::ranges::upper_bound(holes, rank, {}, &hole::rank);
  if (next == holes.begin())
    return rank + 1;
  const auto& before = *std::prev(next);
  return before.last + 1 + (rank - before.rank);
}

const event_holes::hole*
event_holes::around(std::uint64_t number) const noexcept {
  const auto next = std::ranges::upper_bound(holes, number, {}, &hole::first);
  return next != holes.begin() && number <= std::prev(next)->last
           ? &*std::prev(next)
           : nullptr;
}

void event_holes::add(std::uint64_t first, std::uint64_t last) {
  if (!holes.empty() && holes.back().last + 1 == first)
    holes.back().last = last;
  else
    holes.push_back({first, last, rank_of(first)});
}

// Walks back: before each rewind, the history is that of the event before those
// that it takes back.
rewind_index::holes_ptr rewind_index::holes_at(std::uint64_t number) const {
  if (number >= rewinds.back().number)
    return newest;
  std::vector<rewind> effective;
  for (;;) {
    const auto next
      = std::ranges::upper_bound(rewinds, number, {}, &rewind::number);
    if (next == rewinds.begin())
      break;
    effective.push_back(*std::prev(next));
    number = effective.back().first - 1;
  }
  if (effective.empty())
    return nullptr;
  boost::intrusive_ptr<event_holes> found(new event_holes);
  for (auto index = effective.size(); index > 0; --index)
    found->add(effective[index - 1].first, effective[index - 1].number);
  return found;
}

} // namespace detail

// -- the log ------------------------------------------------------------------

namespace {

using detail::event_chunk;
using detail::event_spine;

// A longer chain of spines is joined into one, so that each event is found
// quickly.
constexpr std::size_t depth_max = 8;

// So many pointers are copied. Otherwise a fork of the first events would keep
// all later events of its parent in memory.
constexpr std::size_t copied_max = 64;

// A spine that begins with the first `count` chunks of another one.
boost::intrusive_ptr<event_spine>
share_chunks(boost::intrusive_ptr<const event_spine> past, std::size_t count) {
  while (count <= past->shared && past->past)
    past = past->past;
  const bool is_joined = count <= copied_max || past->depth + 1 >= depth_max;
  boost::intrusive_ptr<event_spine> made(
    new event_spine(past->before, is_joined ? count + 1 : 1));
  if (is_joined) {
    for (std::size_t index = 0; index < count; ++index)
      made->chunks[index] = past->chunk(index);
  } else {
    made->shared = count;
    made->depth = past->depth + 1;
    made->past = std::move(past);
  }
  return made;
}

} // namespace

event_log::event_log(const event_slice& past) : event_log() {
  assert(past.first_ == 0 && !past.holes_);
  if (past.empty())
    return;
  before_ = past.spine_->before;
  const auto whole = past.last_ / event_chunk::capacity;
  const auto rest = past.last_ % event_chunk::capacity;
  spine_ = share_chunks(past.spine_, whole);
  if (rest > 0) {
    auto& last = spine_->chunks[whole - spine_->shared];
    last = new event_chunk;
    std::copy_n(
      past.spine_->chunk(whole)->events.begin(), rest, last->events.begin());
  }
  if (past.branches_) {
    branches_ = new detail::branch_index;
    branches_->past = past.branches_;
    branches_->shared = past.last_;
  }
  all_ = past;
  all_.spine_ = spine_;
  all_.branches_ = branches_;
  share_rewinds();
}

// Later rewinds of the parent are none of the fork.
void event_log::share_rewinds() {
  rewinds_ = std::exchange(all_.rewinds_, nullptr);
  const auto is_later = [last = before_ + size()](const auto& each) {
    return each.number > last;
  };
  if (rewinds_ && is_later(rewinds_->rewinds.back())) {
    boost::intrusive_ptr<detail::rewind_index> own(
      new detail::rewind_index(*rewinds_));
    own->newest = own->holes_at(before_ + size());
    std::erase_if(own->rewinds, is_later);
    rewinds_ = own->rewinds.empty() ? nullptr : std::move(own);
  }
  all_.rewinds_ = rewinds_;
}

void event_log::push_back(event_ptr said) {
  constexpr auto per_chunk = detail::event_chunk::capacity;
  const auto index = all_.last_;
  // Position among the chunks that are not shared.
  const auto chunk = index / per_chunk - (spine_ ? spine_->shared : 0);
  if (index % per_chunk == 0) {
    if (!spine_ || chunk == spine_->chunks.size()) {
      // Readers keep the old spine; both share the chunks.
      boost::intrusive_ptr<detail::event_spine> grown(
        new detail::event_spine(before_, chunk == 0 ? 1 : chunk * 2));
      if (spine_) {
        std::ranges::copy(spine_->chunks, grown->chunks.begin());
        grown->past = spine_->past;
        grown->shared = spine_->shared;
        grown->depth = spine_->depth;
      }
      spine_ = std::move(grown);
      all_.spine_ = spine_;
    }
    spine_->chunks[chunk] = new detail::event_chunk;
  }
  if (branches_ || !said->branch.empty())
    this->index(said->branch);
  if (const auto count = taken_back_by(*said))
    note_rewind(*count);
  // The slot is written before the range grows. Slices that were taken before
  // never reach it.
  spine_->chunks[chunk]->events[index % per_chunk] = std::move(said);
  ++all_.last_;
}

// Records the position of the next event.
void event_log::index(const std::string& branch) {
  if (!branches_) {
    branches_ = new detail::branch_index;
    all_.branches_ = branches_;
    // The first branch appears: all earlier events are on the empty branch.
    if (size() > 0) {
      auto& plain = branches_->by_branch[std::string()];
      plain.resize(size());
      std::iota(plain.begin(), plain.end(), std::size_t{0});
    }
  }
  const std::lock_guard guard(branches_->mutex);
  branches_->by_branch[branch].push_back(size());
}

// The next event is a rewind. After it, the history is that of the event before
// those that it takes back.
void event_log::note_rewind(std::uint64_t count) {
  const auto number = before_ + size() + 1;
  const auto first = number - std::min(count, number - 1);
  const auto known = rewinds_ ? rewinds_->holes_at(first - 1)
                              : detail::rewind_index::holes_ptr();
  boost::intrusive_ptr<detail::event_holes> holes(
    known ? new detail::event_holes(*known) : new detail::event_holes);
  holes->add(first, number);
  boost::intrusive_ptr<detail::rewind_index> grown(
    rewinds_ ? new detail::rewind_index(*rewinds_) : new detail::rewind_index);
  grown->rewinds.push_back({number, first});
  grown->newest = std::move(holes);
  rewinds_ = std::move(grown);
  all_.rewinds_ = rewinds_;
}

// Forgets the rewinds before all events that are left, but for the newest one.
void event_log::forget_rewinds() {
  if (!rewinds_ || rewinds_->rewinds.front().number > before_)
    return;
  boost::intrusive_ptr<detail::rewind_index> rest(
    new detail::rewind_index(*rewinds_));
  const auto kept = std::ranges::upper_bound(
    rest->rewinds, before_, {}, &detail::rewind_index::rewind::number);
  rest->rewinds.erase(rest->rewinds.begin(),
                      std::min(kept, std::prev(rest->rewinds.end())));
  rewinds_ = std::move(rest);
  all_.rewinds_ = rewinds_;
}

std::size_t event_log::keep_newest(std::size_t count) {
  assert(!branches_ || !branches_->past);
  constexpr auto per_chunk = detail::event_chunk::capacity;
  const auto chunks
    = count < size() ? (size() - count) / per_chunk : std::size_t{0};
  if (chunks == 0)
    return 0;
  const auto used = (size() + per_chunk - 1) / per_chunk;
  const auto dropped = chunks * per_chunk;
  boost::intrusive_ptr<detail::event_spine> rest(
    new detail::event_spine(before_ + dropped, used - chunks + 1));
  for (auto index = chunks; index < used; ++index)
    rest->chunks[index - chunks] = spine_->chunk(index);
  spine_ = std::move(rest);
  all_.spine_ = spine_;
  before_ += dropped;
  all_.last_ -= dropped;
  forget_rewinds();
  if (!branches_)
    return dropped;
  // Readers keep the old index, as they keep the old spine: its positions match
  // their ranges.
  boost::intrusive_ptr<detail::branch_index> left(new detail::branch_index);
  for (const auto& [branch, places] : branches_->by_branch) {
    const auto kept = std::ranges::lower_bound(places, dropped);
    if (kept == places.end())
      continue;
    auto& moved = left->by_branch[branch];
    std::transform(kept,
                   places.end(),
                   std::back_inserter(moved),
                   [dropped](std::size_t place) { return place - dropped; });
  }
  branches_ = std::move(left);
  all_.branches_ = branches_;
  return dropped;
}

// -- slices -------------------------------------------------------------------

std::size_t event_slice::shown_place_of(std::size_t index) const noexcept {
  return place_of_number(holes_->number_at(shown_before(first_) + index));
}

// The place in the slice, or its nearest end.
std::size_t event_slice::place_of_number(std::uint64_t number) const noexcept {
  const auto first = number_at(first_);
  return number <= first
           ? first_
           : first_ + std::min<std::uint64_t>(number - first, last_ - first_);
}

std::uint64_t event_slice::first_number() const noexcept {
  const auto first = number_at(first_);
  const auto* const hole = holes_ ? holes_->around(first) : nullptr;
  return hole == nullptr ? first : hole->first;
}

event_slice event_slice::from(std::uint64_t number) const noexcept {
  auto cut = *this;
  cut.first_ = place_of_number(number);
  return cut;
}

event_slice event_slice::before(std::uint64_t number) const noexcept {
  auto cut = *this;
  cut.last_ = place_of_number(number);
  return cut;
}

std::uint64_t event_slice::count_back(std::uint64_t number,
                                      std::uint64_t count) const noexcept {
  const auto rank = holes_ ? holes_->rank_of(number) : number - 1;
  if (rank <= count)
    return holes_ ? holes_->number_at(0) : 1;
  return holes_ ? holes_->number_at(rank - count) : number - count;
}

// Merges the positions of one branch into `shown`, from the index of the
// history and those of its past.
void event_slice::merge(std::string_view branch,
                        std::vector<std::size_t>& shown) const {
  auto last = last_;
  for (const auto* index = branches_.get(); index != nullptr;
       index = index->past.get()) {
    const std::lock_guard guard(index->mutex);
    if (const auto found = index->by_branch.find(branch);
        found != index->by_branch.end())
      merge(found->second, last, shown);
    last = std::min(last, index->shared);
  }
}

// Merges the positions that are inside the slice, and below `last`.
void event_slice::merge(const std::vector<std::size_t>& places,
                        std::size_t last,
                        std::vector<std::size_t>& shown) const {
  const auto middle = static_cast<std::ptrdiff_t>(shown.size());
  for (auto next = std::ranges::lower_bound(places, first_);
       next != places.end() && *next < last;
       ++next)
    shown.push_back(*next - first_);
  std::inplace_merge(shown.begin(), shown.begin() + middle, shown.end());
}

std::optional<std::vector<std::size_t>>
event_slice::shown_on(std::string_view branch) const {
  if (!branches_ || branch.empty())
    return std::nullopt;
  std::vector<std::size_t> shown;
  for (;;) {
    merge(branch, shown);
    if (branch.empty())
      break;
    const auto dot = branch.rfind('.');
    branch = branch.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  if (!holes_)
    return shown;
  std::erase_if(shown, [this](std::size_t offset) {
    return hides(number_at(first_ + offset));
  });
  const auto before = shown_before(first_);
  for (auto& offset : shown)
    offset = shown_before(first_ + offset) - before;
  return shown;
}

// Hides the events that `is_hidden` names, and those that are hidden already.
template <class Predicate>
event_slice event_slice::without(const Predicate& is_hidden) const {
  boost::intrusive_ptr<detail::event_holes> hidden(new detail::event_holes);
  for (auto place = first_; place < last_; ++place)
    if (const auto number = number_at(place);
        hides(number) || is_hidden(number, at(place)))
      hidden->add(number, number);
  auto rest = *this;
  rest.holes_ = std::move(hidden);
  return rest;
}

event_slice event_slice::live() const {
  const auto holes = rewinds_ && first_ != last_
                       ? rewinds_->holes_at(number_at(last_ - 1))
                       : detail::rewind_index::holes_ptr();
  if (!holes || holes == holes_)
    return *this;
  if (holes_)
    return without([&holes](std::uint64_t number, const event_ptr&) {
      return holes->around(number) != nullptr;
    });
  auto shown = *this;
  shown.holes_ = holes;
  return shown;
}

event_slice event_slice::after(timestamp time) const {
  // Usually the result is a suffix of the slice.
  std::size_t first = 0;
  while (first < size() && (*this)[first]->timestamp < time)
    ++first;
  auto suffix = recent(size() - first);
  const auto is_older
    = [time](const event_ptr& said) { return said->timestamp < time; };
  if (std::ranges::none_of(suffix, is_older))
    return suffix;
  return suffix.without([&is_older](std::uint64_t, const event_ptr& said) {
    return is_older(said);
  });
}

json to_json(const event_slice& events) {
  auto list = json::array();
  for (const auto& said : events)
    list.push_back(to_json(*said));
  return list;
}

} // namespace troupe
