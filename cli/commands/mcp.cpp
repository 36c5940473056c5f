#include "troupe/cli/commands/mcp.hpp"

#include "troupe/cli/options/agent_access.hpp"
#include "troupe/cli/options/compaction_option.hpp"
#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/model_option.hpp"
#include "troupe/cli/options/number_check.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/mcp/mcp_server.hpp"
#include "troupe/models/open_model.hpp"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::cli {

struct mcp_command::arguments {
  std::string agent_file;
  mcp_server_options server;
  model_option model;
  // Clients start the program in folders of their choice, so it makes no file
  // there unless it is told to.
  store_option store{"memory:"};
  compaction_option compaction;
  agent_access access;
  std::uint64_t grace = 10; // Seconds.
};

namespace {

// A tool that prints would break the protocol, and one that reads would take
// messages away. So both get other files under the numbers of stdin and stdout.
class protocol_files {
public:
  protocol_files()
    : input_(copy_of(STDIN_FILENO)),
      output_(copy_of(STDOUT_FILENO)) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0
        || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
      throw std::system_error(
        errno, std::generic_category(), "replace stdin and stdout");
    ::close(nothing);
  }

  ~protocol_files() {
    ::close(input_);
    ::close(output_);
  }

  protocol_files(const protocol_files&) = delete;
  protocol_files& operator=(const protocol_files&) = delete;

  int input() const noexcept { return input_; }

  int output() const noexcept { return output_; }

private:
  static int copy_of(int descriptor) {
    const int made = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (made < 0)
      throw std::system_error(
        errno, std::generic_category(), "copy stdin and stdout");
    return made;
  }

  int input_;
  int output_;
};

} // namespace

mcp_command::mcp_command(CLI::App& program, agent_file_options agents)
  : program_command(
    program, "mcp", "Offer an agent as an MCP tool over stdin and stdout"),
    agents_(std::move(agents)),
    arguments_(std::make_unique<arguments>()) {
  show_example(parser(),
               "troupe init hello --no-program\n"
               "troupe mcp hello < /dev/null");
  add_options();
  parser().footer(
    "An MCP client starts the command and calls the tool, which has the name "
    "of the agent;\ndocs/mcp.md describes it. The end of stdin, Ctrl-C and "
    "SIGTERM let calls finish.\n"
    "Exit codes: 0 stdin has ended; 1 a rule was broken, it failed, or the "
    "client has closed\nstdout; 2 the command line is wrong; 130 and 143 after "
    "Ctrl-C and SIGTERM.");
}

mcp_command::~mcp_command() = default;

void mcp_command::add_options() {
  auto& chosen = *arguments_;
  parser()
    .add_option("AGENT_FILE",
                chosen.agent_file,
                "Agent file (YAML or JSON), or a folder with root_agent.yaml")
    ->required();
  parser()
    .add_option(
      "--app", chosen.server.app, "App; default: the root agent's name")
    ->type_name("A");
  parser()
    .add_option("--user", chosen.server.user, "User")
    ->type_name("U")
    ->capture_default_str();
  chosen.model.add_to(parser());
  chosen.access.add_to(parser());
  parser()
    .add_option("--calls-max",
                chosen.server.calls_max,
                "Calls under way; more are refused")
    ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'024}))
    ->type_name("N")
    ->capture_default_str();
  parser()
    .add_option("--grace",
                chosen.grace,
                "Seconds that calls may take to end after the end of stdin or "
                "a signal; then they are cancelled")
    ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{86'400}))
    ->type_name("S")
    ->capture_default_str();
  parser()
    .add_option("--model-calls-max",
                chosen.server.runs.model_calls_max,
                "Model calls that one call of the tool may make")
    ->check(number_from(0))
    ->type_name("N")
    ->capture_default_str();
  parser()
    .add_option("--tokens-max",
                chosen.server.runs.tokens_max,
                "Budget of tokens of one call, as the models count them; "
                "default: none")
    ->check(number_from(0))
    ->type_name("N");
  parser()
    .add_option("--session-tokens-max",
                chosen.server.runs.session_tokens_max,
                "Budget of tokens of each session; default: none")
    ->check(number_from(0))
    ->type_name("N");
  chosen.compaction.add_to(parser());
  chosen.store.add_to(parser());
  chosen.store.add_artifacts_to(parser());
  chosen.store.add_memory_to(parser());
}

int mcp_command::execute(interrupts& signals) const {
  const auto& chosen = *arguments_;
  if (::isatty(STDIN_FILENO) == 1)
    fmt::print(stderr,
               "troupe mcp reads messages of MCP from stdin: an MCP client "
               "starts it\n");
  const protocol_files files;
  auto agents = agents_;
  chosen.access.grant(agents);
  if (auto read = chosen.access.read_dotenv(chosen.agent_file, agents); !read)
    return report(read.error());
  agents.open
    = [](const model_source& source, const open_model_options& usual) {
        return open_model(source, usual);
      };
  if (auto replaced = chosen.model.apply(agents); !replaced)
    return report(replaced.error());
  const auto root = load_agent_file(chosen.agent_file, agents);
  if (!root)
    return report(root.error());

  signals.begin();
  auto kept = chosen.store.for_runtime();
  kept.compaction = chosen.compaction.for_runtime();
  auto owners = runtime::open(std::move(kept));
  if (!owners)
    return report(owners.error());
  const std::chrono::seconds grace(chosen.grace);
  // Time for the last answers and for the store, after the grace period.
  constexpr std::chrono::seconds closing{30};
  signals.set_exit_timeout(grace + closing);
  auto wanted = chosen.server;
  wanted.keeps_sessions = chosen.store.address() != "memory:";
  wanted.input = files.input();
  wanted.output = files.output();
  wanted.grace = grace;
  const auto served
    = serve_agent(*owners, *root, std::move(wanted), signals.token());
  const auto closed = owners->shut_down();
  // Nothing has to be said about a client that has left.
  if (!served && served.error().code() != errc::cancelled)
    return report(served.error());
  if (!closed)
    return report(closed.error());
  if (signals.signal() != 0)
    return interrupts::exit_code(signals.signal());
  return served ? exit_done : exit_failed;
}

} // namespace troupe::cli
