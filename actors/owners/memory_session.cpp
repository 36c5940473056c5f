#include "troupe/actors/owners/memory_session.hpp"

#include "troupe/actors/owners/user.hpp"
#include "troupe/actors/sessions/forked_past.hpp"

#include <utility>

namespace troupe::actors {

memory_session::memory_session(caf::actor_config& config,
                               std::shared_ptr<setup> shared,
                               user_actor& user,
                               std::shared_ptr<const user_names> names,
                               std::string id,
                               std::unique_ptr<idle_session> idle)
  : session_actor(config,
                  std::move(shared),
                  user,
                  std::move(names),
                  std::move(id),
                  owner_name{""}) {
  if (!idle)
    return;
  created_ = true;
  state_ = scope_state(std::move(idle->keys));
  events_ = std::move(idle->events);
  trimmed_to_ = idle->trimmed_to;
  ids_ = std::move(idle->ids);
  unread_ids_ = idle->unread_ids;
  earlier_ = std::move(idle->earlier);
  last_update_time_ = idle->last_update_time;
  listing_ = std::move(idle->listed);
  followers_ = std::move(idle->followed);
}

void memory_session::commit() {
  install_batch();
  note_states();
  if (created_ && !listing_)
    listing_ = std::make_unique<listing>(names_, id_);
  const auto count = batch_.size();
  batch_.settle();
  // Before the answers: a caller that has its answer finds the change in
  // `list`.
  if (listing_ && count > 0)
    listing_->touch(last_update_time_);
  if (shared().on_commit && count > 0)
    shared().on_commit(count);
  // The view before the answers: a run must see its own event when it
  // continues.
  publish();
  for (auto& answered : batch_.letters())
    reply(std::move(answered));
  batch_.clear();
  answer_followers();
}

// Set when the session is followed for the first time.
std::uint64_t memory_session::incarnation() {
  if (!followers_)
    followers_ = std::make_unique<followers>(++shared().incarnations);
  return followers_->incarnation();
}

void memory_session::note_states() {
  for (const auto* const next : batch_.accepted())
    if (const auto* const creation = as<create>(*next);
        creation != nullptr && !creation->fork)
      earlier_.begin(*next->event);
  earlier_.note(revision(), state_.keys(), last_update_time_);
}

session memory_session::read_earlier(const get_options& options) {
  if (*options.at == revision())
    return read(options, seen_user_.keys, seen_app_.keys);
  const auto log = events_up_to(*options.at);
  auto state = earlier_.at(*options.at, log);
  auto events
    = options.num_recent_events ? log.recent(*options.num_recent_events) : log;
  if (options.after)
    events = events.after(*options.after);
  return {key(),
          readonly_state(
            {std::move(state.keys), seen_user_.keys, seen_app_.keys, {}}),
          std::move(events),
          state.last_update_time,
          state.revision,
          session_moment::mixed,
          trimmed_to_};
}

event_slice memory_session::events_up_to(std::uint64_t revision) const {
  return events_.slice().part(0, revision - events_.before());
}

// Copies the kept events to a new window, so that deleted events are freed when
// no reader has them any more.
void memory_session::trim(const wanted_trim& wish) {
  const auto revision = wish.to;
  if (!events_.has(revision) || events_.at(revision)->id != wish.event_id)
    return;
  earlier_.trim(revision, events_up_to(revision));
  const auto kept = events_.slice().from(revision + 1);
  std::vector<event_ptr> events(kept.begin(), kept.end());
  events_ = event_window(events_.revision(), std::move(events));
  trimmed_to_ = revision;
}

void memory_session::share_past(const get_options& options, forked_past& past) {
  auto& from = past.from;
  from.revision = options.at.value_or(revision());
  if (followers_)
    from.incarnation = followers_->incarnation();
  past.events = events_up_to(from.revision);
  past.first_revision = trimmed_to_;
  earlier_state state{revision(), state_.keys(), last_update_time_};
  if (from.revision < revision())
    state = earlier_.at(from.revision, past.events);
  past.keys = std::move(state.keys);
  past.last_update_time = state.last_update_time;
  past.earlier = earlier_.share(from.revision);
}

void memory_session::take_past(forked_past& past) {
  events_ = past.events.empty() ? event_window(past.from.revision, {})
                                : event_window(past.events);
  trimmed_to_ = past.first_revision;
  earlier_ = std::move(past.earlier);
  unread_ids_ = past.from.revision;
}

void memory_session::publish() {
  if (runs_ && runs_->has_active())
    make_view().publish();
}

void memory_session::renew_view(get& wanted) {
  wanted.renewed = make_view();
  wanted.renewed.publish();
}

bool memory_session::start_remove(std::unique_ptr<remove> removal) {
  listing_.reset();
  end(*removal);
  parent().tell(std::move(removal));
  return false;
}

void memory_session::part() {
  if (successor_)
    tell_gone(created_ ? become_idle() : nullptr);
}

std::unique_ptr<idle_session> memory_session::become_idle() {
  auto left = std::make_unique<idle_session>();
  left->keys = state_.keys();
  left->events = std::move(events_);
  left->trimmed_to = trimmed_to_;
  left->ids = std::move(ids_);
  left->unread_ids = unread_ids_;
  left->earlier = std::move(earlier_);
  left->last_update_time = last_update_time_;
  left->listed = std::move(listing_);
  left->followed = std::move(followers_);
  return left;
}

} // namespace troupe::actors
