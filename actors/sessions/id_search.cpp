#include "troupe/actors/sessions/id_search.hpp"

#include <utility>

namespace troupe::actors {

namespace {

// After this many queries it is cheaper to read all ids into a filter; one more
// query is allowed for each 1,024 events of the session.
constexpr std::uint64_t queries_before_filter = 8;
constexpr std::uint64_t events_per_query = 1'024;

} // namespace

void id_search::note(std::string_view id, std::uint64_t number) {
  if (filter_) {
    filter_->add(id_hash(id));
    filtered_ = number;
    if (filter_->is_full())
      filter_.reset(); // Later queries make a larger one.
  } else if (making_filter_) {
    since_.push_back(id_hash(id));
  }
}

bool id_search::excludes(std::string_view id, std::uint64_t number) const {
  return filter_ && filtered_ >= number && !filter_->may_have(id_hash(id));
}

void id_search::expire(const std::string& id, std::uint64_t number) {
  if (covered_ < number)
    found_.erase(id);
}

const event_ptr* id_search::find(const std::string& id) const {
  const auto answered = found_.find(id);
  return answered != found_.end() ? &answered->second : nullptr;
}

bool id_search::count_query(std::uint64_t revision,
                            const std::vector<append*>& under_way) {
  const auto due = queries_before_filter + revision / events_per_query;
  if (++queries_ < due || making_filter_ || filter_)
    return false;
  queries_ = 0;
  making_filter_ = true;
  // The batch under way reaches the store after this query, so its ids are
  // added to the answer.
  for (const auto* each : under_way)
    since_.push_back(id_hash(each->event->id));
  return true;
}

void id_search::take_filter(find_events& answered, std::uint64_t newest) {
  making_filter_ = false;
  const auto since = std::exchange(since_, {});
  if (answered.load != loads_ || !answered.filter)
    return;
  filter_ = std::move(answered.filter);
  for (const auto hash : since)
    filter_->add(hash);
  filtered_ = newest;
}

bool id_search::take(find_events& answered) {
  found_.clear();
  if (!answered.events)
    return false;
  covered_ = answered.revision;
  for (std::size_t index = 0; index < answered.ids.size(); ++index)
    found_.emplace(std::move(answered.ids[index]),
                   std::move((*answered.events)[index]));
  return true;
}

void id_search::restart() {
  ++loads_;
  found_.clear();
  covered_ = 0;
  filter_.reset();
  since_.clear();
  queries_ = 0;
}

} // namespace troupe::actors
