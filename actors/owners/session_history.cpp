// Reads of a session, and the part of its history that it keeps in memory.
//
// Invariant: all events that an active or waiting run reads are in memory. A
// run starts only when they are there, and `forget_old_events` keeps them. The
// event where a run starts to read is found in memory, or in the store, page by
// page from the newest event back.

#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/owners/user.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/actors/sessions/list_gather.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

void set_start(history_start& into, const history_search& found) {
  into.since_summary = found.since_summary();
  into.answered = found.answered().value_or(UINT64_MAX);
}

} // namespace

// -- reads --------------------------------------------------------------------

void session_actor::receive(std::unique_ptr<get> wanted) {
  if (awaits_creation())
    return early_.push_back(std::move(wanted));
  see(wanted->user, wanted->app);
  if (!created_) {
    wanted->outcome = unknown_session(wanted->key);
    return confirm(
      std::move(wanted), owners(false, false), {generation()}, parent().app());
  }
  const auto count = shown_by(wanted->options);
  if (!reach(revision() - count + 1))
    return stored_->waiting.push_back(std::move(wanted));
  if (wanted->refresh && runs_) {
    wanted->renewed = make_view();
    if (!stored_)
      wanted->renewed.publish();
  }
  wanted->outcome = read(wanted->options, seen_user_.keys, seen_app_.keys);
  confirm(std::move(wanted),
          owners(true, true),
          {generation(), seen_user_.generation, seen_app_.generation},
          parent().app());
}

std::uint64_t session_actor::shown_by(const get_options& options) const {
  return std::min<std::uint64_t>(
    options.num_recent_events.value_or(std::numeric_limits<std::size_t>::max()),
    revision());
}

session session_actor::read(const get_options& options,
                            const state_map& user,
                            const state_map& app) const {
  auto events = events_.slice().recent(shown_by(options));
  if (options.after)
    events = events.after(*options.after);
  return {key(),
          readonly_state({state_.keys(), user, app, {}}),
          std::move(events),
          last_update_time_,
          revision()};
}

// A session is listed once its creation is committed.
void session_actor::receive(std::unique_ptr<list> wanted) {
  if (!created_)
    return;
  wanted->gather->add(session(key(),
                              readonly_state({state_.keys(),
                                              std::move(wanted->user.keys),
                                              std::move(wanted->app.keys),
                                              {}}),
                              {},
                              last_update_time_,
                              revision()));
}

// -- history of runs ----------------------------------------------------------

std::uint64_t session_actor::first_read(const start_run& wanted) const {
  auto history = wanted.history;
  history.message = revision() + 1;
  return history.first_read(wanted.reads);
}

std::uint64_t session_actor::oldest_to_load() const {
  return runs_ ? runs_->oldest_read(revision()) : UINT64_MAX;
}

bool session_actor::has_history_for(start_run& wanted) {
  // With the whole history in memory, no search in the store is needed.
  if (wanted.reads.is_whole && !reach(1))
    return false;
  return find_history_of(wanted) && reach(first_read(wanted));
}

bool session_actor::find_history_of(start_run& wanted) {
  const auto cuts = at_store().cuts;
  if (wanted.searched == cuts)
    return true;
  history_search search(wanted.message->event->content, wanted.reads);
  look_in_memory(search);
  if (!search.needs_more() || events_.before() == 0) {
    set_start(wanted.history, search);
    wanted.searched = cuts;
    return true;
  }
  if (!stored_->fetching) {
    auto further = std::make_unique<read_events>();
    further->search = std::move(search);
    further->control = wanted.control;
    fetch(std::move(further));
  }
  return false;
}

void session_actor::look_in_memory(history_search& search) const {
  for (auto number = revision();
       number > events_.before() && search.needs_more();
       --number)
    search.take(number, *events_.at(number));
}

