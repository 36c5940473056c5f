#include "troupe/actors/running/plugins.hpp"

#include "troupe/actors/running/user_failure.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace troupe::actors {

namespace {

// The exception that is being handled, as a failure of a hook.
error failure_of(const plugin& which, std::string_view place) {
  return current_failure(
    errc::callback_failed,
    fmt::format("the {} callback of plugin '{}'", place, which.name));
}

// Restores the fields that the runtime needs to pause and resume runs. Plugins
// must not change them.
void keep_own(const event& said, event& instead) {
  instead.long_running_tool_ids = said.long_running_tool_ids;
  if (said.actions.extra.is_null())
    return;
  auto actions = instead.actions.extra.is_null() ? json::object()
                                                 : instead.actions.extra.data();
  for (const char* name : {"agentState", "requestedToolConfirmations"})
    if (said.actions.extra->contains(name))
      actions[name] = said.actions.extra->at(name);
  if (!actions.empty())
    instead.actions.extra = std::move(actions);
}

} // namespace

error tell_failure(const std::vector<plugin>& plugins,
                   watcher hook,
                   std::string_view place,
                   const readonly_context& context,
                   error failure) {
  for (const auto& each : plugins) {
    if (!(each.*hook))
      continue;
    try {
      (each.*hook)(context, failure);
    } catch (...) {
      failure = error(failure.code(),
                      fmt::format("{} (and {})",
                                  failure.message(),
                                  failure_of(each, place).message()));
    }
  }
  return failure;
}

result<content> watch_message(const std::vector<plugin>& plugins,
                              const session_key& session,
                              content message) {
  for (const auto& each : plugins) {
    if (!each.on_user_message)
      continue;
    try {
      if (auto instead = each.on_user_message(session, message))
        return std::move(*instead);
    } catch (...) {
      return failure_of(each, "on_user_message");
    }
  }
  return message;
}

result<void> watch_event(const std::vector<plugin>& plugins,
                         const session_key& session,
                         event& said) {
  for (const auto& each : plugins) {
    if (!each.on_event)
      continue;
    try {
      auto instead = each.on_event(session, said);
      if (!instead)
        continue;
      instead->id = std::move(said.id);
      instead->invocation_id = std::move(said.invocation_id);
      instead->author = std::move(said.author);
      instead->branch = std::move(said.branch);
      instead->timestamp = said.timestamp;
      instead->partial = false;
      keep_own(said, *instead);
      said = std::move(*instead);
      return {};
    } catch (...) {
      return failure_of(each, "on_event");
    }
  }
  return {};
}

void tell_event(
  const std::vector<plugin>& plugins,
  const session_key& session,
  const event& said,
  const std::function<void(const std::string& warning)>& on_warning) {
  for (const auto& each : plugins) {
    if (!each.after_event)
      continue;
    try {
      each.after_event(session, said);
    } catch (...) {
      if (on_warning)
        on_warning(failure_of(each, "after_event").message());
    }
  }
}

void tell_run_end(const std::vector<plugin>& plugins,
                  callback_context& context) {
  std::optional<error> failure;
  for (const auto& each : plugins) {
    if (!each.after_run)
      continue;
    try {
      each.after_run(context);
    } catch (...) {
      if (!failure)
        failure = failure_of(each, "after_run");
    }
  }
  if (failure)
    throw *failure;
}

result<void> close_all(const std::vector<plugin>& plugins) {
  result<void> outcome;
  for (const auto& each : plugins) {
    if (!each.close)
      continue;
    try {
      each.close();
    } catch (...) {
      if (outcome)
        outcome = failure_of(each, "close");
    }
  }
  return outcome;
}

} // namespace troupe::actors
