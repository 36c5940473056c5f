#include "troupe/actors/run_body.hpp"

#include "troupe/actors/agent_body.hpp"
#include "troupe/actors/callbacks.hpp"
#include "troupe/actors/plugins.hpp"
#include "troupe/actors/user_failure.hpp"
#include "troupe/agents/resumption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe::actors {

namespace {

bool answers_calls(const content& message) {
  return std::ranges::any_of(message.parts, [](const part& element) {
    return element.response() != nullptr;
  });
}

// A conversation that was handed over goes on where it was, and one that waits
// for an answer from outside where it paused.
task<agent_end> run_agents(lane_actor& lane, invocation_context& context) {
  const auto& root = lane.root_agent();
  const auto resumed = find_resumption(context.events(), root.name());
  const auto which = lane.tree() != nullptr && !resumed
                       ? lane.tree()->next_turn(context.events())
                       : root;
  const json* checkpoint = nullptr;
  json last_turn;
  if (resumed) {
    checkpoint = &resumed->checkpoint;
  } else if (answers_calls(context.user_content())
             && std::holds_alternative<llm_options>(which.kind())) {
    // No pause is on record: it looks for itself what its last turn left open.
    last_turn["agent"] = which.name();
    checkpoint = &last_turn;
  }
  auto end = co_await run_agent(lane, nullptr, which, {}, checkpoint);
  if (end.checkpoint || resumed)
    co_await context.emit(
      make_pause_event(root.name(), end.checkpoint, resumed));
  co_return end;
}

task<agent_end> run_all(lane_actor& lane, invocation_context& context) {
  const auto& plugins = lane.shared_run()->shared->plugins;
  agent_end end;
  callback_context& seen = context;
  const std::vector<agent_callback> no_more;
  auto answer = co_await first_answer(
    plugins, &plugin::before_run, no_more, "before_run", context, seen);
  if (answer)
    co_await context.emit(std::move(*answer));
  else
    co_await context.emit_leftovers();
  if (!answer)
    end = co_await run_agents(lane, context);
  context.renew();
  tell_run_end(plugins, context);
  co_await context.emit_leftovers();
  co_return end;
}

} // namespace

task<agent_end> run_root(lane_actor& lane) {
  invocation_context context(lane, lane.root_agent(), "model", {}, nullptr);
  agent_end end;
  std::optional<error> failure;
  try {
    end = co_await run_all(lane, context);
  } catch (...) {
    failure
      = current_failure(errc::callback_failed,
                        fmt::format("agent '{}'", lane.root_agent().name()));
  }
  if (!failure)
    co_return end;
  if (failure->code() != errc::cancelled)
    failure = tell_failure(lane.shared_run()->shared->plugins,
                           &plugin::on_run_error,
                           "on_run_error",
                           context,
                           std::move(*failure));
  throw *failure;
}

} // namespace troupe::actors
