// Calling the user's callbacks: in order, until one answers.

#pragma once

#include "troupe/actors/user_failure.hpp"
#include "troupe/agents/callback.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace troupe::actors {

/// The first answer of `callbacks`, if any. Throws what they throw, as an error
/// that names `place` (`"before_model"`) and the agent.
template <class Answer, class... Arguments>
task<std::optional<Answer>>
first_answer(const std::vector<callback<Answer, Arguments...>>& callbacks,
             std::string_view place,
             const callback_context& context,
             std::type_identity_t<Arguments>... arguments) {
  std::optional<Answer> answer;
  for (const auto& each : callbacks) {
    try {
      if (each.plain())
        answer = each.plain()(arguments...);
      else
        answer = co_await each.suspending()(arguments...);
    } catch (...) {
      throw current_failure(errc::callback_failed,
                            fmt::format("the {} callback of agent '{}'",
                                        place,
                                        context.agent_name()));
    }
    if (answer)
      break;
  }
  co_return answer;
}

} // namespace troupe::actors
