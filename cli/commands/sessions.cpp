#include "troupe/cli/commands/sessions.hpp"

#include "troupe/cli/commands/session_transfer.hpp"
#include "troupe/cli/options/page_option.hpp"
#include "troupe/cli/options/state_option.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/options/subcommands.hpp"
#include "troupe/cli/sessions/event_lines.hpp"
#include "troupe/cli/sessions/key_history.hpp"
#include "troupe/cli/sessions/on_sessions.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/output.hpp"
#include "troupe/core/session_diff.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace troupe::cli {

namespace {

// The forms of `--from` and `--to`.
constexpr std::string_view form_json = "json";
constexpr std::string_view form_adk = "adk";

/// Options of all subcommands together; only one of these is chosen.
struct arguments {
  store_option store;
  std::optional<std::string> app;
  std::optional<std::string> user;
  std::optional<std::string> session;
  std::string state = "{}";
  std::optional<std::size_t> recent;
  std::optional<double> after;
  std::optional<std::uint64_t> at;
  std::optional<std::uint64_t> to;
  std::optional<std::uint64_t> expected;
  int days = 0;
  bool only_events = false;
  std::string before;
  bool live = false;
  std::optional<std::string> other;
  bool keep_open_calls = false;
  bool compensate = false;
  std::string name;
  std::optional<std::size_t> from;
  std::optional<std::size_t> count;
  page_option page;
  std::string file = "-";
  std::string form{form_json};
  bool skip_existing = false;

  /// For subcommands that require an app. The user is that of `troupe run`.
  session_key key() const {
    return {app.value(), user.value_or("user"), session.value_or("")};
  }
};

// -- checks of one option: return the error, or an empty text -----------------

std::string check_state_text(const std::string& text) {
  const auto read = read_state(text);
  return read ? std::string() : read.error().message();
}

std::string check_seconds(const std::string& text) {
  // The end of year 9999, so that microseconds fit into 64 bits.
  constexpr double seconds_max = 253402300799.0;
  const auto seconds = std::strtod(text.c_str(), nullptr);
  return std::isfinite(seconds) && std::abs(seconds) <= seconds_max
           ? std::string()
           : fmt::format("'{}' is not a time in seconds since 1970", text);
}

// -- shared by the subcommands ------------------------------------------------

result<runtime> open(const arguments& chosen, interrupts& signals) {
  signals.begin();
  return runtime::open(chosen.store.for_runtime());
}

// -- create, get, list, delete ------------------------------------------------

int create_session(const arguments& chosen, interrupts& signals) {
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      const auto key = chosen.key();
      const auto created
        = sessions.create(key, parse_json(chosen.state).value()).get();
      return created ? print_line(target, to_json(*created)) : created.error();
    });
}

int get_session(const arguments& chosen, interrupts& signals) {
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      get_options options{.num_recent_events = chosen.recent, .at = chosen.at};
      if (chosen.after)
        options.after = timestamp(
          std::chrono::microseconds(std::llround(*chosen.after * 1e6)));
      const auto fetched = sessions.get(chosen.key(), options).get();
      if (!fetched)
        return fetched.error();
      auto shown = to_json(*fetched);
      if (chosen.live)
        shown["events"] = to_json(fetched->events().live());
      return print_line(target, shown);
    });
}

int list_sessions(const arguments& chosen, interrupts& signals) {
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      const auto page = sessions
                          .list({chosen.app.value(),
                                 chosen.user,
                                 chosen.page.limit,
                                 chosen.page.cursor})
                          .get();
      if (!page)
        return page.error();
      auto rows = json::array();
      for (const auto& row : page->sessions)
        rows.push_back(to_json(row));
      const auto next
        = page->next_cursor.empty() ? json() : json(page->next_cursor);
      return print_line(target,
                        {{"sessions", std::move(rows)}, {"nextCursor", next}});
    });
}

int delete_session(const arguments& chosen, interrupts& signals) {
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      const auto removed
        = sessions.remove(chosen.key(), {.expected_revision = chosen.expected})
            .get();
      return removed ? print_line(target, {{"deleted", *removed}})
                     : removed.error();
    });
}

