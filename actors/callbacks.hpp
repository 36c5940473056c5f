// Calling the user's callbacks: those of plugins, then those of the agent, in
// order, until one answers.

#pragma once

#include "troupe/actors/user_failure.hpp"
#include "troupe/agents/plugin.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace troupe::actors {

/// What one callback answers, if anything. Throws what it throws, as an error
/// that names `place` and whose it is: `"plugin"` or `"agent"`, and a name.
template <class Answer, class... Arguments>
task<std::optional<Answer>>
answer_of(const callback<Answer, Arguments...>& called,
          std::string_view place,
          std::string_view whose,
          std::string_view name,
          std::type_identity_t<Arguments>... arguments) {
  std::optional<Answer> answer;
  try {
    if (called.plain())
      answer = called.plain()(arguments...);
    else
      answer = co_await called.suspending()(arguments...);
  } catch (...) {
    throw current_failure(
      errc::callback_failed,
      fmt::format("the {} callback of {} '{}'", place, whose, name));
  }
  co_return answer;
}

/// The first answer of the plugins at `hook` and then of `callbacks`, if any.
/// Throws what they throw, as an error that names `place` (`"before_model"`)
/// and the plugin or the agent.
template <class Answer, class... Arguments>
task<std::optional<Answer>> first_answer(
  const std::vector<plugin>& plugins,
  std::type_identity_t<callback<Answer, Arguments...> plugin::*> hook,
  const std::vector<callback<Answer, Arguments...>>& callbacks,
  std::string_view place,
  const callback_context& context,
  std::type_identity_t<Arguments>... arguments) {
  std::optional<Answer> answer;
  for (const auto& each : plugins) {
    if (!(each.*hook))
      continue;
    answer = co_await answer_of(
      each.*hook, place, "plugin", each.name, arguments...);
    if (answer)
      co_return answer;
  }
  for (const auto& each : callbacks) {
    answer = co_await answer_of(
      each, place, "agent", context.agent_name(), arguments...);
    if (answer)
      co_return answer;
  }
  co_return answer;
}

} // namespace troupe::actors
