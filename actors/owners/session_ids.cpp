// Finds the earlier event that an append repeats.
//
// Invariant: an event id takes effect once as long as its session exists. The
// Invariant: an event id takes effect once as long as its session exists. The
// newest ids are in memory. Over a store, older ids are looked up there, for
// all waiting appends in one query. A filter of all ids avoids most of these
// queries. While a query is under way, the append and all after it wait.

#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/owners/store_queue.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

// Limit of ids in one query to the store.
constexpr std::size_t ids_max = 4'096;

// After this many queries it is cheaper to read all ids into a filter; one more
// query is allowed for each 1,024 events of the session.
constexpr std::uint64_t questions_before_filter = 8;
constexpr std::uint64_t events_per_question = 1'024;

// Without a store the ids of all events are kept. Half of the range, so that
// additions do not overflow.
constexpr std::size_t all_ids = SIZE_MAX / 2;

} // namespace

std::size_t session_actor::ids_kept() const noexcept {
  return stored_ ? shared().options.remembered_ids : all_ids;
}

bool session_actor::join_earlier(std::unique_ptr<append>& retry) {
  if (is_one_of<create>(*retry))
    return false;
  const auto place = find_id(*retry);
  const auto logged = revision();
  if (place.number > logged) {
    batch_.join(std::move(retry), place.number - logged - 1);
    return true;
  }
  if (place.number != 0) {
    batch_.join(std::move(retry), events_.at(place.number));
    return true;
  }
  if (!place.may_be_stored)
    return false;
  const auto& found = stored_->ids.found;
  if (const auto answered = found.find(retry->event->id);
      answered != found.end()) {
    if (!answered->second)
      return false;
    batch_.join(std::move(retry), answered->second);
    return true;
  }
  ask_for_ids(*retry);
  return false;
}

session_actor::id_place session_actor::find_id(const append& sent) {
  const auto& id = sent.event->id;
  const auto logged = revision();
  const auto newest = logged + batch_.size();
  std::uint64_t unread = 0; // Event of this hash that is not in memory.
  id_place place;
  place.number = ids_.find(
    id, newest, ids_kept(), [&](std::uint64_t candidate) {
      if (candidate <= events_.before()) {
        unread = std::max(unread, candidate);
        return false;
      }
      if (candidate <= logged)
        return events_.at(candidate)->id == id;
      const auto index = candidate - logged - 1;
      return index < batch_.size() && batch_.accepted()[index]->event->id == id;
    });
  if (place.number != 0 || !stored_ || sent.makes_id)
    return place;
  const auto forgotten = newest > ids_kept() ? newest - ids_kept() : 0;
  const auto& search = stored_->ids;
  const bool may_be_forgotten
    = forgotten > 0
      && !(search.filter && search.filtered >= forgotten
           && !search.filter->may_have(id_hash(id)));
  place.may_be_stored = unread > 0 || may_be_forgotten;
  // An event of this id may have been appended after the store was asked.
  if (place.may_be_stored && search.covered < std::max(unread, forgotten))
    stored_->ids.found.erase(id);
  return place;
}

// Adds the id of event `number`, and keeps those of the `kept` newest events.
void session_actor::note_id(const append& accepted,
                            std::uint64_t number,
                            std::size_t kept) {
  ids_.add(accepted.event->id, number, kept);
  if (!stored_)
    return;
  auto& search = stored_->ids;
  if (search.filter) {
    search.filter->add(id_hash(accepted.event->id));
    search.filtered = number;
    if (search.filter->is_full())
      search.filter.reset(); // Later queries make a larger one.
  } else if (search.making_filter) {
    search.since.push_back(id_hash(accepted.event->id));
  }
}

// The loaded session may be another one, or may lack events that the filter
// contains. So filter and answers are dropped at each load.
void session_actor::install_ids(const std::vector<std::uint32_t>& newest) {
  ids_ = recent_ids();
  auto& search = stored_->ids;
  ++search.loads;
  search.found.clear();
  search.covered = 0;
  search.filter.reset();
  search.since.clear();
  search.questions = 0;
  auto number = revision() - newest.size();
  for (const auto hash : newest)
    ids_.add(hash, ++number, ids_kept());
}

// Asks the store about the id of `first`, and those of all waiting appends that
// it has to be asked about.
void session_actor::ask_for_ids(const append& first) {
  auto& search = stored_->ids;
  auto wanted = std::make_unique<find_events>();
  wanted->owner = live();
  wanted->load = search.loads;
  wanted->revision = revision();
  wanted->ids.push_back(first.event->id);
  letter_list seen;
  while (!queue_.empty()) {
    auto next = queue_.pop_front();
    if (const auto* const sent = as<append>(*next);
        sent != nullptr && wanted->ids.size() < ids_max
        && find_id(*sent).may_be_stored)
      wanted->ids.push_back(sent->event->id);
    seen.push_back(std::move(next));
  }
  queue_ = std::move(seen);
  stored_->comparing = true;
  shared().store->push(std::move(wanted));
  const auto due = questions_before_filter + revision() / events_per_question;
  if (++search.questions < due || search.making_filter || search.filter)
    return;
  search.questions = 0;
  search.making_filter = true;
  // The batch under way reaches the store after this query, so its ids are
  // added to the answer.
  for (const auto* each : batch_.accepted())
    search.since.push_back(id_hash(each->event->id));
  auto filtering = std::make_unique<find_events>();
  filtering->owner = live();
  filtering->load = search.loads;
  filtering->revision = revision();
  filtering->wants_filter = true;
  shared().store->push(std::move(filtering));
}

// Frees the events that the store has found, which may be large, when no append
// waits for them. The check for an empty map matters: every batch of letters
// passes here, and clearing an empty map still wipes its buckets.
void session_actor::forget_found() {
  if (!stored_->ids.found.empty() && queue_.empty() && !stored_->comparing)
    stored_->ids.found = {};
}

void session_actor::receive(std::unique_ptr<find_events> answered) {
  auto& search = stored_->ids;
  const bool is_of_now = answered->load == search.loads;
  if (answered->wants_filter) {
    search.making_filter = false;
    const auto since = std::exchange(search.since, {});
    if (!is_of_now || !answered->filter)
      return;
    search.filter = std::move(answered->filter);
    for (const auto hash : since)
      search.filter->add(hash);
    search.filtered = revision() + batch_.size();
    return;
  }
  stored_->comparing = false;
  if (!is_of_now)
    return; // The appends ask again.
  search.found.clear();
  if (answered->events) {
    search.covered = answered->revision;
    for (std::size_t index = 0; index < answered->ids.size(); ++index)
      search.found.emplace(std::move(answered->ids[index]),
                           std::move((*answered->events)[index]));
    return;
  }
  // The store did not answer, so it is unknown whether these events exist: they
  // fail.
  letter_list others;
  while (!queue_.empty()) {
    auto next = queue_.pop_front();
    const auto* const sent = as<append>(*next);
    const bool is_asked = sent != nullptr
                          && std::ranges::find(answered->ids, sent->event->id)
                               != answered->ids.end();
    if (is_asked)
      next->fail(answered->events.error());
    else
      others.push_back(std::move(next));
  }
  queue_ = std::move(others);
}

} // namespace troupe::actors