int expire_sessions(const arguments& chosen, interrupts& signals) {
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      const auto now = std::chrono::time_point_cast<timestamp::duration>(
        std::chrono::system_clock::now());
      expiry_request request(
        chosen.app.value(), now - std::chrono::days(chosen.days), chosen.user);
      const auto removed = chosen.only_events
                             ? sessions.expire_events(std::move(request)).get()
                             : sessions.expire(std::move(request)).get();
      const auto* const name = chosen.only_events ? "deletedEvents" : "deleted";
      return removed ? print_line(target, {{name, *removed}}) : removed.error();
    });
}

int trim_session(const arguments& chosen, interrupts& signals) {
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      const auto done = sessions.trim(chosen.key(), chosen.to.value()).get();
      return done ? print_line(target,
                               {{"firstRevision", done->first_revision},
                                {"deletedEvents", done->removed}})
                  : done.error();
    });
}

// -- fork, history, diff ------------------------------------------------------

int fork_session(const arguments& chosen, interrupts& signals) {
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      const auto forked
        = sessions
            .fork(chosen.key(),
                  {.at = chosen.at, .keep_open_calls = chosen.keep_open_calls},
                  chosen.other.value_or(""))
            .get();
      if (!forked)
        return forked.error();
      const auto fetched = sessions.get(forked->key()).get();
      return fetched ? print_line(target, to_json(*fetched)) : fetched.error();
    });
}

int print_history(const arguments& chosen, interrupts& signals) {
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) {
      return read_key_history(
        sessions, chosen.key(), chosen.name, [&target](const json& line) {
          return print_line(target, line);
        });
    });
}

int print_diff(const arguments& chosen, interrupts& signals) {
  if (!chosen.at && !chosen.to && !chosen.other)
    return report(error(errc::invalid_argument,
                        "diff needs --at, --to or --with: without them it "
                        "compares the session with itself"),
                  exit_usage);
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      auto other = chosen.key();
      other.id = chosen.other.value_or(other.id);
      const auto before = sessions.get(chosen.key(), {.at = chosen.at}).get();
      if (!before)
        return before.error();
      const auto after = sessions.get(other, {.at = chosen.to}).get();
      return after ? print_line(target, to_json(diff(*before, *after)))
                   : after.error();
    });
}

// -- rewind -------------------------------------------------------------------

json to_json(const rewound_session& done) {
  return {{"event", to_json(*done.event)},
          {"to", done.to},
          {"revision", done.revision},
          {"keptKeys", done.kept_keys},
          {"compensatedKeys", done.compensated_keys},
          {"cutRuns", done.cut_runs}};
}

int rewind_session(const arguments& chosen, interrupts& signals) {
  if (chosen.to.has_value() == !chosen.before.empty())
    return report(error(errc::invalid_argument,
                        "rewind needs one of --before INVOCATION and --to N"),
                  exit_usage);
  return on_sessions(
    chosen.store,
    signals,
    [&chosen](session_service& sessions, output& target) -> result<void> {
      auto place = chosen.to ? rewind_target::to(*chosen.to)
                             : rewind_target::before_run(chosen.before);
      const auto done = sessions
                          .rewind(chosen.key(),
                                  std::move(place),
                                  {.expected_revision = chosen.expected,
                                   .compensate = chosen.compensate})
                          .get();
      return done ? print_line(target, to_json(*done)) : done.error();
    });
}

// -- follow -------------------------------------------------------------------

// Prints each delivery until the reader ends, or a signal comes.
template <class Reader>
result<void> print_news(Reader news,
                        const arguments& chosen,
                        interrupts& signals,
                        output& target) {
  const std::stop_callback stop(signals.token(), [&news] { news.close(); });
  for (auto left = chosen.count.value_or(SIZE_MAX); left > 0; --left) {
    const auto next = news.next().get();
    if (!next)
      return next.error();
    if (!*next)
      return {};
    if (auto written = print_line(target, to_json(**next)); !written)
      return written;
  }
  return {};
}

// Without a session: the state of the user, or of the app.
shared_state state_of(session_service& sessions, const arguments& chosen) {
  return chosen.user ? sessions.state_of_user(chosen.app.value(), *chosen.user)
                     : sessions.state_of_app(chosen.app.value());
}

