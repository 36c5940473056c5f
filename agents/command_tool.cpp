#include "troupe/agents/command_tool.hpp"

#include "troupe/agents/outside/argument_template.hpp"
#include "troupe/core/processes/command_run.hpp"
#include "troupe/core/processes/inherited_variables.hpp"

#include <fmt/format.h>
#include <utf8.h>

#include <cstdlib>
#include <future>
#include <iterator>
#include <stop_token>
#include <utility>

namespace troupe {

namespace {

using processes::command_run;

// Quotes around a text.
constexpr std::size_t overhead_max = 16;

// The parts of each run, shared by all calls.
struct command_plan {
  processes::program started; // `args` is empty: each call has its own.
  argument_template words;
  processes::command_limits limits;
};

using command_plan_ptr = std::shared_ptr<const command_plan>;

// A run of a program, which a stop token ends.
class command_call final : public detail::call<std::string> {
public:
  command_call(processes::program started,
               std::string input,
               processes::command_limits limits,
               std::stop_token stop)
    : started_(std::move(started)),
      input_(std::move(input)),
      limits_(limits),
      stop_(std::move(stop)) {}

  void start(completion<std::string> done) override {
    if (stop_.stop_requested())
      return done(stop_reason());
    using stop_callback = std::stop_callback<stopper>;
    auto until = std::make_shared<std::optional<stop_callback>>();
    auto run = std::make_shared<command_run>(
      std::move(started_),
      std::move(input_),
      limits_,
      [done = std::move(done), until](result<std::string> outcome) {
        until->reset();
        done(std::move(outcome));
      });
    // Before the start, after which the run may end at any time.
    until->emplace(stop_, stopper{run});
    run->start();
  }

  result<std::string> wait() override {
    if (executor::current() != nullptr)
      return error(
        errc::would_deadlock,
        "this call would block a thread of the runtime; co_await it");
    std::promise<result<std::string>> promise;
    start([&promise](result<std::string> outcome) {
      promise.set_value(std::move(outcome));
    });
    return promise.get_future().get();
  }

private:
  static error stop_reason() {
    return {errc::cancelled, "the call was cancelled, or its time is over"};
  }

  struct stopper {
    std::shared_ptr<command_run> run;

    void operator()() const { run->stop(stop_reason()); }
  };

  processes::program started_;
  std::string input_;
  const processes::command_limits limits_;
  const std::stop_token stop_;
};

json result_of(std::string text) {
  std::string valid;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  if (auto object = parse_json(valid); object && object->is_object())
    return std::move(*object);
  while (valid.ends_with('\n') || valid.ends_with('\r'))
    valid.pop_back();
  return valid;
}

task<json>
call_command(command_plan_ptr plan, const json& args, tool_context& context) {
  auto words = plan->words.fill(args);
  if (!words)
    throw words.error();
  auto started = plan->started;
  started.args = std::move(*words);
  std::string input;
  if (!plan->words.has_placeholders())
    input = to_text(args) + '\n';
  pending<std::string> running(std::make_unique<command_call>(
    std::move(started), std::move(input), plan->limits, context.stop()));
  auto outcome = co_await running;
  if (!outcome)
    throw outcome.error();
  auto said = result_of(std::move(*outcome));
  // As JSON, a text may be several times as long.
  const auto limit = plan->limits.output_bytes_max;
  if (to_text(said).size() > limit + overhead_max)
    throw error(errc::too_large,
                fmt::format("the output of the program '{}' has more than {} "
                            "bytes as JSON",
                            plan->started.command,
                            limit));
  co_return said;
}

std::vector<std::string> environment_of(const command_tool_options& options) {
  // Safe as long as no thread changes the environment.
  const auto variable = [](const char* name) {
    return std::getenv(name); // NOLINT(concurrency-mt-unsafe)
  };
  auto held = options.env;
  for (const auto& name : options.passed_variables) {
    const auto* text = variable(name.c_str());
    if (text == nullptr)
      throw error(errc::invalid_argument,
                  fmt::format("tool '{}' needs the environment variable {}, "
                              "which is not set",
                              options.name,
                              name));
    held.emplace(name, text);
  }
  for (const auto* const name : processes::inherited_variables)
    if (const auto* text = variable(name); text != nullptr)
      held.emplace(name, text);
  std::vector<std::string> made;
  for (const auto& [name, text] : held) {
    if (name.empty() || name.find_first_of(std::string("=\0", 2)) != name.npos
        || text.find('\0') != text.npos)
      throw error(errc::invalid_argument,
                  fmt::format("tool '{}' has an environment variable '{}' that "
                              "cannot be set",
                              options.name,
                              name));
    made.push_back(fmt::format("{}={}", name, text));
  }
  return made;
}

command_plan_ptr plan_of(const command_tool_options& options) {
  const auto refuse = [&options](std::string_view why) {
    throw error(errc::invalid_argument,
                fmt::format("tool '{}' {}", options.name, why));
  };
  if (options.command.empty() || options.command.front().empty())
    refuse("has no command");
  for (const auto& word : options.command)
    if (word.find('\0') != std::string::npos)
      refuse("has a command with a NUL");
  if (options.output_bytes_max == 0)
    refuse("has an output_bytes_max of 0, so every run would fail");
  argument_template words({options.command.begin() + 1, options.command.end()},
                          options.parameters);
  processes::program started;
  started.command = options.command.front();
  started.environment = environment_of(options);
  started.folder = options.folder;
  const processes::command_limits limits{options.output_bytes_max,
                                         options.end_grace};
  return std::make_shared<const command_plan>(
    command_plan{std::move(started), std::move(words), limits});
}

} // namespace

tool command_tool(command_tool_options options) {
  auto plan = plan_of(options);
  tool_options made;
  made.name = std::move(options.name);
  made.description = std::move(options.description);
  made.parameters = std::move(options.parameters);
  made.timeout = options.timeout;
  made.calls_max = options.calls_max;
  made.on_failure = options.on_failure;
  made.require_confirmation = std::move(options.require_confirmation);
  made.run = [plan = std::move(plan)](const json& args, tool_context& context) {
    return call_command(plan, args, context);
  };
  return tool(std::move(made));
}

} // namespace troupe
