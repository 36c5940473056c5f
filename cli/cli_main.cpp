#include "troupe/cli/cli_main.hpp"

#include "troupe/agents/standard_tools.hpp"
#include "troupe/cli/commands/experiment.hpp"
#include "troupe/cli/commands/graph.hpp"
#include "troupe/cli/commands/init.hpp"
#include "troupe/cli/commands/load.hpp"
#include "troupe/cli/commands/mcp.hpp"
#include "troupe/cli/commands/memory.hpp"
#include "troupe/cli/commands/run.hpp"
#include "troupe/cli/commands/serve.hpp"
#include "troupe/cli/commands/sessions.hpp"
#include "troupe/cli/commands/state.hpp"
#include "troupe/cli/commands/store.hpp"
#include "troupe/cli/commands/trace.hpp"
#include "troupe/cli/lists/apps.hpp"
#include "troupe/cli/lists/runs.hpp"
#include "troupe/cli/lists/users.hpp"
#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/unknown_words.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/interrupts.hpp"
#include "troupe/cli/terminal/memory_end.hpp"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace cli {

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

// The name under which the user calls the program.
std::string name_of(int count, char** words) {
  return count > 0 && *words[0] != '\0' ? words[0] : "troupe";
}

int run_program(int count,
                char** words,
                const cli_options& own,
                interrupts& signals) {
  const auto name = name_of(count, words);
  agent_file_options agents;
  agents.tools = make_registry(own.tools);
  // A tool of the program takes the place of a standard one.
  for (const auto& standard : standard_tools())
    agents.tools.emplace(standard.name(), standard);
  agents.callbacks = own.callbacks;

  CLI::App program("Actor runtime for agent orchestration", "troupe");
  program.set_version_flag("--version", "troupe " TROUPE_VERSION);
  program.require_subcommand(0, 1);
  show_example(program,
               "troupe init hello --no-program\n"
               "troupe run hello --input 'Hello!'");
  program.footer("`troupe COMMAND --help` tells more about a command, and "
                 "begins with an example.");
  const init_command init(program, name);
  const run_command run(program, agents, name);
  const graph_command graph(program, agents);
  const serve_command serve(program, agents);
  const mcp_command mcp(program, agents);
  const apps_command apps(program);
  const users_command users(program);
  const sessions_command sessions(program);
  const runs_command runs(program);
  const state_command state(program);
  const memory_command memory(program);
  const experiment_command experiment(program, agents);
  const trace_command trace(program);
  const load_command load(program);
  const store_command store(program);
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
    const auto unknown = unknown_words(program);
    return report(error(errc::invalid_argument,
                        fmt::format("{} (see {})",
                                    unknown.empty() ? failure.what() : unknown,
                                    help_line(program))),
                  exit_usage);
  }
  const std::array<const program_command*, 15> commands = {&init,
                                                           &run,
                                                           &graph,
                                                           &serve,
                                                           &mcp,
                                                           &apps,
                                                           &users,
                                                           &sessions,
                                                           &runs,
                                                           &state,
                                                           &memory,
                                                           &experiment,
                                                           &trace,
                                                           &load,
                                                           &store};
  for (const auto* each : commands)
    if (each->is_chosen())
      return each->execute(signals);
  return print(program.help(), signals.descriptor());
}

} // namespace

} // namespace cli

int cli_main(int count, char** words, cli_options own) {
  cli::keep_standard_descriptors();
  cli::end_on_low_memory();
  try {
    if (const auto room = cli::check_address_space(); !room)
      return cli::report(room.error());
    cli::interrupts signals;
    return cli::run_program(count, words, own, signals);
  } catch (const error& failure) {
    return cli::report(failure);
  } catch (const std::exception& failure) {
    return cli::report(error(errc::internal, failure.what()));
  }
}

} // namespace troupe
