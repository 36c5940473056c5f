// Reads of a session, and the part of its history that it keeps in memory.
//
// Invariant: all events that an active or waiting run reads are in memory. A
// run starts only when they are there, and `forget_old_events` keeps them. The
// event where a run starts to read is found in memory, or in the store, page by
// page from the newest event back.

#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/durable_session.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/owners/user.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/actors/sessions/list_gather.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::actors {

namespace {

// More loads than come while one letter is confirmed.
constexpr std::size_t loads_kept = 16;

bool is_gone(const result<std::vector<event_ptr>>& read) {
  return !read && read.error().code() == errc::gone;
}

// The search for the start of the run that a message or a claim begins.
history_search search_for(const append& message, const history_extent& reads) {
  return {message.event->content,
          reads,
          message.claims ? message.claims->wish.invocation_id : std::string()};
}

void set_start(history_start& into, const history_search& found) {
  into.since_summary = found.since_summary();
  into.turn = found.turn();
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
  if (waits_for_runs(wanted) || waits_for_events(wanted))
    return;
  if (wanted->refresh && runs_)
    renew_view(*wanted);
  if (wanted->trim)
    trim(*wanted->trim);
  wanted->outcome = answer_to(wanted->options);
  if (wanted->fork && wanted->outcome)
    share_past(wanted->options, *wanted->fork);
  confirm(std::move(wanted),
          owners(true, true),
          {generation(), seen_user_.generation, seen_app_.generation},
          parent().app());
}

result<session> session_actor::answer_to(const get_options& options) {
  if (!options.at)
    return read(options, seen_user_.keys, seen_app_.keys);
  if (*options.at > revision())
    return detail::no_revision(key(), *options.at, revision());
  if (*options.at < trimmed_to_)
    return detail::trimmed_revision(key(), *options.at, trimmed_to_);
  return read_earlier(options);
}

// The newest event identifies the session.
session session_actor::read_earlier(const get_options&) {
  return {key(),
          readonly_state(snapshot()),
          events_.slice().recent(1),
          last_update_time_,
          revision(),
          session_moment::now,
          trimmed_to_};
}

std::uint64_t session_actor::shown_by(const get_options& options) const {
  return std::min<std::uint64_t>(
    options.num_recent_events.value_or(std::numeric_limits<std::size_t>::max()),
    revision() - trimmed_to_);
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
          revision(),
          session_moment::now,
          trimmed_to_};
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
  return history.first_read(wanted.reads, events_.slice().live());
}

bool session_actor::waits_for_events(std::unique_ptr<start_run>& wanted) {
  auto search = search_for(*wanted->message, wanted->reads);
  look_in_memory(search);
  set_start(wanted->history, search);
  return false;
}

void session_actor::look_in_memory(history_search& search) const {
  for (auto number = revision();
       number > events_.before() && search.needs_more();
       --number)
    search.take(number, *events_.at(number));
  if (events_.before() <= trimmed_to_ && search.needs_more())
    search.finish(trimmed_to_ + 1);
}

// The calls that the message answers may have been appended, or made again,
// after the run started. So the search is repeated when the message is decided.
result<void> session_actor::find_answered(append& message) {
  message.answered_from = UINT64_MAX;
  if (!runs_ || (!message.claims && !has_responses(message.event->content)))
    return {};
  auto* const run = runs_->find(message.reply_to.id());
  if (run == nullptr)
    return {};
  auto search = search_for(message, history_extent::none());
  look_in_memory(search);
  if (search.needs_more())
    return error(
      errc::conflict,
      fmt::format(
        "the events that this {} were made again in session {}; send it again",
        message.claims ? "recovery goes on from" : "message answers",
        to_string(key())));
  if (search.answered()) {
    message.answered_from = *search.answered();
    run->first_read = std::min(run->first_read, message.answered_from);
  }
  return {};
}

// -- over a store: older events -----------------------------------------------

bool durable_session::waits_for_events(std::unique_ptr<get>& wanted) {
  if (wanted->options.at || reach(revision() - shown_by(wanted->options) + 1))
    return false;
  waiting_.push_back(std::move(wanted));
  return true;
}

