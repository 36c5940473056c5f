#include "troupe/actors/sessions/earlier_states.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe::actors {

namespace {

void replay(earlier_state& state, const event& said) {
  for (const auto& done : said.actions.state_delta.share(scope::session)) {
    if (done.operand.is_null())
      state.keys.erase(done.name);
    else
      state.keys.set(done.name, done.operand);
  }
  state.last_update_time = std::max(state.last_update_time, said.timestamp);
}

} // namespace

void earlier_states::begin(const event& creation) {
  created_ = creation.timestamp;
  earlier_state first{0, {}, created_};
  replay(first, creation);
  if (first.keys.size() > 0)
    keep(std::move(first));
}

// A state of many keys costs as much as the replay of as many events.
std::uint64_t earlier_states::stride(const state_map& keys) noexcept {
  return std::max<std::uint64_t>(stride_min, keys.size());
}

void earlier_states::note(std::uint64_t revision,
                          const state_map& keys,
                          timestamp last_update_time) {
  if (revision - newest_ >= stride(keys))
    keep({revision, keys, last_update_time});
}

// A session that was created with its events has no kept states yet. Those on
// the way are kept, so that the next replay is short, whatever its revision.
earlier_state earlier_states::at(std::uint64_t revision,
                                 const event_slice& log) {
  const auto* const from = nearest(revision);
  auto state = from != nullptr ? *from : earlier_state{0, {}, created_};
  auto last = state.revision;
  const auto before = log.empty() ? revision : log.number(0) - 1;
  while (state.revision < revision) {
    replay(state, *log[state.revision - before]);
    ++state.revision;
    if (state.revision - last < 2 * stride(state.keys))
      continue;
    last = state.revision;
    keep(state);
  }
  return state;
}

void earlier_states::trim(std::uint64_t revision, const event_slice& log) {
  auto first = at(revision, log);
  earlier_states left;
  left.created_ = created_;
  for (const auto* next = nearest(UINT64_MAX);
       next != nullptr && next->revision > revision;
       next = nearest(next->revision - 1))
    left.keep(*next);
  left.keep(std::move(first));
  *this = std::move(left);
}

// A state that a session has kept for a read may be older than shared ones.
const earlier_state* earlier_states::nearest(std::uint64_t revision) const {
  const earlier_state* found = nullptr;
  for (const auto* part = kept_.get(); part != nullptr;
       part = part->past.get()) {
    const auto after = std::ranges::upper_bound(
      part->states, revision, {}, &earlier_state::revision);
    if (after != part->states.begin()
        && (found == nullptr || (after - 1)->revision > found->revision))
      found = &*(after - 1);
    revision = std::min(revision, part->last);
  }
  return found;
}

void earlier_states::keep(earlier_state state) {
  if (!kept_)
    kept_ = new kept_states;
  newest_ = std::max(newest_, state.revision);
  auto& states = kept_->states;
  const auto after = std::ranges::upper_bound(
    states, state.revision, {}, &earlier_state::revision);
  states.insert(after, std::move(state));
}

// The states so far become a part that no session changes any more. Each of the
// two sessions adds its own to a new part.
earlier_states earlier_states::share(std::uint64_t last) {
  earlier_states shared;
  shared.created_ = created_;
  if (!kept_)
    return shared;
  if (!kept_->states.empty()) {
    boost::intrusive_ptr<kept_states> own(new kept_states);
    own->past = std::exchange(kept_, nullptr);
    own->last = std::numeric_limits<std::uint64_t>::max();
    kept_ = std::move(own);
  }
  shared.kept_ = new kept_states;
  shared.kept_->past = kept_->past;
  shared.kept_->last = std::min(last, kept_->last);
  if (const auto* const newest = shared.nearest(last))
    shared.newest_ = newest->revision;
  return shared;
}

} // namespace troupe::actors