int follow_session(const arguments& chosen, interrupts& signals) {
  return on_sessions(
    chosen.store,
    signals,
    [&](session_service& sessions, output& target) -> result<void> {
      if (chosen.session)
        return print_news(sessions.follow(chosen.key(), {.from = chosen.from}),
                          chosen,
                          signals,
                          target);
      return print_news(
        state_of(sessions, chosen).follow({.from = chosen.from}),
        chosen,
        signals,
        target);
    });
}

// -- append -------------------------------------------------------------------

int append_events(const arguments& chosen, interrupts& signals) {
  auto owners = open(chosen, signals);
  if (!owners)
    return report(owners.error());
  // After a signal, events that are stored are still printed; a second signal
  // ends the program.
  constexpr int never = -1;
  output target(STDOUT_FILENO, never);
  const auto done = append_lines(
    owners->sessions(), chosen.key(), STDIN_FILENO, target, signals.token());
  return end(done, target, signals);
}

// -- export and import --------------------------------------------------------

session_transfer transfer_of(const arguments& chosen) {
  return {.app = chosen.app,
          .user = chosen.user,
          .session = chosen.session,
          .file = chosen.file,
          .is_for_adk = chosen.form == form_adk,
          .skips_existing = chosen.skip_existing};
}

int export_chosen(const arguments& chosen, interrupts& signals) {
  return write_sessions(
    transfer_of(chosen), chosen.store.for_runtime(), signals);
}

int import_chosen(const arguments& chosen, interrupts& signals) {
  return read_sessions(
    transfer_of(chosen), chosen.store.for_runtime(), signals);
}

// -- help --------------------------------------------------------------------

const std::string create_line
  = "troupe sessions create --app press --user ann --session s1\n";
const std::string append_line
  = "echo '{\"author\": \"user\", \"content\": {\"parts\": [{\"text\": "
    "\"Hi!\"}]}}' | troupe sessions append --app press --user ann --session "
    "s1\n";
const std::string export_line
  = "troupe sessions export --app press > press.jsonl\n";
const std::string to_adk_line
  = "troupe sessions export --app press --to adk sqlite:adk.db\n";

// -- options ------------------------------------------------------------------

CLI::Option* add_app(CLI::App& command, arguments& chosen) {
  return command.add_option("--app", chosen.app, "App")->type_name("A");
}

CLI::Option* add_user(CLI::App& command, arguments& chosen) {
  return command.add_option("--user", chosen.user, "User")->type_name("U");
}

CLI::Option* add_session(CLI::App& command, arguments& chosen) {
  return command.add_option("--session", chosen.session, "Session")
    ->type_name("S");
}

void add_form(CLI::App& command,
              arguments& chosen,
              const std::string& name,
              const std::string& description) {
  command.add_option(name, chosen.form, description)
    ->type_name("json|adk")
    ->check([](const std::string& text) {
      return text == form_json || text == form_adk
               ? std::string()
               : fmt::format("'{}' is not one of json, adk", text);
    })
    ->capture_default_str();
}

CLI::Option* add_key(CLI::App& command, arguments& chosen) {
  add_app(command, chosen)->required();
  auto* const user
    = add_user(command, chosen)->description("User; default: user");
  add_session(command, chosen)->required();
  return user;
}

CLI::Option* add_revision(CLI::App& command,
                          const std::string& name,
                          std::optional<std::uint64_t>& chosen) {
  return command.add_option(name, chosen)->type_name("N")->check(check_count);
}

} // namespace

struct sessions_command::subcommands : subcommand_table<arguments> {
  using subcommand_table::subcommand_table;
};

