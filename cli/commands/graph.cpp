#include "troupe/cli/commands/graph.hpp"

#include "troupe/agents/drawing.hpp"
#include "troupe/agents/drawings/picture.hpp"
#include "troupe/agents/workflow_progress.hpp"
#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/report_file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
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
  store_option store;
  std::string app;
  std::string user = "user";
  std::string session;
  std::string invocation;
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

result<std::vector<workflow_view>> shown_workflows(workflow_progress seen,
                                                   const event_slice& events,
                                                   const std::string& run) {
  for (const auto& each : events)
    // The view has the conflict, and may be one that is not shown.
    static_cast<void>(seen.add(each));
  auto all = seen.workflows();
  if (!run.empty())
    std::erase_if(all, [&run](const workflow_view& each) {
      return std::ranges::find(each.invocations, run) == each.invocations.end();
    });
  // The drawing has the newest one of each workflow.
  std::map<std::string, const workflow_view*> newest;
  for (const auto& each : all)
    newest[each.name] = &each;
  for (const auto& [name, each] : newest)
    if (each->conflict)
      return *each->conflict;
  return all;
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
  chosen.store.add_to(parser());
  auto* const app
    = parser().add_option("--app", chosen.app, "App of --session");
  app->type_name("A");
  auto* const session = parser().add_option(
    "--session",
    chosen.session,
    "Show the states of the nodes of workflows, from the log of this session");
  session->type_name("S")->needs(app);
  app->needs(session);
  parser()
    .add_option("--user", chosen.user, "User of --session")
    ->needs(session)
    ->type_name("U")
    ->capture_default_str();
  parser()
    .add_option("--invocation",
                chosen.invocation,
                "Show only workflows with events of this invocation; default: "
                "the newest one of each workflow")
    ->needs(session)
    ->type_name("ID");
  parser().footer(
    "Nothing of the file is started or asked, so no key, --allow-command or "
    "--allow-env is needed.\nOf an MCP server, the tools of its tool_filter "
    "are known.\n"
    "Exit codes: 0 done; 1 a rule was broken or it failed; 2 the command line "
    "is wrong;\n130 and 143 after Ctrl-C and SIGTERM.");
}

graph_command::~graph_command() = default;

result<std::vector<workflow_view>>
graph_command::read_workflows(const agent& root) const {
  const auto& chosen = *arguments_;
  auto owners = runtime::open(chosen.store.for_runtime());
  if (!owners)
    return owners.error();
  const auto held
    = owners->sessions().get({chosen.app, chosen.user, chosen.session}).get();
  if (!held)
    return held.error();
  auto seen = shown_workflows(
    workflow_progress(root), held->events(), chosen.invocation);
  if (seen && seen->empty())
    return error(
      errc::not_found,
      chosen.invocation.empty()
        ? fmt::format("session {} has no workflows", to_string(held->key()))
        : fmt::format("invocation '{}' of session {} has no "
                      "workflows",
                      chosen.invocation,
                      to_string(held->key())));
  return seen;
}

int graph_command::execute(interrupts& signals) const {
  const auto& chosen = *arguments_;
  report_file file;
  if (auto opened = file.open(chosen.output); !opened)
    return report(opened.error(), exit_usage);
  const auto root = read_agent(chosen.agent_file, agents_);
  if (!root)
    return report(root.error());
  std::vector<workflow_view> seen;
  if (!chosen.session.empty()) {
    auto read = read_workflows(*root);
    if (!read)
      return report(read.error());
    seen = std::move(*read);
  }
  auto drawn = chosen.format == "text"
                 ? to_text(*root, seen)
                 : to_dot(*root, {.dark = chosen.dark, .workflows = seen});
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
