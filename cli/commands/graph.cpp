#include "troupe/cli/commands/graph.hpp"

#include "troupe/agents/drawing.hpp"
#include "troupe/agents/drawings/picture.hpp"
#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/report_file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::cli {

struct graph_command::arguments {
  std::string agent_file;
  std::string format = "text";
  std::string output;
  bool dark = false;
};

namespace {

namespace fs = std::filesystem;

constexpr auto root_file = "root_agent.yaml";

bool has_agent(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / root_file, ignored);
}

// A folder of several agents is served as a whole, but a drawing is of one.
result<void> check_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored) || has_agent(folder))
    return {};
  std::vector<std::string> names;
  for (const auto& each : fs::directory_iterator(folder, ignored))
    if (each.is_directory(ignored) && has_agent(each.path()))
      names.push_back(each.path().string());
  if (names.empty())
    return {};
  std::ranges::sort(names);
  return error(errc::not_found,
               fmt::format("{}: there is no {}, and the folders in it are "
                           "agents of their own: name one of {}",
                           folder.string(),
                           root_file,
                           fmt::join(names, ", ")));
}

result<agent> read_agent(const fs::path& file, agent_file_options options) {
  if (auto one = check_folder(file); !one)
    return one.error();
  options.only_shown = true;
  return load_agent_file(file, options);
}

} // namespace

graph_command::graph_command(CLI::App& program, agent_file_options agents)
  : program_command(program, "graph", "Draw the agents of a file"),
    agents_(std::move(agents)),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  show_example(parser(),
               "troupe init hello --no-program\n"
               "troupe graph hello\n"
               "troupe graph hello --format dot --output hello.dot");
  parser()
    .add_option("AGENT_FILE",
                chosen.agent_file,
                "Agent file (YAML or JSON), or a folder with root_agent.yaml")
    ->required();
  parser()
    .add_option("--format",
                chosen.format,
                "text: lines for a terminal; dot: a graph for Graphviz; svg: a "
                "picture, which the program dot of Graphviz makes")
    ->type_name("text|dot|svg")
    ->check([](const std::string& text) {
      return text == "text" || text == "dot" || text == "svg"
               ? std::string()
               : fmt::format("'{}' is neither text, dot nor svg", text);
    })
    ->capture_default_str();
  parser()
    .add_option(
      "--output", chosen.output, "Write to a file; default: to stdout")
    ->type_name("FILE");
  parser().add_flag("--dark", chosen.dark, "Colours for a dark background");
  parser().footer(
    "Nothing of the file is started or asked, so no key, --allow-command or "
    "--allow-env is needed.\nOf an MCP server, the tools of its tool_filter "
    "are known.\n"
    "Exit codes: 0 done; 1 a rule was broken or it failed; 2 the command line "
    "is wrong;\n130 and 143 after Ctrl-C and SIGTERM.");
}

graph_command::~graph_command() = default;

int graph_command::execute(interrupts& signals) const {
  const auto& chosen = *arguments_;
  report_file file;
  if (auto opened = file.open(chosen.output); !opened)
    return report(opened.error(), exit_usage);
  const auto root = read_agent(chosen.agent_file, agents_);
  if (!root)
    return report(root.error());
  auto drawn = chosen.format == "text" ? to_text(*root)
                                       : to_dot(*root, {.dark = chosen.dark});
  signals.begin();
  if (chosen.format == "svg") {
    auto picture = drawings::to_svg(drawn, signals.token());
    if (!picture)
      return signals.signal() != 0 ? interrupts::exit_code(signals.signal())
                                   : report(picture.error());
    drawn = std::move(*picture);
  }
  if (!file.is_wanted())
    return print(drawn, signals.descriptor());
  const auto written = file.finish(drawn);
  return written ? exit_done : report(written.error());
}

} // namespace troupe::cli
