#include "troupe/agents/node_context.hpp"

#include "troupe/agents/turns/node_event.hpp"
#include "troupe/agents/turns/question.hpp"
#include "troupe/contexts/lanes/checkpoint.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe {

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

} // namespace troupe
