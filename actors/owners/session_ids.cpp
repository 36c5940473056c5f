// Finds the earlier event that an append repeats.
//
// Invariant: an event id takes effect once as long as its session exists. The
// newest ids are in memory. Over a store, older ids are looked up there, for
// all waiting appends in one query. A filter of all ids avoids most of these
// queries. While a query is under way, the append and all after it wait.

#include "troupe/actors/owners/durable_session.hpp"
#include "troupe/actors/owners/store_queue.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

// Limit of ids in one query to the store.
constexpr std::size_t ids_max = 4'096;

} // namespace

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
  const auto* const answered
    = older_ids_ ? older_ids_->find(retry->event->id) : nullptr;
  if (answered == nullptr)
    ask_for_ids(*retry);
  if (answered == nullptr || !*answered)
    return false;
  batch_.join(std::move(retry), *answered);
  return true;
}

session_actor::id_place session_actor::find_id(const append& sent) {
  if (unread_ids_ > 0 && !sent.makes_id)
    read_past_ids();
  const auto& id = sent.event->id;
  const auto logged = revision();
  const auto newest = logged + batch_.size();
  std::uint64_t unread = 0; // Event of this hash that is not in memory.
  id_place place;
  place.number = ids_.find(
    id, newest, ids_kept(), [&](std::uint64_t candidate) {
      if (candidate <= trimmed_to_)
        return false; // That event is gone.
      if (candidate <= events_.before()) {
        unread = std::max(unread, candidate);
        return false;
      }
      if (candidate <= logged)
        return events_.at(candidate)->id == id;
      const auto index = candidate - logged - 1;
      return index < batch_.size() && batch_.accepted()[index]->event->id == id;
    });
  if (place.number != 0 || sent.makes_id)
    return place;
  const auto forgotten = newest > ids_kept() ? newest - ids_kept() : 0;
  const bool may_be_forgotten
    = forgotten > trimmed_to_
      && !(older_ids_ && older_ids_->excludes(id, forgotten));
  place.may_be_stored = unread > 0 || may_be_forgotten;
  // An event of this id may have been appended after the store was asked.
  if (place.may_be_stored && older_ids_)
    older_ids_->expire(id, std::max(unread, forgotten));
  return place;
}

void session_actor::read_past_ids() {
  const auto newest = revision();
  const auto last = std::exchange(unread_ids_, 0);
  const auto oldest = newest > ids_kept() ? newest - ids_kept() + 1 : 1;
  for (auto number = std::max(oldest, trimmed_to_ + 1); number <= last;
       ++number)
    ids_.add(events_.at(number)->id, number, ids_kept());
}

// Adds the id of event `number`, and keeps those of the `kept` newest events.
void session_actor::note_id(const append& accepted,
                            std::uint64_t number,
                            std::size_t kept) {
  ids_.add(accepted.event->id, number, kept);
  if (older_ids_)
    older_ids_->note(accepted.event->id, number);
}

// -- over a store -------------------------------------------------------------

// The loaded session may be another one, or may lack events.
void durable_session::install_ids(const std::vector<std::uint32_t>& newest) {
  ids_ = recent_ids();
  if (older_ids_)
    older_ids_->restart();
  auto number = revision() - newest.size();
  for (const auto hash : newest)
    ids_.add(hash, ++number, ids_kept());
}

std::unique_ptr<find_events> durable_session::make_query() const {
  auto wanted = std::make_unique<find_events>();
  wanted->owner = live();
  wanted->load = older_ids_->loads();
  wanted->revision = revision();
  return wanted;
}

// Asks the store about the id of `first`, and those of all waiting appends that
// it has to be asked about.
void durable_session::ask_for_ids(const append& first) {
  if (!older_ids_)
    older_ids_ = std::make_unique<id_search>();
  auto wanted = make_query();
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
  comparing_ = true;
  shared().store->push(std::move(wanted));
  if (!older_ids_->count_query(revision(), batch_.accepted()))
    return;
  auto filtering = make_query();
  filtering->wants_filter = true;
  shared().store->push(std::move(filtering));
}

void durable_session::forget_found() {
  if (older_ids_ && queue_.empty() && !comparing_)
    older_ids_->forget_found();
}

void durable_session::receive(std::unique_ptr<find_events> answered) {
  if (answered->wants_filter)
    return older_ids_->take_filter(*answered, revision() + batch_.size());
  comparing_ = false;
  if (answered->load != older_ids_->loads())
    return; // The appends ask again.
  if (!older_ids_->take(*answered))
    refuse_asked(*answered);
}

// The store did not answer, so it is unknown whether these events exist: they
// fail.
void durable_session::refuse_asked(const find_events& failed) {
  letter_list others;
  while (!queue_.empty()) {
    auto next = queue_.pop_front();
    const auto* const sent = as<append>(*next);
    const bool is_asked
      = sent != nullptr
        && std::ranges::find(failed.ids, sent->event->id) != failed.ids.end();
    if (is_asked)
      next->fail(failed.events.error());
    else
      others.push_back(std::move(next));
  }
  queue_ = std::move(others);
}

} // namespace troupe::actors
