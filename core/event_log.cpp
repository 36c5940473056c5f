#include "troupe/core/event_log.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace troupe {

void event_log::push_back(event_ptr said) {
  constexpr auto per_chunk = detail::event_chunk::capacity;
  const auto index = all_.last_;
  const auto chunk = index / per_chunk;
  if (index % per_chunk == 0) {
    if (!spine_ || chunk == spine_->chunks.size()) {
      // Readers keep the old spine; both share the chunks.
      boost::intrusive_ptr<detail::event_spine> grown(
        new detail::event_spine(chunk == 0 ? 1 : chunk * 2));
      if (spine_)
        std::ranges::copy(spine_->chunks, grown->chunks.begin());
      spine_ = std::move(grown);
      all_.spine_ = spine_;
    }
    spine_->chunks[chunk] = new detail::event_chunk;
  }
  if (branches_ || !said->branch.empty())
    this->index(said->branch);
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

std::size_t event_log::keep_newest(std::size_t count) {
  constexpr auto per_chunk = detail::event_chunk::capacity;
  const auto chunks
    = count < size() ? (size() - count) / per_chunk : std::size_t{0};
  if (chunks == 0)
    return 0;
  const auto used = (size() + per_chunk - 1) / per_chunk;
  boost::intrusive_ptr<detail::event_spine> rest(
    new detail::event_spine(used - chunks + 1));
  for (auto index = chunks; index < used; ++index)
    rest->chunks[index - chunks] = spine_->chunks[index];
  spine_ = std::move(rest);
  all_.spine_ = spine_;
  const auto dropped = chunks * per_chunk;
  all_.last_ -= dropped;
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

// Merges the positions of one branch that are inside the slice into `shown`.
void event_slice::merge(const std::vector<std::size_t>& places,
                        std::vector<std::size_t>& shown) const {
  const auto middle = static_cast<std::ptrdiff_t>(shown.size());
  for (auto next = std::ranges::lower_bound(places, first_);
       next != places.end() && *next < last_;
       ++next)
    shown.push_back(*next - first_);
  std::inplace_merge(shown.begin(), shown.begin() + middle, shown.end());
}

std::optional<std::vector<std::size_t>>
event_slice::shown_on(std::string_view branch) const {
  if (!branches_ || branch.empty())
    return std::nullopt;
  std::vector<std::size_t> shown;
  const std::lock_guard guard(branches_->mutex);
  for (;;) {
    if (const auto found = branches_->by_branch.find(branch);
        found != branches_->by_branch.end())
      merge(found->second, shown);
    if (branch.empty())
      break;
    const auto dot = branch.rfind('.');
    branch = branch.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return shown;
}

event_slice event_slice::after(timestamp time) const {
  // Usually the result is a suffix of the slice, which needs no copy.
  std::size_t first = 0;
  while (first < size() && (*this)[first]->timestamp < time)
    ++first;
  auto suffix = recent(size() - first);
  if (std::ranges::all_of(suffix, [time](const event_ptr& said) {
        return said->timestamp >= time;
      }))
    return suffix;
  event_log kept;
  for (std::size_t index = 0; index < suffix.size(); ++index)
    if (suffix[index]->timestamp >= time)
      kept.push_back(suffix[index]);
  return kept.slice();
}

} // namespace troupe
