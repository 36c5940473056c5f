#include "troupe/cli/commands/state.hpp"

#include "troupe/cli/options/page_option.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/options/subcommands.hpp"
#include "troupe/cli/sessions/on_sessions.hpp"
#include "troupe/cli/terminal/visible_text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cli {

namespace {

/// Options of all subcommands together; only one of these is chosen.
struct state_arguments {
  store_option store;
  std::string app;
  std::optional<std::string> user;
  std::optional<std::string> session;
  std::string key;
  std::string value;
  std::string id;
  std::optional<std::uint64_t> expected_revision;
};

std::string check_value(const std::string& text) {
  const auto read = parse_json(text);
  return read ? std::string()
              : fmt::format("'{}' is not JSON; text needs quotes, as in "
                            "'\"dark\"'",
                            shorten(text, 80));
}

/// Calls `act(session_service)` and prints its answer.
template <class Act>
int on_store(const state_arguments& chosen,
             interrupts& signals,
             const Act& act) {
  return on_sessions(
    chosen.store,
    signals,
    [&act](session_service& sessions, output& target) -> result<void> {
      const result<json> told = act(sessions);
      return told ? print_line(target, *told) : told.error();
    });
}

shared_state state_of(session_service& sessions,
                      const state_arguments& chosen) {
  return chosen.user ? sessions.state_of_user(chosen.app, *chosen.user)
                     : sessions.state_of_app(chosen.app);
}

json as_json(std::uint64_t revision, json state) {
  return {{"revision", revision}, {"state", std::move(state)}};
}

// Reads the keys of the session itself, without those of its user and app.
result<json> show_session(session_service& sessions, const session_key& key) {
  const auto held = sessions.get(key, {.num_recent_events = 0}).get();
  if (!held)
    return held.error();
  auto own = json::object();
  const auto all = held->state().all();
  for (const auto& [name, data] : all.items())
    if (split_key(name).where == scope::session)
      own[name] = data;
  return as_json(held->revision(), std::move(own));
}

int show(const state_arguments& chosen, interrupts& signals) {
  return on_store(
    chosen, signals, [&chosen](session_service& sessions) -> result<json> {
      if (chosen.session)
        return show_session(
          sessions,
          {chosen.app, chosen.user.value_or("user"), *chosen.session});
      const auto seen = state_of(sessions, chosen).snapshot().get();
      if (!seen)
        return seen.error();
      return as_json(seen->revision, seen->state.all());
    });
}

/// Calls `write(shared_state, shared_write_options)` and prints its answer.
template <class Write>
int change(const state_arguments& chosen,
           interrupts& signals,
           const Write& write) {
  return on_store(
    chosen, signals, [&](session_service& sessions) -> result<json> {
      const auto written
        = write(state_of(sessions, chosen),
                shared_write_options(chosen.id, chosen.expected_revision))
            .get();
      if (!written)
        return written.error();
      json shown{{"revision", written->revision}};
      if (written->value)
        shown["value"] = written->value->data();
      return shown;
    });
}

int set(const state_arguments& chosen, interrupts& signals) {
  return change(chosen, signals, [&chosen](const auto& state, auto options) {
    return state.set(
      chosen.key, parse_json(chosen.value).value(), std::move(options));
  });
}

int add(const state_arguments& chosen, interrupts& signals) {
  return change(chosen, signals, [&chosen](const auto& state, auto options) {
    return state.add(
      chosen.key, parse_json(chosen.value).value(), std::move(options));
  });
}

int erase(const state_arguments& chosen, interrupts& signals) {
  return change(chosen, signals, [&chosen](const auto& state, auto options) {
    return state.erase(chosen.key, std::move(options));
  });
}

const std::string set_line
  = "troupe state set app:theme '\"dark\"' --app press\n";
const std::string get_line = "troupe state get --app press\n";

} // namespace

struct state_command::subcommands : subcommand_table<state_arguments> {
  using subcommand_table::subcommand_table;

  CLI::App& add(const std::string& name,
                const std::string& description,
                const std::string& example,
                action run) {
    auto& added = subcommand_table::add(name, description, example, run);
    added.add_option("--app", chosen.app, "App")->type_name("A")->required();
    added
      .add_option("--user", chosen.user, "User; default: the app's own state")
      ->type_name("U");
    return added;
  }

  CLI::App& add_write(const std::string& name,
                      const std::string& description,
                      const std::string& example,
                      action run) {
    auto& added = add(name, description, example, run);
    added.add_option("KEY", chosen.key, "Key with its prefix: app: or user:")
      ->required();
    added
      .add_option(
        "--id", chosen.id, "Id of the write: sent again, it takes effect once")
      ->type_name("ID");
    added
      .add_option("--expected-revision",
                  chosen.expected_revision,
                  "Write only if the state has this revision")
      ->type_name("N")
      ->check(check_count);
    return added;
  }
};

state_command::state_command(CLI::App& program)
  : program_command(
    program,
    "state",
    "Read the state of an app, a user or a session; write that of an app or a "
    "user"),
    subcommands_(std::make_unique<subcommands>(parser())) {
  auto& chosen = subcommands_->chosen;
  show_example(parser(), set_line + get_line);

  subcommands_
    ->add("get",
          "Print the state of one scope and its revision: of the app, with "
          "--user of the user, with --session of the session alone",
          set_line + get_line,
          show)
    .add_option(
      "--session", chosen.session, "Session; its user is 'user' by default")
    ->type_name("S");
  subcommands_
    ->add_write("set",
                "Set a key, and print its value and the new revision",
                set_line
                  + "troupe state set user:name '\"Ann\"' --app press --user "
                    "ann",
                set)
    .add_option("JSON", chosen.value, "Value; null removes the key")
    ->required()
    ->check(check_value);
  subcommands_
    ->add_write("add",
                "Add to a number, and print the sum and the new revision",
                "troupe state add app:visits 1 --app press --id visit-17",
                add)
    .add_option("NUMBER", chosen.value, "Number to add")
    ->required()
    ->check(check_value);
  subcommands_->add_write("erase",
                          "Remove a key",
                          set_line + "troupe state erase app:theme --app press",
                          erase);
}

state_command::~state_command() = default;

int state_command::execute(interrupts& signals) const {
  return subcommands_->execute(signals);
}

} // namespace troupe::cli
