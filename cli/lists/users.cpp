#include "troupe/cli/lists/users.hpp"

#include <CLI/CLI.hpp>

namespace troupe::cli {

users_command::users_command(CLI::App& program)
  : names_command(program,
                  "users",
                  "List and remove the users of an app",
                  "troupe users list --app press") {
  add_app(
    add_list("Print the names of an app's users, also those without sessions"));
  // A removal needs the user's name in full.
  add_remove("Remove a user with its sessions and keys, its artifacts (of "
             "--artifacts) and memory (of --memory), and print how many "
             "sessions there were",
             "troupe users remove --app press --user ann --yes")
    .add_option("--user", target_.user, "User")
    ->required()
    ->type_name("U");
}

result<name_page> users_command::read(session_service& sessions) const {
  return sessions.list_users({target_.app, page_.limit, page_.cursor}).get();
}

} // namespace troupe::cli
