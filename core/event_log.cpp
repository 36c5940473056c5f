#include "troupe/core/event_log.hpp"

#include <algorithm>

namespace troupe {

void event_log::push_back(event_ptr said) {
  constexpr auto per_chunk = detail::event_chunk::capacity;
  const auto index = all_.last_;
  const auto chunk = index / per_chunk;
  if (index % per_chunk == 0) {
    if (!spine_ || chunk == spine_->chunks.size()) {
      // Readers keep the old spine; the chunks are shared.
      boost::intrusive_ptr<detail::event_spine> grown(
        new detail::event_spine(chunk == 0 ? 1 : chunk * 2));
      if (spine_)
        std::ranges::copy(spine_->chunks, grown->chunks.begin());
      spine_ = std::move(grown);
      all_.spine_ = spine_;
    }
    spine_->chunks[chunk] = new detail::event_chunk;
  }
  spine_->chunks[chunk]->events[index % per_chunk] = std::move(said);
  ++all_.last_;
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
  all_.last_ -= chunks * per_chunk;
  return chunks * per_chunk;
}

event_slice event_slice::after(timestamp time) const {
  // Usually a suffix, which needs no copy.
  std::size_t first = 0;
  while (first < size() && (*this)[first]->timestamp < time)
    ++first;
  auto suffix = recent(size() - first);
  if (std::ranges::all_of(
        suffix, [time](const event& said) { return said.timestamp >= time; }))
    return suffix;
  event_log kept;
  for (std::size_t index = 0; index < suffix.size(); ++index)
    if (suffix[index]->timestamp >= time)
      kept.push_back(suffix[index]);
  return kept.slice();
}

} // namespace troupe
