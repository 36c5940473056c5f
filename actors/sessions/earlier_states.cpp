#include "troupe/actors/sessions/earlier_states.hpp"

#include <algorithm>
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
  const auto last = kept_ ? kept_->back().revision : 0;
  if (revision - last >= stride(keys))
    keep({revision, keys, last_update_time});
}

// A session that was created with its events has no kept states yet. Those on
// the way are kept, so that the next replay is short, whatever its revision.
earlier_state earlier_states::at(std::uint64_t revision,
                                 const event_slice& log) {
  const auto* const from = nearest(revision);
  auto state = from != nullptr ? *from : earlier_state{0, {}, created_};
  auto last = state.revision;
  while (state.revision < revision) {
    replay(state, *log[state.revision]);
    ++state.revision;
    if (state.revision - last < 2 * stride(state.keys))
      continue;
    last = state.revision;
    keep(state);
  }
  return state;
}

const earlier_state* earlier_states::nearest(std::uint64_t revision) const {
  if (!kept_)
    return nullptr;
  const auto after
    = std::ranges::upper_bound(*kept_, revision, {}, &earlier_state::revision);
  return after == kept_->begin() ? nullptr : &*(after - 1);
}

void earlier_states::keep(earlier_state state) {
  if (!kept_)
    kept_ = std::make_unique<std::vector<earlier_state>>();
  const auto after = std::ranges::upper_bound(
    *kept_, state.revision, {}, &earlier_state::revision);
  kept_->insert(after, std::move(state));
}

} // namespace troupe::actors
