#include "troupe/cli/commands/users.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/page_option.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/sessions/cleaning.hpp"
#include "troupe/cli/sessions/on_sessions.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace troupe::cli {

struct users_command::arguments {
  store_option store;
  std::string app;
  std::string user;
  page_option page;
  bool is_confirmed = false;
  const CLI::App* list = nullptr;
};

namespace {

const std::string users_example
  = "troupe sessions create --app press --user ann\n";

} // namespace

users_command::users_command(CLI::App& program)
  : program_command(program, "users", "List and remove the users of an app"),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  parser().require_subcommand(1);
  // Set before the subcommands, which inherit it.
  parser().footer(
    "Exit codes: 0 done; 1 a rule was broken, it failed, or the question was "
    "not answered\nwith yes; 2 the command line is wrong; 130 and 143 after "
    "Ctrl-C and SIGTERM.");
  show_example(parser(), users_example + "troupe users list --app press");

  auto& list = *parser().add_subcommand(
    "list", "Print the names of an app's users, also those without sessions");
  list.add_option("--app", chosen.app, "App")->required()->type_name("A");
  chosen.store.add_to(list);
  chosen.page.add_to(list, "Users");
  chosen.list = &list;

  auto& remove = *parser().add_subcommand(
    "remove",
    "Remove a user with its sessions, keys and artifacts, and print how many "
    "sessions there were");
  show_example(
    remove, users_example + "troupe users remove --app press --user ann --yes");
  remove.add_option("--app", chosen.app, "App")->required()->type_name("A");
  // A removal needs the user's name in full.
  remove.add_option("--user", chosen.user, "User")->required()->type_name("U");
  remove.add_flag("--yes", chosen.is_confirmed, "Remove without a question");
  chosen.store.add_to(remove);
  chosen.store.add_artifacts_to(remove);
}

users_command::~users_command() = default;

int users_command::execute(interrupts& signals) const {
  const auto& chosen = *arguments_;
  if (!chosen.list->parsed())
    return remove_from(
      chosen.store, {chosen.app, chosen.user, chosen.is_confirmed}, signals);
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      const auto page
        = sessions
            .list_users({chosen.app, chosen.page.limit, chosen.page.cursor})
            .get();
      return page ? print_line(target, to_line(*page, "users")) : page.error();
    });
}

} // namespace troupe::cli