// A run waits behind earlier ones: runs start in the order of their calls.
bool durable_session::waits_for_events(std::unique_ptr<start_run>& wanted) {
  if (!has_waiting_starts() && has_history_for(*wanted))
    return false;
  waiting_.push_back(std::move(wanted));
  return true;
}

bool durable_session::has_waiting_starts() const noexcept {
  return waiting_.any_of(&is_one_of<start_run>);
}

bool durable_session::has_run() const noexcept {
  return session_actor::has_run() || has_waiting_starts();
}

bool durable_session::has_history_for(start_run& wanted) {
  // With the whole history in memory, no search in the store is needed.
  if (wanted.reads.is_whole && !reach(trimmed_to_ + 1))
    return false;
  return find_history_of(wanted) && reach(first_read(wanted));
}

bool durable_session::find_history_of(start_run& wanted) {
  if (wanted.searched == cuts_)
    return true;
  auto search = search_for(*wanted.message, wanted.reads);
  look_in_memory(search);
  if (!search.needs_more()) {
    set_start(wanted.history, search);
    wanted.searched = cuts_;
    return true;
  }
  if (!fetching_) {
    auto further = std::make_unique<read_events>();
    further->search = std::move(search);
    further->keeps_passed = wanted.message->claims != nullptr;
    further->control = wanted.control;
    fetch(std::move(further));
  }
  return false;
}

bool durable_session::reach(std::uint64_t first) {
  first = std::max(first, trimmed_to_ + 1);
  if (first > events_.before())
    return true;
  if (!fetching_) {
    auto wanted = std::make_unique<read_events>();
    wanted->first = first;
    fetch(std::move(wanted));
  }
  return false;
}

// Reads the events before those in memory, or searches them.
void durable_session::fetch(std::unique_ptr<read_events> wanted) {
  fetching_ = true;
  wanted->cuts = cuts_;
  wanted->owner = live();
  wanted->last = events_.before();
  wanted->asked = wanted->last;
  wanted->oldest = trimmed_to_ + 1;
  shared().store->push(std::move(wanted));
}

// Returns true if the session may have changed elsewhere, or is being removed.
// A failed read proves nothing then; its letters wait for the next load.
bool durable_session::is_changing() const noexcept {
  return is_waiting() || removing_;
}

void durable_session::receive_search(std::unique_ptr<read_events> answered) {
  auto waiting = std::exchange(waiting_, letter_list());
  const auto& found = *answered->search;
  // A load in between may have brought another session: search again.
  if (answered->cuts != cuts_)
    return resume_waiting(std::move(waiting));
  if (found.needs_more() && !answered->control->has_left) {
    if (is_gone(answered->events))
      load_from_store();
    if (is_changing()) {
      waiting_ = std::move(waiting);
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
      keep_passed(*answered, first_read(*start));
    }
    rest.push_back(std::move(next));
  }
  resume_waiting(std::move(rest));
}

// Adds the events that a search has read, from number `first` on, to those in
// memory, so that they are not read again.
void durable_session::keep_passed(read_events& answered, std::uint64_t first) {
  auto& passed = answered.passed;
  const auto before = events_.before();
  if (answered.asked != before || first > before)
    return;
  passed.resize(std::min<std::size_t>(passed.size(), before - first + 1));
  std::ranges::reverse(passed);
  events_.add_older(std::exchange(passed, {}));
}

