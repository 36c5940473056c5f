#include "troupe/agents/turns/summed_ranges.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {

namespace {

// Number of the newest event among the first `count` that `is_wanted` accepts;
// 0 if there is none.
template <class Predicate>
std::uint64_t newest_number(const event_slice& events,
                            std::size_t count,
                            const Predicate& is_wanted) {
  for (auto index = count; index > 0; --index)
    if (is_wanted(*events[index - 1]))
      return events.number(index - 1);
  return 0;
}

std::uint64_t
last_of(const summary& made, const event_slice& events, std::size_t index) {
  const auto number = events.number(index);
  if (made.end_revision)
    return std::min(*made.end_revision, number - 1);
  if (!made.end_time)
    return number - 1;
  const auto found = newest_number(events, index, [&](const event& said) {
    return said.timestamp <= *made.end_time;
  });
  return found > 0 ? found : events.first_number() - 1;
}

std::uint64_t
first_of(const summary& made, const event_slice& events, std::uint64_t last) {
  if (made.start_revision)
    return std::max<std::uint64_t>(*made.start_revision, 1);
  if (!made.start_time)
    return 1;
  const auto covered = events.before(last + 1);
  return newest_number(
           covered,
           covered.size(),
           [&](const event& said) { return said.timestamp < *made.start_time; })
         + 1;
}

std::optional<summed_range> range_at(const event_slice& events,
                                     std::size_t index) {
  auto made = summary_of(*events[index]);
  if (!made)
    return std::nullopt;
  summed_range range;
  range.number = events.number(index);
  range.last = last_of(*made, events, index);
  range.first = first_of(*made, events, range.last);
  range.made = std::move(*made);
  if (range.first > range.last)
    return std::nullopt;
  return range;
}

} // namespace

std::vector<summed_range> summed_ranges(const event_slice& events,
                                        std::uint64_t oldest) {
  std::vector<summed_range> counted;
  auto behind = std::uint64_t{UINT64_MAX};
  for (auto index = events.size(); index > 0 && behind > 1; --index) {
    auto range = range_at(events, index - 1);
    if (!range || range->first >= behind
        || std::max(range->last + 1, oldest) < events.first_number())
      continue;
    range->last = std::min(range->last, behind - 1);
    behind = range->first;
    counted.push_back(std::move(*range));
  }
  std::ranges::reverse(counted);
  return counted;
}

} // namespace troupe
