// Calls the user's callbacks in order, first those of plugins, then those of
// the agent, until one gives an answer.

#pragma once

#include "troupe/actors/running/user_failure.hpp"
#include "troupe/agents/plugin.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace troupe::actors {

/// Calls one callback; returns its answer, if it gives one. An exception is
/// rethrown as an error that names the hook `place`, the kind of owner `whose`
/// (`"plugin"` or `"agent"`) and its `name`.
template <class Answer, class... Arguments>
task<std::optional<Answer>>
answer_of(const callback<Answer, Arguments...>& called,
          std::string_view place,
          std::string_view whose,
          std::string_view name,
          std::type_identity_t<Arguments>... arguments) {
  std::optional<Answer> answer;
  try {
    answer = co_await called(arguments...);
  } catch (...) {
    throw current_failure(
      errc::callback_failed,
      fmt::format("the {} callback of {} '{}'", place, whose, name));
  }
  co_return answer;
}

/// Calls the plugins' callbacks at `hook`, then `callbacks`; returns the first
/// answer, if any. An exception is rethrown as an error that names `place`
/// (such as `"before_model"`) and the plugin or agent.
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
