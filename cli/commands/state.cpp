#include "troupe/cli/commands/state.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/sessions/on_sessions.hpp"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace troupe::cli {

struct state_command::arguments {
  store_option store;
  std::string app;
  std::optional<std::string> user;
  std::optional<std::string> session;
};

namespace {

// Reads the keys of the session itself, without those of its user and app.
result<json> session_state(session_service& sessions, const session_key& key) {
  const auto held = sessions.get(key, {.num_recent_events = 0}).get();
  if (!held)
    return held.error();
  auto own = json::object();
  const auto all = held->state().all();
  for (const auto& [name, data] : all.items())
    if (split_key(name).where == scope::session)
      own[name] = data;
  return own;
}

} // namespace

state_command::state_command(CLI::App& program)
  : program_command(
    program, "state", "Show the state of an app, a user or a session"),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  parser().require_subcommand(1);
  // Set before the subcommands, which inherit it.
  parser().footer(
    "Exit codes: 0 done; 1 a rule was broken or it failed; 2 the command line "
    "is wrong;\n130 and 143 after Ctrl-C and SIGTERM.");
  show_example(parser(),
               "troupe sessions create --app press --user ann --state "
               "'{\"user:theme\": \"dark\"}'\n"
               "troupe state get --app press --user ann");

  auto& get = *parser().add_subcommand(
    "get",
    "Print the keys of one scope as a JSON object, without prefixes: those of "
    "the app, with --user those of the user, with --session those of the "
    "session");
  get.add_option("--app", chosen.app, "App")->required()->type_name("A");
  get.add_option("--user", chosen.user, "User; default with --session: user")
    ->type_name("U");
  get.add_option("--session", chosen.session, "Session")->type_name("S");
  chosen.store.add_to(get);
}

state_command::~state_command() = default;

int state_command::execute(interrupts& signals) const {
  const auto& chosen = *arguments_;
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      const auto state
        = chosen.session ? session_state(
            sessions,
            {chosen.app, chosen.user.value_or("user"), *chosen.session})
          : chosen.user ? sessions.user_state(chosen.app, *chosen.user).get()
                        : sessions.app_state(chosen.app).get();
      return state ? print_line(target, *state) : state.error();
    });
}

} // namespace troupe::cli
