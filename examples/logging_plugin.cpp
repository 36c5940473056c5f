// A plugin that logs the steps of all runs of a runtime, one line each, in a
// form that log collectors can split.

#include "troupe/agents/function_tool.hpp"
#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

// Thread-safe, since hooks of lanes and tools are called from several threads.
class log_lines {
public:
  void write(std::string line) {
    const std::lock_guard guard(mutex_);
    std::clog << line << '\n';
    lines_.push_back(std::move(line));
  }

  std::vector<std::string> all() const {
    const std::lock_guard guard(mutex_);
    return lines_;
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

// The beginning of a tool's result.
std::string shortened(const std::string& text) {
  constexpr std::size_t length_max = 60;
  return text.size() <= length_max ? text : text.substr(0, length_max) + "...";
}

troupe::plugin make_logging_plugin(const std::shared_ptr<log_lines>& log) {
  troupe::plugin made;
  made.name = "logging";
  made.before_run = [log](troupe::callback_context& context) {
    log->write(fmt::format("run begins: session={} message={:?}",
                           context.session().id,
                           context.user_content().text()));
  };
  made.before_agent = [log](troupe::callback_context& context) {
    log->write(fmt::format("agent begins: {}", context.agent_name()));
  };
  made.before_model
    = [log](troupe::callback_context& context, troupe::model_request& request) {
        log->write(fmt::format("model asked: agent={} contents={} tools={}",
                               context.agent_name(),
                               request.contents.size(),
                               request.tools.size()));
      };
  made.before_tool = [log](const troupe::tool& which,
                           troupe::json& args,
                           troupe::tool_context&) {
    log->write(
      fmt::format("tool called: {} args={}", which.name(), args.dump()));
    return std::optional<troupe::json>();
  };
  made.after_tool = [log](const troupe::tool& which,
                          const troupe::json&,
                          troupe::tool_context&,
                          const troupe::json& result) {
    log->write(fmt::format(
      "tool ended: {} result={}", which.name(), shortened(result.dump())));
    return std::optional<troupe::json>();
  };
  made.on_event
    = [log](const troupe::session_key& session, const troupe::event& said) {
        log->write(fmt::format("event: session={} author={} text={:?}",
                               session.id,
                               said.author,
                               shortened(said.text())));
        return std::optional<troupe::event>();
      };
  made.after_run
    = [log](troupe::callback_context&) { log->write("run ended"); };
  made.on_run_error
    = [log](const troupe::readonly_context&, const troupe::error& failure) {
        log->write("run failed: " + to_string(failure));
      };
  return made;
}

struct word {
  std::string text;

  static constexpr auto parameters
    = std::tuple(troupe::parameter("text", &word::text));
};

} // namespace

int main() {
  const auto log = std::make_shared<log_lines>();
  auto runtime
    = troupe::runtime::open({.plugins = {make_logging_plugin(log)}}).value();

  const auto length
    = troupe::function_tool({.name = "length"}, [](const word& counted) {
        return counted.text.size();
      });
  troupe::scripted_reply counting;
  counting.function_calls = {{"", "length", troupe::json{{"text", "owl"}}}};
  const auto model = std::make_shared<troupe::scripted_model>(
    troupe::script{{"counter", {counting, {.text = "Three letters."}}}});
  const auto counter
    = troupe::llm({.name = "counter", .model = model, .tools = {length}});

  const auto session = runtime.sessions().create({"words", "ann", "s"}).value();
  runtime.run(counter, session.key(), "How long is owl?").wait().value();

  const std::vector<std::string> expected
    = {R"(run begins: session=s message="How long is owl?")",
       "agent begins: counter",
       "model asked: agent=counter contents=1 tools=1",
       R"(event: session=s author=counter text="")",
       R"(tool called: length args={"text":"owl"})",
       "tool ended: length result=3",
       R"(event: session=s author=counter text="")",
       "model asked: agent=counter contents=3 tools=1",
       R"(event: session=s author=counter text="Three letters.")",
       "run ended"};
  if (log->all() == expected)
    return 0;
  std::fputs("the log is not what was expected\n", stderr);
  return 1;
}
