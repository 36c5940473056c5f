#include "troupe/actors/runs/compaction.hpp"

#include "troupe/actors/running/user_failure.hpp"
#include "troupe/agents/turns/compaction_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace troupe::actors {

namespace {

// The text of a summary, and the wire fields of the answer.
struct written_summary {
  explicit written_summary(std::optional<content> text_, value extra_ = {})
    : text(std::move(text_)),
      extra(std::move(extra_)) {}

  std::optional<content> text;
  value extra;
};

// Reads back from the newest event, twice as far each time.
task<compaction_plan> make_plan(lane_actor& lane,
                                invocation_context& context,
                                const compaction_options& chosen) {
  constexpr std::uint64_t page_min = 256;
  auto known = lane.view().events;
  const auto& names = lane.root_agent().task_names();
  const auto tasks = names ? *names : std::vector<std::string>();
  for (;;) {
    auto plan
      = plan_compaction(known, chosen, lane.view().trimmed_to + 1, tasks);
    if (!plan.needs_older)
      co_return plan;
    const auto count = std::max<std::uint64_t>(page_min, 2 * known.span());
    known = co_await context.events_before(context.revision() + 1, count);
  }
}

model_ptr choose_model(const compaction_options& chosen, const agent& root) {
  if (chosen.model)
    return chosen.model;
  const auto* const options = std::get_if<llm_options>(&root.kind());
  if (options == nullptr)
    throw error(errc::invalid_argument,
                fmt::format("agent '{}' has no model; set compaction_options::"
                            "model or a summarizer",
                            root.name()));
  return options->model;
}

task<written_summary> write_summary(lane_actor& lane,
                                    invocation_context& context,
                                    const compaction_options& chosen,
                                    const summary_request& wanted) {
  if (chosen.summarizer) {
    auto text = co_await chosen.summarizer(wanted);
    co_return written_summary(std::move(text));
  }
  auto asked = choose_model(chosen, lane.root_agent());
  model_request request;
  request.agent = lane.root_agent().name();
  request.system_instruction = chosen.prompt;
  content told("user", {part(to_text(wanted))});
  request.contents.push_back(std::make_shared<const content>(std::move(told)));
  auto answer = co_await context.ask(std::move(asked), std::move(request));
  co_return written_summary(std::move(answer.content), std::move(answer.extra));
}

// An answer without words would hide the events that it covers.
bool says_something(const content& text) {
  return std::ranges::any_of(text.parts, [](const part& element) {
    return element.text() != nullptr && !element.thought
           && !element.text()->empty();
  });
}

event make_event(const compaction_plan& plan, written_summary made) {
  if (!says_something(*made.text))
    throw error(errc::model_failed, "the summary has no text");
  std::erase_if(made.text->parts, [](const part& element) {
    return element.text() == nullptr || element.thought;
  });
  auto said = make_compaction_event(plan, std::move(*made.text));
  if (made.extra.data().is_object() && made.extra->contains("usageMetadata")) {
    auto usage = json::object();
    usage["usageMetadata"] = made.extra->at("usageMetadata");
    said.extra = std::move(usage);
  }
  return said;
}

task<> try_to_compact(lane_actor& lane,
                      invocation_context& context,
                      const compaction_options& chosen) {
  const auto plan = co_await make_plan(lane, context, chosen);
  if (plan.last == 0)
    co_return;
  auto made = co_await write_summary(lane, context, chosen, plan.request);
  if (!made.text)
    co_return;
  auto said = make_event(plan, std::move(made));
  // A run beside this one may have summed up the same events meanwhile.
  if (newest_summary(lane.view().events, lane.view().trimmed_to + 1)
      > plan.former)
    co_return;
  co_await context.emit(std::move(said));
}

} // namespace

task<> compact(lane_actor& lane, invocation_context& context) {
  auto& run = *lane.shared_run();
  const auto chosen = run.shared->compaction;
  if (!chosen)
    co_return;
  run.is_compacting = true;
  std::optional<error> failure;
  try {
    co_await try_to_compact(lane, context, *chosen);
  } catch (...) {
    failure = current_failure(errc::callback_failed, "the summarizer");
  }
  const bool is_told = failure && failure->code() != errc::cancelled;
  if (is_told && run.shared->on_warning)
    run.shared->on_warning(fmt::format("session {} was not summed up: {}",
                                       to_string(run.facts.session),
                                       failure->message()));
}

} // namespace troupe::actors
