#include "troupe/actors/parts/retry.hpp"

#include "troupe/contexts/first_invocation.hpp"
#include "troupe/contexts/lanes/event_place.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace troupe::actors {

namespace {

// The last operation on each key.
std::map<std::string_view, const operation*>
last_of(std::span<const operation> share) {
  std::map<std::string_view, const operation*> last;
  for (const auto& done : share)
    last[done.name] = &done;
  return last;
}

bool is_same(std::span<const operation> stored,
             std::span<const operation> retry) {
  if (std::ranges::equal(stored, retry))
    return true;
  // Typed operations are resolved in the stored event, so only their keys can
  // be compared.
  const bool resolved = std::ranges::any_of(retry, is_typed)
                        && std::ranges::none_of(stored, is_typed);
  return std::ranges::equal(last_of(stored),
                            last_of(retry),
                            [resolved](const auto& before, const auto& now) {
                              return before.first == now.first
                                     && (resolved
                                         || *before.second == *now.second);
                            });
}

// Facts about other steps differ, too. So does the first invocation: a run that
// goes on from a pause repeats events of the run before it.
json comparable_extra(const event& said) {
  event bare;
  bare.extra = said.extra;
  set_first_invocation(bare, {});
  return without_moment(bare);
}

bool is_same_extra(const event& stored, const event& retry) {
  return retry.extra == stored.extra
         || equal(comparable_extra(stored), comparable_extra(retry));
}

} // namespace

bool is_retry(const event& stored, const event& retry) {
  const auto& before = stored.actions;
  const auto& now = retry.actions;
  return retry.author == stored.author && retry.branch == stored.branch
         && retry.content == stored.content && is_same_extra(stored, retry)
         && retry.long_running_tool_ids == stored.long_running_tool_ids
         && now.artifact_delta == before.artifact_delta
         && now.transfer_to_agent == before.transfer_to_agent
         && now.escalate == before.escalate
         && now.skip_summarization == before.skip_summarization
         && now.extra == before.extra
         && std::ranges::all_of(
           std::array{scope::session, scope::user, scope::app},
           [&](scope where) {
             return is_same(before.state_delta.share(where),
                            now.state_delta.share(where));
           });
}

} // namespace troupe::actors
