#include "troupe/agents/node_context.hpp"

#include "troupe/agents/turns/node_event.hpp"
#include "troupe/agents/turns/question.hpp"
#include "troupe/contexts/lanes/checkpoint.hpp"
#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/contexts/lanes/host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// Time behind which no wait ends, so that sums with it have no overflow.
constexpr std::chrono::hours wait_max{24 * 36'500};

} // namespace

json node_context::ask(std::string message,
                       const std::optional<json_schema>& schema,
                       json payload) {
  if (paused())
    throw agent_paused{paused()};
  if (has_leftovers() || has_effect(actions()))
    throw error(
      errc::invalid_argument,
      fmt::format("the question \"{}\" comes after changes that are not "
                  "committed; they would be lost, since the "
                  "function starts again when the answer comes: make "
                  "them after the question, or emit an event with "
                  "them before it",
                  message));
  auto asked = make_question(placed_id(facts_of_attempt_.rewound,
                                       events(),
                                       question_id(key(), ++asked_)),
                             std::move(message),
                             schema ? schema->text() : json(),
                             std::move(payload));
  auto answer = find_answer(events(), asked);
  if (!answer)
    throw answer.error();
  if (*answer)
    return std::move(**answer);
  question_ = asked;
  wait_for(std::move(asked.id));
}

task<> node_context::sleep_until(timestamp due) {
  using std::chrono::microseconds;
  auto& clock = *lane().facts().environment;
  due = std::min(due, timestamp(clock.now() + wait_max));
  event told;
  set_fact(
    told,
    due_fact,
    std::chrono::duration_cast<microseconds>(due.time_since_epoch()).count());
  // A body that runs again gets its first event, with the time of that.
  const auto stored = co_await emit(std::move(told));
  const auto* kept = fact_in(*stored, due_fact);
  if (kept == nullptr || !kept->is_number_integer())
    throw error(errc::conflict,
                "a plugin has removed the time from the event by which a node "
                "waits; let the plugin keep it");
  const timestamp until(microseconds(kept->get<std::int64_t>()));
  for (auto now = clock.now(); now < until; now = clock.now()) {
    const std::chrono::nanoseconds rest = until - now;
    if (facts_of_attempt_.waited)
      *facts_of_attempt_.waited += rest.count();
    co_await sleep(rest);
  }
}

task<> node_context::sleep_for(std::chrono::nanoseconds duration) {
  const auto now = lane().facts().environment->now();
  const auto most = std::min<std::chrono::nanoseconds>(duration, wait_max);
  return sleep_until(now + std::chrono::ceil<std::chrono::microseconds>(most));
}

} // namespace troupe
