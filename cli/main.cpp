// The `troupe` program: reads the command line and hands over to a command.

#include "troupe/cli/exit_code.hpp"
#include "troupe/cli/experiment_command.hpp"
#include "troupe/cli/interrupts.hpp"
#include "troupe/cli/load_command.hpp"
#include "troupe/cli/memory_end.hpp"
#include "troupe/cli/output.hpp"
#include "troupe/cli/run_command.hpp"
#include "troupe/cli/sessions_command.hpp"
#include "troupe/cli/store_command.hpp"
#include "troupe/cli/trace_command.hpp"

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

// A standard descriptor that is closed would be given to the next file opened,
// and results would end up in that.
void keep_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0)
      // Read-only, so that what is written to it still fails.
      if (::open("/dev/null", O_RDONLY) < 0)
        return;
}

// Last first, as CLI11 wants them. It takes the `x` of `--name= x` for the
// value; a value of its own it understands.
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

int print(const std::string& text, const interrupts& signals) {
  output target(STDOUT_FILENO, signals.descriptor());
  const auto written = target.write(text);
  if (written)
    return exit_done;
  return target.is_closed() ? exit_failed : report(written.error());
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
                 signals);
  } catch (const CLI::CallForVersion& version) {
    return print(fmt::format("{}\n", version.what()), signals);
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
