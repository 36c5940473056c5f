// The part of its history that a session keeps in memory for its runs.
//
// Invariant: all events that an active or waiting run reads are in memory. A
// run starts only when they are there, and `forget_old_events` keeps them. The
// event where a run starts to read is found in memory, or in the store, page by
// page from the newest event back.

#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/run_control.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

void set_start(history_start& into, const history_search& found) {
  into.since_summary = found.since_summary();
  into.answered = found.answered().value_or(UINT64_MAX);
}

} // namespace

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
  const auto cuts = stored_ ? stored_->cuts : 0;
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

bool session_actor::has_waiting_starts() const noexcept {
  return stored_ && stored_->waiting.any_of(&is_one_of<start_run>);
}

// The loaded session may be another one, or has fewer events. Waiting runs
// search again where they start to read.
void session_actor::search_again() {
  ++stored_->cuts;
  if (!runs_ || !created_)
    return;
  auto waiting = runs_->take_waiting();
  while (!stored_->waiting.empty())
    waiting.push_back(stored_->waiting.pop_front());
  stored_->waiting = std::move(waiting);
}

void session_actor::refuse_waiting_start(caf::actor_id run) {
  const auto why = cancelled_before_start();
  if (runs_)
    runs_->refuse(run, why);
  if (stored_)
    refuse_start(stored_->waiting, run, why, [](const start_run&) {});
}

} // namespace troupe::actors