void durable_session::receive(std::unique_ptr<read_events> answered) {
  fetching_ = false;
  if (answered->search)
    return receive_search(std::move(answered));
  auto waiting = std::exchange(waiting_, letter_list());
  auto& events = answered->events;
  // A load in between may have brought another session: ask again.
  const bool fits
    = answered->cuts == cuts_ && answered->last == events_.before();
  if (events && fits && events->size() != answered->last - answered->first + 1)
    events = error(errc::corrupt,
                   fmt::format("session {} has {} of its events {} to {}",
                               to_string(key()),
                               events->size(),
                               answered->first,
                               answered->last));
  if (!events && answered->cuts == cuts_) {
    if (is_gone(events))
      load_from_store();
    if (is_changing()) {
      waiting_ = std::move(waiting);
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

// The newest event is always in memory: rewinds are compared with it.
std::size_t durable_session::events_kept() const noexcept {
  return std::max<std::size_t>(shared().options.events_kept, 1);
}

std::uint64_t durable_session::oldest_to_load() const {
  if (!runs_)
    return UINT64_MAX;
  const auto read = runs_->oldest_read(revision(), events_.slice().live());
  // A later event may claim an active run.
  return runs_->has_active() ? std::min(read, acknowledged_ + 1) : read;
}

void durable_session::forget_old_events() {
  if (fetching_ || !waiting_.empty())
    return;
  auto oldest = std::min(oldest_to_load(), revision() + 1);
  // Readers get events once they are durable.
  if (followers_ && !followers_->empty())
    oldest = std::min(oldest, std::max<std::uint64_t>(acknowledged_, 1));
  events_.keep_newest(
    std::max<std::size_t>(events_kept(), revision() + 1 - oldest));
}

// -- over a store: readers that follow the session ----------------------------

// The first reader of a session that was created since the last load makes the
// session load again, to learn its number among those of the same key.
bool durable_session::waits_for_store(std::unique_ptr<follow>& wanted) {
  if (created_ && !knows_incarnation_) {
    load_again();
    owner_actor::deliver(std::move(wanted));
    return true;
  }
  if (wanted->read) {
    take_read(std::move(wanted));
    return true;
  }
  if (!created_ || has_in_memory(*wanted))
    return false;
  read_for(std::move(wanted));
  return true;
}

// A letter whose answer was stale comes again, after other letters of its
// sender. So the follower starts at the end that the first load after the
// letter found. If an append was acknowledged behind the first end before that
// load, the first end was right and stays.
std::uint64_t durable_session::end_for(follow& wanted) {
  keeps_loads_ = true;
  if (!wanted.end)
    wanted.end.emplace(follow::first_end{acknowledged_, loads_});
  auto& end = *wanted.end;
  const auto next
    = std::ranges::upper_bound(past_loads_, end.loads, {}, &past_load::number);
  if (!end.is_sure && next != past_loads_.end()) {
    end.is_sure = true;
    if (next->before <= end.number)
      end.number = next->found;
  }
  return std::min(end.number, acknowledged_);
}

// Returns true if the events after the place are in memory, and the event at
// the place, if it has to be compared.
bool durable_session::has_in_memory(const follow& wanted) const noexcept {
  if (!wanted.place || wanted.place->number >= acknowledged_)
    return true;
  const auto& place = *wanted.place;
  if (place.number < trimmed_to_)
    return true; // The answer is an error.
  return place.number >= events_.before()
         && (!place.last || events_.has(place.number));
}

// The read starts with the event at the place, which is compared.
void durable_session::read_for(std::unique_ptr<follow> wanted) {
  const auto& place = *wanted->place;
  wanted->first = std::max(place.number, trimmed_to_ + 1);
  wanted->last
    = std::min<std::uint64_t>(acknowledged_, place.number + follow::events_max);
  wanted->cuts = cuts_;
  const auto first = wanted->first;
  const auto last = wanted->last;
  shared().store->load_events(
    key(),
    first,
    last,
    [asks = ref<inbox_actor>(*this),
     held = std::make_shared<std::unique_ptr<follow>>(std::move(wanted))](
      result<std::vector<event_ptr>> events) {
      (*held)->read = std::move(events);
      asks->tell(std::move(*held));
    });
}

// A read that failed, or that another process may have disturbed, is confirmed
// as a failure. If the session is stale, the letter comes again.
void durable_session::take_read(std::unique_ptr<follow> answered) {
  auto& place = *answered->place;
  auto read = *std::exchange(answered->read, std::nullopt);
  if (!created_
      || (place.incarnation != 0 && place.incarnation != incarnation_))
    return end_follow(std::move(answered), misplacement::removed);
  if (answered->cuts != cuts_)
    return owner_actor::deliver(std::move(answered));
  // Trimmed by another process: the session loads again and sees whether it
  // still has the place.
  if (is_gone(read)) {
    load_from_store();
    return owner_actor::deliver(std::move(answered));
  }
  if (!read)
    return answer_follow(std::move(answered), read.error());
  const bool is_complete = read->size() == answered->last - answered->first + 1;
  if (!is_complete && is_changing())
    return waiting_.push_back(std::move(answered));
  if (!is_complete) {
    error why(errc::corrupt,
              fmt::format("session {} has {} of its events {} to {}",
                          to_string(key()),
                          read->size(),
                          answered->first,
                          answered->last));
    return answer_follow(std::move(answered), std::move(why));
  }
  const bool has_place = answered->first == place.number;
  if (has_place && place.last && read->front()->id != place.last->id)
    return end_follow(std::move(answered), misplacement::lost);
  event_log log(answered->first - 1);
  for (auto& each : *read)
    log.push_back(std::move(each));
  auto events = log.slice().part(has_place ? 1 : 0, log.size());
  auto last = events.back();
  const auto number = answered->last;
  answer_follow(
    std::move(answered),
    followed{std::move(events), {number, std::move(last), incarnation_}});
}

// -- over a store: loading ----------------------------------------------------

// A session that has its newest event loads the later ones, if there are not
// too many. The newest event is loaded again: it shows that the session is the
// same.
// Asks for all after the store has lost commits: then it may have other events
// before the newest one.
load_options durable_session::what_to_load() const {
  load_options wanted{.events_max = std::max<std::size_t>(
                        events_kept(), runs_ ? runs_->newest_max() : 0),
                      .ids_max = shared().options.remembered_ids};
  const bool knows_its_log = created_ && knows_incarnation_ && incarnation_ != 0
                             && seen_losses_ == shared().store->losses()
                             && revision() == acknowledged_
                             && events_.has(revision());
  // Number 0 asks for all.
  if (knows_its_log && !loads_all_ && revision() > 1) {
    wanted.after = revision() - 1;
    wanted.ids_max = 0; // The events have them.
  }
  return wanted;
}

// Returns true if the loaded events begin with the newest one in memory.
bool durable_session::is_continued_by(const stored_session& found) const {
  return found.incarnation == incarnation_
         && seen_losses_ == shared().store->losses()
         && found.first_revision == trimmed_to_
         && found.scope.revision >= revision() && !found.events.empty()
         && found.events.size() == found.scope.revision - revision() + 1
         && found.events.front()->id == events_.at(revision())->id;
}

void durable_session::add_loaded(std::vector<event_ptr> newest) {
  const auto known = revision();
  for (std::size_t index = 1; index < newest.size(); ++index) {
    const auto number = known + index;
    ids_.add(newest[index]->id, number, ids_kept());
    if (older_ids_)
      older_ids_->note(newest[index]->id, number);
    events_.push_back(std::move(newest[index]));
  }
}

void durable_session::install(load& loaded) {
  if (loaded.goes_back)
    return go_back();
  forget_savepoint();
  auto& found = *loaded.session;
  const bool continues_log = loaded.options.after > 0 && found;
  if (continues_log && !is_continued_by(*found)) {
    loads_all_ = true;
    return load_again();
  }
  loads_all_ = false;
  seen_losses_ = shared().store->losses();
  const auto before = revision();
  const auto last = events_.has(before) ? events_.at(before) : event_ptr();
  const bool existed = std::exchange(created_, found.has_value());
  state_ = scope_state(found ? std::move(found->scope.keys) : state_map());
  last_update_time_ = found ? found->last_update_time : timestamp();
  if (continues_log)
    add_loaded(std::move(found->events));
  else
    events_ = found
                ? event_window(found->scope.revision, std::move(found->events))
                : event_window();
  trimmed_to_ = found ? found->first_revision : 0;
  if (runs_)
    note_claims();
  note_load(std::exchange(acknowledged_, revision()));
  incarnation_ = found ? found->incarnation : 0;
  knows_incarnation_ = found.has_value();
  if (!continues_log)
    install_ids(found ? found->id_hashes : std::vector<std::uint32_t>());
  if (runs_)
    runs_->reload(revision(), events_.slice().live());
  if (created_ && !existed)
    appear();
  if (!created_ && existed) {
    shared().directory->remove(*this);
    cancel_runs(deleted_session(key()));
  }
  if (existed && !continues(before, last))
    search_again();
  if (continues_log)
    forget_old_events();
  resume_after_load();
}

void durable_session::resume_after_load() {
  if (!fetching_)
    resume_waiting(std::exchange(waiting_, letter_list()));
  if (followers_)
    resume_waiting(followers_->take());
  // Before the parked letters, which came later.
  if (!is_waiting())
    requeue();
}

// Another process may have recovered runs of this one.
void durable_session::note_claims() {
  runs_->note_claims(events_.slice());
  // A claim may be among events that were trimmed before they were seen. A run
  // whose message is not decided has not begun, and was claimed by none.
  const bool is_unsure = trimmed_to_ > acknowledged_;
  for (const auto& each : runs_->active())
    if (each.is_taken_over)
      each.invocation->tell(std::make_unique<cancel>(taken_over(each)));
    else if (is_unsure && each.message != UINT64_MAX)
      each.invocation->tell(std::make_unique<cancel>(
        error(errc::cancelled,
              fmt::format("session {} was trimmed by another process, which "
                          "may have recovered the run",
                          to_string(key())))));
}

void durable_session::note_load(std::uint64_t before) {
  ++loads_;
  if (!keeps_loads_)
    return;
  if (past_loads_.size() == loads_kept)
    past_loads_.erase(past_loads_.begin());
  past_loads_.push_back({loads_, acknowledged_, before});
}

// Returns true if the loaded session is the one whose event number `before` was
// `newest`, with or without more events. If not, it was removed and created
// again, or has lost events.
bool durable_session::continues(std::uint64_t before,
                                const event_ptr& newest) const {
  if (!created_ || revision() < before)
    return false;
  return before == 0
         || (newest && events_.has(before)
             && events_.at(before)->id == newest->id);
}

// Handles letters with the newest versions of user and app. They pass
// `deliver`, since the session may have become stale meanwhile.
void durable_session::resume_waiting(letter_list waiting) {
  while (!waiting.empty()) {
    auto next = waiting.pop_front();
    renew(*next);
    owner_actor::deliver(std::move(next));
  }
}

// -- over a store: savepoints -------------------------------------------------

// If a commit loses only because its user or app has changed, the memory of the
// session has events that the store does not have. The stored state of the
// session is then known: it is the one before the first of these commits. The
// session keeps a copy of it (`savepoint`), and goes back to that copy in place
// of a load.
//
// Invariant: the queue decides whether a session may go back. It knows if
// another process has changed the session, or the outcome of a commit is not
// certain.

// Without other processes no commit loses, so none needs a savepoint. Runs read
// events by their numbers, and a session that is being created has no
// stored state.
std::unique_ptr<savepoint> durable_session::make_savepoint() const {
  if (!created_ || runs_ || !shared().store->has_rivals())
    return nullptr;
  auto newest = events_.has(revision()) ? events_.at(revision()) : event_ptr();
  if (!newest && revision() > 0)
    return nullptr;
  return std::make_unique<savepoint>(
    savepoint{state_.keys(), last_update_time_, revision(), std::move(newest)});
}

// The first commit that is decided again has the oldest memory. All later
// commits of the session are decided again, too.
void durable_session::note_undone(struct commit& answered) {
  if (!std::exchange(has_undone_, true))
    savepoint_ = std::move(answered.before);
}

bool durable_session::can_go_back() const {
  return savepoint_ && created_ && !runs_
         && savepoint_->revision == acknowledged_
         && seen_losses_ == shared().store->losses();
}

void durable_session::forget_savepoint() noexcept {
  has_undone_ = false;
  savepoint_.reset();
}

// Loads again, also if commits under way lose: the store has fewer events than
// the session believes.
void durable_session::load_from_store() noexcept {
  has_undone_ = true;
  savepoint_.reset();
  load_again();
}

// The events of the window are copied: readers may hold the undone ones. Ids of
// undone events may stay in `ids_`: a search that finds one compares the
// event itself.
void durable_session::go_back() {
  auto before = std::move(savepoint_);
  forget_savepoint();
  if (revision() != before->revision) {
    std::vector<event_ptr> kept;
    const auto oldest
      = before->revision > events_kept() ? before->revision - events_kept() : 0;
    for (auto number = std::max(oldest, events_.before()) + 1;
         number <= before->revision;
         ++number)
      kept.push_back(events_.at(number));
    if (kept.empty() && before->revision > trimmed_to_)
      kept.push_back(std::move(before->newest));
    events_ = event_window(before->revision, std::move(kept));
    search_again();
  }
  state_ = scope_state(std::move(before->keys));
  last_update_time_ = before->last_update_time;
  if (older_ids_)
    older_ids_->restart();
  resume_after_load();
}

} // namespace troupe::actors
