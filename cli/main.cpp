// The `troupe` program: parses the command line and runs a command.

#include "troupe/cli/commands/experiment.hpp"
#include "troupe/cli/commands/load.hpp"
#include "troupe/cli/commands/run.hpp"
#include "troupe/cli/commands/sessions.hpp"
#include "troupe/cli/commands/store.hpp"
#include "troupe/cli/commands/trace.hpp"
#include "troupe/cli/exit_code.hpp"
#include "troupe/cli/memory_end.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/interrupts.hpp"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

namespace {

// A file that is opened would get the number of a closed standard descriptor,
// and results would be written into it.
void keep_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0)
      // Read-only, so that writing to it fails.
      if (::open("/dev/null", O_RDONLY) < 0)
        return;
}

// Arguments in reverse, as CLI11 wants them. CLI11 reads the `x` in `--name= x`
// as the value; an empty value as an argument of its own works.
std::vector<std::string> reversed_arguments(int count, char** words) {
  std::vector<std::string> arguments;
  for (int index = 1; index < count; ++index) {
    const std::string_view word = words[index];
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      arguments.emplace_back(word.substr(0, word.size() - 1));
      arguments.emplace_back();
    } else {
      arguments.emplace_back(word);
    }
  }
  std::ranges::reverse(arguments);
  return arguments;
}

int run_program(int count, char** words, interrupts& signals) {
  CLI::App program("Actor runtime for agent orchestration", "troupe");
  program.set_version_flag("--version", "troupe " TROUPE_VERSION);
  program.require_subcommand(0, 1);
  program.footer("Example:\n"
                 "  troupe run agents/root_agent.yaml --input 'Hello!'\n\n"
                 "`troupe COMMAND --help` tells more about a command.");
  const experiment_command experiment(program);
  const load_command load(program);
  const run_command run(program);
  const sessions_command sessions(program);
  const store_command store(program);
  const trace_command trace(program);
  try {
    program.parse(reversed_arguments(count, words));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = program.get_subcommands();
    return print(chosen.empty() ? program.help()
                                : chosen.front()->help("troupe"),
                 signals.descriptor());
  } catch (const CLI::CallForVersion& version) {
    return print(fmt::format("{}\n", version.what()), signals.descriptor());
  } catch (const CLI::ParseError& failure) {
    return report(error(errc::invalid_argument,
                        fmt::format("{} (see troupe --help)", failure.what())),
                  exit_usage);
  }
  if (experiment.is_chosen())
    return experiment.execute(signals);
  if (trace.is_chosen())
    return trace.execute();
  if (load.is_chosen())
    return load.execute(signals);
  if (run.is_chosen())
    return run.execute(signals);
  if (sessions.is_chosen())
    return sessions.execute(signals);
  if (store.is_chosen())
    return store.execute(signals);
  return report(
    error(errc::invalid_argument, "expected a command (see troupe --help)"),
    exit_usage);
}

} // namespace

} // namespace troupe::cli

int main(int count, char** words) {
  using namespace troupe;
  cli::keep_standard_descriptors();
  cli::end_on_low_memory();
  try {
    if (const auto room = cli::check_address_space(); !room)
      return cli::report(room.error());
    cli::interrupts signals;
    return cli::run_program(count, words, signals);
  } catch (const error& failure) {
    return cli::report(failure);
  } catch (const std::exception& failure) {
    return cli::report(error(errc::internal, failure.what()));
  }
}
