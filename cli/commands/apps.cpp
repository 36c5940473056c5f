#include "troupe/cli/commands/apps.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/page_option.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/sessions/cleaning.hpp"
#include "troupe/cli/sessions/on_sessions.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace troupe::cli {

struct apps_command::arguments {
  store_option store;
  std::string app;
  page_option page;
  bool is_confirmed = false;
  const CLI::App* list = nullptr;
};

namespace {

const std::string apps_example
  = "troupe sessions create --app press --user ann\n";

} // namespace

apps_command::apps_command(CLI::App& program)
  : program_command(program, "apps", "List and remove apps"),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  parser().require_subcommand(1);
  // Set before the subcommands, which inherit it.
  parser().footer(
    "Exit codes: 0 done; 1 a rule was broken, it failed, or the question was "
    "not answered\nwith yes; 2 the command line is wrong; 130 and 143 after "
    "Ctrl-C and SIGTERM.");
  show_example(parser(), apps_example + "troupe apps list");

  auto& list = *parser().add_subcommand(
    "list", "Print the names of the apps that have a user or a key");
  chosen.store.add_to(list);
  chosen.page.add_to(list, "Apps");
  chosen.list = &list;

  auto& remove = *parser().add_subcommand(
    "remove",
    "Remove an app with its users, sessions, keys and artifacts, and print "
    "how many there were. After a failure, call it again to remove the rest");
  show_example(remove, apps_example + "troupe apps remove --app press --yes");
  remove.add_option("--app", chosen.app, "App")->required()->type_name("A");
  remove.add_flag("--yes", chosen.is_confirmed, "Remove without a question");
  chosen.store.add_to(remove);
  chosen.store.add_artifacts_to(remove);
}

apps_command::~apps_command() = default;

int apps_command::execute(interrupts& signals) const {
  const auto& chosen = *arguments_;
  if (!chosen.list->parsed())
    return remove_from(
      chosen.store, {chosen.app, {}, chosen.is_confirmed}, signals);
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      const auto page
        = sessions.list_apps({chosen.page.limit, chosen.page.cursor}).get();
      return page ? print_line(target, to_line(*page, "apps")) : page.error();
    });
}

} // namespace troupe::cli
