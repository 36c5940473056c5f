#include "troupe/cli/lists/apps.hpp"

namespace troupe::cli {

apps_command::apps_command(CLI::App& program)
  : names_command(program, "apps", "List and remove apps", "troupe apps list") {
  add_list("Print the names of the apps that have a user or a key");
  add_remove(
    "Remove an app with its users, sessions and keys, its artifacts (of "
    "--artifacts) and memory (of --memory), and print how many there were. "
    "After a failure, call it again to remove the rest",
    "troupe apps remove --app press --yes");
}

result<name_page> apps_command::read(session_service& sessions) const {
  return sessions.list_apps({page_.limit, page_.cursor}).get();
}

} // namespace troupe::cli