void session_actor::receive_search(std::unique_ptr<read_events> answered) {
  auto waiting = std::exchange(stored_->waiting, letter_list());
  const auto& found = *answered->search;
  // A load in between may have brought another session: search again.
  if (answered->cuts != stored_->cuts)
    return resume_waiting(std::move(waiting));
  if (found.needs_more() && !answered->control->has_left) {
    if (is_changing()) {
      stored_->waiting = std::move(waiting);
      return;
    }
    const auto why
      = answered->events
          ? error(errc::corrupt,
                  fmt::format("session {} has {} of its events {} to {}",
                              to_string(key()),
                              answered->events->size(),
                              answered->first,
                              answered->last))
          : answered->events.error();
    while (!waiting.empty())
      waiting.pop_front()->fail(why);
    return;
  }
  letter_list rest;
  while (!waiting.empty()) {
    auto next = waiting.pop_front();
    if (auto* const start = as<start_run>(*next);
        start != nullptr && start->control == answered->control) {
      set_start(start->history, found);
      start->searched = answered->cuts;
    }
    rest.push_back(std::move(next));
  }
  resume_waiting(std::move(rest));
}

// The calls that the message answers may have been appended, or made again,
// after the run started. So the search is repeated when the message is decided.
result<void> session_actor::find_answered(append& message) {
  message.answered_from = UINT64_MAX;
  if (!runs_ || !has_responses(message.event->content))
    return {};
  auto* const run = runs_->find(message.reply_to.id());
  if (run == nullptr)
    return {};
  history_search search(message.event->content, history_extent::none());
  look_in_memory(search);
  if (search.needs_more() && events_.before() > 0)
    return error(
      errc::conflict,
      fmt::format(
        "the calls that this message answers were made again in session {}; "
        "send the message again",
        to_string(key())));
  if (search.answered()) {
    message.answered_from = *search.answered();
    run->first_read = std::min(run->first_read, message.answered_from);
  }
  return {};
}

// -- older events -------------------------------------------------------------

bool session_actor::reach(std::uint64_t first) {
  if (first > events_.before())
    return true;
  if (!stored_->fetching) {
    auto wanted = std::make_unique<read_events>();
    wanted->first = first;
    fetch(std::move(wanted));
  }
  return false;
}

// Reads the events before those in memory, or searches them.
void session_actor::fetch(std::unique_ptr<read_events> wanted) {
  stored_->fetching = true;
  wanted->cuts = stored_->cuts;
  wanted->owner = live();
  wanted->last = events_.before();
  shared().store->push(std::move(wanted));
}

// Returns true if the session may have changed elsewhere, or is being removed.
// A failed read proves nothing then; its letters wait for the next load.
bool session_actor::is_changing() const noexcept {
  return is_waiting() || stored_->removing;
}

void session_actor::receive(std::unique_ptr<read_events> answered) {
  stored_->fetching = false;
  if (answered->search)
    return receive_search(std::move(answered));
  auto waiting = std::exchange(stored_->waiting, letter_list());
  auto& events = answered->events;
  // A load in between may have brought another session: ask again.
  const bool fits
    = answered->cuts == stored_->cuts && answered->last == events_.before();
  if (events && fits && events->size() != answered->last - answered->first + 1)
    events = error(errc::corrupt,
                   fmt::format("session {} has {} of its events {} to {}",
                               to_string(key()),
                               events->size(),
                               answered->first,
                               answered->last));
  if (!events && answered->cuts == stored_->cuts) {
    if (is_changing()) {
      stored_->waiting = std::move(waiting);
      return;
    }
    while (!waiting.empty())
      waiting.pop_front()->fail(events.error());
    return;
  }
  if (fits)
    events_.add_older(std::move(*events));
  resume_waiting(std::move(waiting));
}

void session_actor::forget_old_events() {
  if (stored_->fetching || !stored_->waiting.empty())
    return;
  const auto oldest = std::min(oldest_to_load(), revision() + 1);
  events_.keep_newest(std::max<std::size_t>(shared().options.events_kept,
                                            revision() + 1 - oldest));
}

} // namespace troupe::actors
