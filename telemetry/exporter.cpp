#include "troupe/telemetry/exporter.hpp"

#include "troupe/telemetry/otlp/sender.hpp"
#include "troupe/telemetry/runs/agent_facts.hpp"
#include "troupe/telemetry/runs/instruments.hpp"
#include "troupe/telemetry/runs/observer.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace troupe::telemetry {

struct exporter::parts {
  explicit parts(const options& chosen)
    : line(chosen, run_instruments()),
      close_timeout(chosen.close_timeout),
      observer(std::make_shared<run_observer>(chosen, line, agents)) {}

  ~parts() { observer->stop(); }

  parts(const parts&) = delete;
  parts& operator=(const parts&) = delete;

  sender line;
  const std::chrono::milliseconds close_timeout;
  agent_register agents;
  const std::shared_ptr<run_observer> observer;
};

result<exporter> exporter::start(options chosen) {
  if (chosen.queue_max == 0 || chosen.batch_max == 0
      || chosen.metrics_period.count() <= 0 || chosen.batch_delay.count() <= 0)
    return error(errc::invalid_argument,
                 "telemetry: queue_max, batch_max, batch_delay and "
                 "metrics_period must be above 0");
  if (!chosen.environment)
    chosen.environment = system_environment();
  try {
    return exporter(std::make_shared<parts>(chosen));
  } catch (const std::system_error& failure) {
    return error(
      errc::busy,
      fmt::format("telemetry: no thread to send records: {}", failure.what()));
  }
}

exporter::exporter(std::shared_ptr<parts> made) : parts_(std::move(made)) {}

exporter::exporter(exporter&&) noexcept = default;
exporter& exporter::operator=(exporter&&) noexcept = default;
exporter::~exporter() = default;

void exporter::describe(const agent& root, const std::string& app) {
  parts_->agents.add(app, root);
}

plugin exporter::watcher() const {
  plugin made;
  made.name = "telemetry";
  const auto on = parts_;
  const auto of = on->observer->add_runtime();
  made.before_run = [on, of](callback_context& context) {
    on->observer->begin_run(of, context);
  };
  made.after_run
    = [on](callback_context& context) { on->observer->end_run(context); };
  made.on_run_error
    = [on](const readonly_context& context, const error& failure) {
        on->observer->fail_run(context, failure);
      };
  made.before_agent = [on, of](callback_context& context) {
    on->observer->begin_agent(of, context);
  };
  made.after_agent
    = [on](callback_context& context) { on->observer->end_agent(context); };
  made.on_agent_error
    = [on](const readonly_context& context, const error& failure) {
        on->observer->fail_agent(context, failure);
      };
  made.on_agent = [on](std::string_view name, bool started) {
    if (!started)
      on->observer->leave_agent(name);
  };
  made.before_model
    = [on, of](callback_context& context, model_request& request) {
        on->observer->begin_model(of, context, request);
      };
  made.after_model = [on](callback_context& context, model_response& response) {
    on->observer->end_model(context, response);
  };
  made.on_model_error = [on](callback_context& context,
                             const model_request&,
                             const error& failure) {
    on->observer->fail_model(context, failure);
  };
  made.before_tool = [on, of](const tool& which,
                              json& args,
                              tool_context& context) -> std::optional<json> {
    on->observer->begin_tool(of, which, args, context);
    return std::nullopt;
  };
  made.after_tool = [on](const tool&,
                         const json&,
                         tool_context& context,
                         const json& answer) -> std::optional<json> {
    on->observer->end_tool(context, answer);
    return std::nullopt;
  };
  made.on_tool_error = [on](const tool&,
                            const json&,
                            tool_context& context,
                            const error& failure) -> std::optional<json> {
    on->observer->fail_tool(context, failure);
    return std::nullopt;
  };
  made.on_event
    = [on](const session_key&, const event& said) -> std::optional<event> {
    on->observer->hear(said);
    return std::nullopt;
  };
  made.after_event = [on](const session_key&, const event& said) {
    on->observer->end_append(said);
  };
  made.close = [on, of] {
    on->observer->end_all(of);
    // Records that the receiver does not take in time are lost.
    static_cast<void>(on->line.flush(on->close_timeout));
  };
  return made;
}

std::function<void(std::size_t)> exporter::commits() const {
  return [on = parts_](std::size_t changes) {
    on->line.histograms().count(commit_changes, changes);
  };
}

bool exporter::flush(std::chrono::milliseconds limit) {
  return parts_->line.flush(limit);
}

record_counts exporter::counts() const {
  const auto now = parts_->line.counts();
  return {.sent = now.sent, .dropped = now.dropped};
}

} // namespace troupe::telemetry
