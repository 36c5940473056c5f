#include "troupe/actors/sessions/append_batch.hpp"

#include "troupe/actors/parts/retry.hpp"
#include "troupe/actors/sessions/past.hpp"
#include "troupe/agents/turns/resumption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe::actors {

bool append_batch::creates() const noexcept {
  return std::ranges::any_of(
    accepted_, [](const append* each) { return is_one_of<create>(*each); });
}

bool append_batch::claims(std::string_view pause_id) const {
  return std::ranges::any_of(accepted_, [pause_id](const append* each) {
    const auto claimed = claim_of(*each->event);
    return claimed && claimed->pause_id == pause_id;
  });
}

// The refusal keeps its place among the decided letters. If the earlier refusal
// is decided again because of stale state, this session is stale too, and all
// letters after it are decided again.
bool append_batch::cut_off(std::unique_ptr<append>& next) {
  auto why = next->place.refusal();
  if (!why)
    return false;
  next->refuse(*std::move(why));
  add(std::move(next));
  return true;
}

void append_batch::join(std::unique_ptr<append> retry, std::size_t index) {
  auto& original = *accepted_[index];
  if (!is_retry(*original.event, *retry->event))
    return join(std::move(retry), original.event);
  retry->joined = true;
  original.followers.push_back(std::move(retry));
}

void append_batch::join(std::unique_ptr<append> retry,
                        const event_ptr& original) {
  retry->joined = true;
  if (is_retry(*original, *retry->event))
    retry->outcome = original;
  else
    retry->refuse(
      error(errc::conflict,
            fmt::format("event id '{}' was used before with other content",
                        retry->event->id)));
  add(std::move(retry));
}

result<void> append_batch::judge(append& next,
                                 scope_state& state,
                                 bool undecided,
                                 const size_limits& limits) {
  if (next.touches(scope::session))
    if (auto judged = next.judge(scope::session, state, undecided, limits);
        !judged)
      return judged;
  accepted_.push_back(&next);
  const auto* const creation = as<create>(next);
  if (creation == nullptr)
    return {};
  // The past is alone in its batch: the session does not exist before, and a
  // creation ends its batch.
  for (const auto& each : creation->past) {
    if (each->touches(scope::session))
      if (auto judged = each->judge(scope::session, state, false, limits);
          !judged) {
        const auto number = size();
        drop_all(state);
        return with_number(number, judged.error());
      }
    accepted_.push_back(each.get());
  }
  return {};
}

append& append_batch::drop_last(scope_state& state, error why) {
  auto& last = *accepted_.back();
  if (last.touches(scope::session))
    state.drop_last();
  last.refuse(std::move(why));
  accepted_.pop_back();
  return last;
}

void append_batch::drop_creation(scope_state& state, error why) {
  accepted_.front()->refuse(std::move(why));
  drop_all(state);
}

void append_batch::drop_all(scope_state& state) {
  accepted_.clear();
  state.abandon();
}

} // namespace troupe::actors