sessions_command::sessions_command(CLI::App& program)
  : program_command(program,
                    "sessions",
                    "Create, read, list, extend, delete and move sessions"),
    subcommands_(std::make_unique<subcommands>(parser())) {
  auto& chosen = subcommands_->chosen;
  show_example(parser(), create_line + append_line);

  auto& create = subcommands_->add(
    "create", "Create a session and print it", create_line, create_session);
  add_app(create, chosen)->required();
  add_user(create, chosen)->description("User; default: user");
  add_session(create, chosen)->description("Session; default: a new id");
  create
    .add_option("--state",
                chosen.state,
                "Initial state, a JSON object; keys may start with app: and "
                "user:")
    ->type_name("JSON")
    ->check(check_state_text)
    ->capture_default_str();

  auto& get = subcommands_->add(
    "get",
    "Print a session",
    create_line
      + "troupe sessions get --app press --user ann --session s1 --recent 10",
    get_session);
  add_key(get, chosen);
  get.add_option("--recent", chosen.recent, "Only the N newest events")
    ->type_name("N")
    ->check(check_count);
  get
    .add_option("--after",
                chosen.after,
                "Only events at this time or later, in seconds since 1970; "
                "applied after --recent")
    ->type_name("SECONDS")
    ->check(check_seconds);

  add_revision(get, "--at", chosen.at)
    ->description("The session as it was after N events; over PostgreSQL with "
                  "the present state of user and app");
  get.add_flag("--live",
               chosen.live,
               "Without the events that rewinds have taken back; applied last");

  auto& fork = subcommands_->add(
    "fork",
    "Create a session that goes on from an earlier revision of another one, "
    "and print it; events are shared, not copied",
    create_line + append_line
      + "troupe sessions fork --app press --user ann --session s1 --at 1 --as "
        "retry",
    fork_session);
  add_key(fork, chosen);
  chosen.store.add_artifacts_to(fork);
  add_revision(fork, "--at", chosen.at)
    ->description("Take the events up to number N; default: all");
  fork
    .add_option(
      "--as", chosen.other, "Id of the new session; default: a new id")
    ->type_name("ID");
  fork.add_flag("--keep-open-calls",
                chosen.keep_open_calls,
                "Keep calls open that wait for an answer from outside; they "
                "may then be answered in both sessions");

  auto& history = subcommands_->add(
    "history",
    "Print the values that a key had, one JSON object per change",
    "troupe sessions create --app press --user ann --session s1 --state "
    "'{\"topic\": \"owls\"}'\n"
    "troupe sessions history --app press --user ann --session s1 topic",
    print_history);
  add_key(history, chosen);
  history
    .add_option("KEY",
                chosen.name,
                "A key of the state; of app: and user: keys, the changes by "
                "events of this session")
    ->required();

  auto& compare = subcommands_->add(
    "diff",
    "Print how state and events differ between two revisions of a session, or "
    "between two sessions",
    create_line + append_line
      + "troupe sessions diff --app press --user ann --session s1 --at 0",
    print_diff);
  add_key(compare, chosen);
  add_revision(compare, "--at", chosen.at)
    ->description("Revision of --session; default: the newest");
  compare
    .add_option("--with", chosen.other, "Second session; default: --session")
    ->type_name("S");
  add_revision(compare, "--to", chosen.to)
    ->description("Revision of the second session; default: the newest");

  auto& rewind = subcommands_->add(
    "rewind",
    "Take back the events behind a place: one appended event restores the "
    "session's keys, and nothing is deleted. app: and user: keys stay",
    create_line + append_line
      + "troupe sessions rewind --app press --user ann --session s1 --to 0",
    rewind_session);
  add_key(rewind, chosen);
  auto* const before = rewind.add_option(
    "--before",
    chosen.before,
    "Take back the run of this invocationId, and all that came after it");
  before->type_name("INVOCATION");
  add_revision(rewind, "--to", chosen.to)
    ->description("Go back, or forward again, to the session after N events")
    ->excludes(before);
  add_revision(rewind, "--expected-revision", chosen.expected)
    ->description("Only if the session is at this revision");
  rewind.add_flag("--compensate",
                  chosen.compensate,
                  "Also undo the session's typed operations on app: and user: "
                  "keys, or refuse the rewind");

  auto& follow = subcommands_->add(
    "follow",
    "Print each event of a session once it is stored, one JSON object per "
    "line, until Ctrl-C; without --session, the newest state of the user, or "
    "of the app, after each change",
    create_line + append_line
      + "troupe sessions follow --app press --user ann --session s1 --from 0 "
        "--count 1",
    follow_session);
  add_app(follow, chosen)->required();
  add_user(follow, chosen)
    ->description("User; default: user, or without --session the app");
  add_session(follow, chosen)
    ->description("Session; default: the state of the user or the app");
  follow
    .add_option("--from",
                chosen.from,
                "Start after this revision, 0 for all events; default: only "
                "new events and changes")
    ->type_name("N")
    ->check(check_count);
  follow
    .add_option("--count", chosen.count, "End after N lines; default: never")
    ->type_name("N")
    ->check(check_count);

  auto& list
    = subcommands_->add("list",
                        "Print sessions without their events, newest update "
                        "first",
                        create_line + "troupe sessions list --app press",
                        list_sessions);
  add_app(list, chosen)->required();
  add_user(list, chosen)->description("User; default: all of the app");
  chosen.page.add_to(list, "Sessions");

  auto& append = subcommands_->add(
    "append",
    "Append events from stdin, one JSON object per line, and print each stored "
    "one once it is durable",
    create_line + append_line,
    append_events);
  add_key(append, chosen);

  auto& remove
    = subcommands_->add("delete",
                        "Delete a session; the state of user and app stays",
                        create_line
                          + "troupe sessions delete --app press --user ann "
                            "--session s1",
                        delete_session);
  // A removal needs the user's name in full.
  add_key(remove, chosen)->required()->description("User");
  add_revision(remove, "--expected-revision", chosen.expected)
    ->description("Only if the session is at this revision");
  chosen.store.add_artifacts_to(remove);

  auto& expire = subcommands_->add(
    "expire",
    "Delete the sessions of an app or user that have not been updated for some "
    "days; the state of user and app stays",
    create_line + "troupe sessions expire --app press --days 30",
    expire_sessions);
  add_app(expire, chosen)->required();
  add_user(expire, chosen)->description("User; default: all of the app");
  expire
    .add_option("--days",
                chosen.days,
                "Age in days: of the last update, or of events with --events")
    ->required()
    ->type_name("N")
    ->check(CLI::Range(1, 100'000));
  expire.add_flag(
    "--events",
    chosen.only_events,
    "Keep the sessions and delete only their events that are older "
    "than N days");
  chosen.store.add_artifacts_to(expire);

  auto& trim = subcommands_->add(
    "trim",
    "Delete the oldest events of a session; its state stays, and so do the "
    "events that forks share. The session can then be read, rewound, forked "
    "and followed at revision N and later",
    create_line + append_line
      + "troupe sessions trim --app press --user ann --session s1 --to 1",
    trim_session);
  // A removal needs the user's name in full.
  add_key(trim, chosen)->required()->description("User");
  add_revision(trim, "--to", chosen.to)
    ->description("Delete the events up to number N")
    ->required();

  auto& write = subcommands_->add(
    "export",
    "Print sessions as other ADKs read them, one JSON object per line, or "
    "write them into a new database of ADK Python",
    create_line + export_line + to_adk_line,
    export_chosen);
  add_app(write, chosen)->required();
  auto* user
    = add_user(write, chosen)->description("User; default: all of the app");
  add_session(write, chosen)
    ->description("Session; default: all of the user or app")
    ->needs(user);
  add_form(write,
           chosen,
           "--to",
           "json: session JSON on stdout; adk: a new SQLite file in the layout "
           "of ADK's DatabaseSessionService");
  write.add_option("FILE", chosen.file, "With --to adk: sqlite:PATH");

  auto& read = subcommands_->add(
    "import",
    "Create sessions with their events from the session JSON of other ADKs or "
    "from a database of ADK Python, and print them without their events",
    create_line + export_line
      + "troupe sessions import press.jsonl --app magazine\n" + to_adk_line
      + "troupe sessions import --from adk sqlite:adk.db --store "
        "sqlite:copy.db",
    import_chosen);
  add_app(read, chosen)
    ->description("App; default: that of the file. With --from adk: only "
                  "sessions of this app");
  add_user(read, chosen)
    ->description("User; default: that of the file. With --from adk: only "
                  "sessions of this user");
  add_session(read, chosen)
    ->description("Session; default: that of the file. With --from adk: only "
                  "sessions of this id");
  add_form(read,
           chosen,
           "--from",
           "json: session JSON; adk: a database of ADK Python, which is only "
           "read");
  read
    .add_option("FILE",
                chosen.file,
                "One session, or one on each line; -: stdin. With --from adk: "
                "sqlite:PATH or postgres:URL")
    ->capture_default_str();
  read.add_flag(
    "--skip-existing",
    chosen.skip_existing,
    "Skip sessions that exist already, to continue an interrupted import");
}

sessions_command::~sessions_command() = default;

int sessions_command::execute(interrupts& signals) const {
  return subcommands_->execute(signals);
}

} // namespace troupe::cli
