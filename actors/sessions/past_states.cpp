#include "troupe/actors/sessions/past_states.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

void replay(past_state& state, const event& said) {
  for (const auto& done : said.actions.state_delta.share(scope::session)) {
    if (done.operand.is_null())
      state.keys.erase(done.name);
    else
      state.keys.set(done.name, done.operand);
  }
  state.last_update_time = std::max(state.last_update_time, said.timestamp);
}

} // namespace

void past_states::begin(const event& creation) {
  created_ = creation.timestamp;
  past_state first{0, {}, created_};
  replay(first, creation);
  if (first.keys.size() > 0)
    keep(std::move(first));
}

// A state of many keys costs as much as the replay of as many events.
std::uint64_t past_states::stride(const state_map& keys) noexcept {
  return std::max<std::uint64_t>(stride_min, keys.size());
}

void past_states::note(std::uint64_t revision,
                       const state_map& keys,
                       timestamp last_update_time) {
  const auto last = kept_ ? kept_->back().revision : 0;
  if (revision - last >= stride(keys))
    keep({revision, keys, last_update_time});
}

past_state past_states::at(std::uint64_t revision, const event_slice& log) {
  const auto* const from = nearest(revision);
  auto state = from != nullptr ? *from : past_state{0, {}, created_};
  const auto before = state.revision;
  for (; state.revision < revision; ++state.revision)
    replay(state, *log[state.revision]);
  // Sessions that are made with a long past have no states in between yet.
  if (revision - before >= 2 * stride(state.keys))
    keep(state);
  return state;
}

const past_state* past_states::nearest(std::uint64_t revision) const {
  if (!kept_)
    return nullptr;
  const auto after
    = std::ranges::upper_bound(*kept_, revision, {}, &past_state::revision);
  return after == kept_->begin() ? nullptr : &*(after - 1);
}

void past_states::keep(past_state state) {
  if (!kept_)
    kept_ = std::make_unique<std::vector<past_state>>();
  const auto after = std::ranges::upper_bound(
    *kept_, state.revision, {}, &past_state::revision);
  kept_->insert(after, std::move(state));
}

} // namespace troupe::actors
