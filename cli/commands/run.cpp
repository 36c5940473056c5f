#include "troupe/cli/commands/run.hpp"

#include "troupe/cli/options/agent_access.hpp"
#include "troupe/cli/options/compaction_option.hpp"
#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/model_option.hpp"
#include "troupe/cli/options/number_check.hpp"
#include "troupe/cli/options/prices_option.hpp"
#include "troupe/cli/options/state_option.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/options/telemetry_option.hpp"
#include "troupe/cli/talk/conversation.hpp"
#include "troupe/cli/talk/dialogue.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/progress.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/core/support/blank.hpp"
#include "troupe/models/recording_model.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/postgres/address.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cli {

struct run_command::arguments {
  std::string agent_file;
  std::optional<std::string> app;
  std::string user = "user";
  std::string session;
  std::string state = "{}";
  model_option model;
  store_option store;
  std::string output = "text";
  std::size_t model_calls_max = run_options().model_calls_max;
  std::optional<std::uint64_t> tokens_max;
  std::optional<std::uint64_t> session_tokens_max;
  compaction_option compaction;
  bool step_times = false;
  std::string lost_updates = "tell";
  bool stream = false;
  bool end_state = false;
  std::string record;
  std::string recover;
  bool allow_lost_temp = false;
  std::size_t recoveries_max = run_options().recoveries_max;
  agent_access access;
  prices_option prices;
};

namespace {

/// The name of a program, quoted only if it has to be.
std::string in_shell(const std::string& name) {
  constexpr std::string_view others = "./_-+";
  const bool plain = std::ranges::all_of(name, [&](unsigned char each) {
    return std::isalnum(each) != 0
           || others.find(static_cast<char>(each)) != others.npos;
  });
  return plain ? name : quoted(name);
}

std::optional<lost_updates> read_lost_updates(const std::string& text) {
  if (text == "tell")
    return lost_updates::tell;
  if (text == "refuse")
    return lost_updates::refuse;
  if (text == "ignore")
    return lost_updates::ignore;
  return std::nullopt;
}

/// Reads `CALL_ID=JSON`.
result<given_answer> read_answer(const std::string& text) {
  const auto separator = text.find('=');
  if (separator == std::string::npos || separator == 0)
    return error(
      errc::invalid_argument,
      fmt::format("--answer: expected CALL_ID=JSON, not '{}'", text));
  auto response = parse_json(std::string_view(text).substr(separator + 1));
  if (!response)
    return error(
      errc::invalid_argument,
      fmt::format("--answer {}: {}", text, response.error().message()));
  if (!response->is_object())
    response = json{{"result", std::move(*response)}};
  return given_answer{text.substr(0, separator), std::move(*response)};
}

/// Creates the session, or uses the existing one.
result<session_key> open_session(runtime& owners, create_request request) {
  const session_key wanted{request.app, request.user, request.id};
  auto created = owners.sessions().create(std::move(request)).get();
  if (created)
    return created->key();
  if (created.error().code() != errc::already_exists)
    return created.error();
  return check_key(wanted);
}

/// Requires an existing session, since an answer needs one.
result<session_key> find_session(runtime& owners,
                                 const create_request& request) {
  auto found
    = owners.sessions()
        .get({request.app, request.user, request.id}, {.num_recent_events = 0})
        .get();
  if (!found)
    return found.error();
  return found->key();
}

} // namespace

// Returns the command line that continues the session, up to the value of
// `--answer`.
std::string run_command::go_on_line(const arguments& chosen,
                                    const session_key& session) const {
  if (chosen.store.address() == "memory:")
    return {};
  auto line
    = fmt::format("{} run {} --store {} --app {} --user {} --session {}",
                  in_shell(program_name_),
                  quoted(chosen.agent_file),
                  quoted(leave_out_passwords(chosen.store.address())),
                  quoted(session.app),
                  quoted(session.user),
                  quoted(session.id));
  for (const auto& name : chosen.access.variables)
    line += " --allow-env " + quoted(name);
  for (const auto& name : chosen.access.commands)
    line += " --allow-command " + quoted(name);
  if (chosen.access.skips_dotenv)
    line += " --no-dotenv";
  return line;
}

std::string run_command::go_on_note(const arguments& chosen) {
  const auto& address = chosen.store.address();
  return leave_out_passwords(address) == address
           ? std::string()
           : "; passwords are left out: set PGPASSWORD, or keep them in "
             "~/.pgpass or a service file";
}

run_command::run_command(CLI::App& program,
                         agent_file_options agents,
                         std::string program_name)
  : program_command(program, "run", "Run an agent file on a session"),
    agents_(std::move(agents)),
    program_name_(std::move(program_name)),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  show_example(parser(),
               "troupe init hello --no-program\n"
               "troupe run hello --input 'Hello!' --state "
               "'{\"user:name\": \"Ann\"}'");
  parser()
    .add_option("AGENT_FILE",
                chosen.agent_file,
                "Agent file (YAML or JSON), or a folder with root_agent.yaml")
    ->required();
  // Read as plain text: CLI11's conversion to a list would split `[a,b]` and
  // drop `{}`.
  inputs_ = parser()
              .add_option("--input")
              ->description("Message of one invocation; may be repeated. "
                            "Without it, each line of stdin is one")
              ->type_name("TEXT")
              ->take_all()
              ->allow_extra_args(false);
  answers_ = parser()
               .add_option("--answer")
               ->description("Answer to a call that an earlier run has left "
                             "open; may be repeated, all in one message")
               ->type_name("CALL_ID=JSON")
               ->take_all()
               ->allow_extra_args(false);
  parser()
    .add_option("--recover",
                chosen.recover,
                "Continue a run whose process has ended, from its last event: "
                "its invocation id, or last for the newest one of the session "
                "(troupe runs lists them)")
    ->type_name("RUN")
    ->check([](const std::string& text) {
      return is_blank(text) ? std::string("it is empty; pass the id of a run, "
                                          "or last")
                            : std::string();
    });
  parser().add_flag("--allow-lost-temp",
                    chosen.allow_lost_temp,
                    "Recover a run that had written temp: keys, without them");
  parser()
    .add_option("--recoveries-max",
                chosen.recoveries_max,
                "Recoveries of a run after crashes; --recover refuses another")
    ->check(number_from(0))
    ->type_name("N")
    ->capture_default_str();
  parser()
    .add_option("--app", chosen.app, "App; default: the root agent's name")
    ->type_name("A");
  parser()
    .add_option("--user", chosen.user, "User")
    ->type_name("U")
    ->capture_default_str();
  parser()
    .add_option("--session",
                chosen.session,
                "Session, created if missing; default: a new one, whose id is "
                "printed on stderr")
    ->type_name("S");
  parser()
    .add_option("--state",
                chosen.state,
                "Initial state of a session that is created, a JSON object")
    ->type_name("JSON")
    ->capture_default_str();
  chosen.model.add_to(parser());
  chosen.access.add_to(parser());
  parser()
    .add_option(
      "--record",
      chosen.record,
      "Record the models' answers in a file, which scripted:FILE plays back")
    ->type_name("FILE");
  parser()
    .add_option("--model-calls-max",
                chosen.model_calls_max,
                "Model calls that one invocation may make")
    ->check(number_from(0))
    ->type_name("N")
    ->capture_default_str();
  parser()
    .add_option("--tokens-max",
                chosen.tokens_max,
                "Budget of tokens of one invocation, as the models count them; "
                "default: none")
    ->check(number_from(0))
    ->type_name("N");
  parser()
    .add_option("--session-tokens-max",
                chosen.session_tokens_max,
                "Budget of tokens of the session, earlier invocations "
                "included; default: none")
    ->check(number_from(0))
    ->type_name("N");
  chosen.compaction.add_to(parser());
  parser()
    .add_option("--lost-updates",
                chosen.lost_updates,
                "When an agent sets a key that has changed since it read it: "
                "tell counts it, refuse fails, ignore does nothing")
    ->type_name("tell|refuse|ignore")
    ->check([](const std::string& text) {
      return read_lost_updates(text)
               ? std::string()
               : fmt::format("'{}' is neither tell, refuse nor ignore", text);
    })
    ->capture_default_str();
  parser().add_flag("--stream",
                    chosen.stream,
                    "Models answer in pieces: --output json prints each as a "
                    "partial event, text shows them on the progress line");
  parser().add_flag("--end-state",
                    chosen.end_state,
                    "Print the session's state at the end, as a line of JSON");
  parser().add_flag(
    "--step-times",
    chosen.step_times,
    "Record in the events when models and tools worked, for troupe trace");
  chosen.prices.add_to(parser());
  chosen.store.add_to(parser());
  chosen.store.add_artifacts_to(parser());
  chosen.store.add_memory_to(parser());
  parser()
    .add_option("--output",
                chosen.output,
                "text: for people; json: one event per line, in wire form")
    ->type_name("text|json")
    ->check([](const std::string& text) {
      return text == "text" || text == "json"
               ? std::string()
               : fmt::format("'{}' is neither text nor json", text);
    })
    ->capture_default_str();
  parser().footer(
    "Prints each event as it is committed. On a terminal, without --input, it "
    "is a dialogue:\n/help there lists its commands.\n"
    "Exit codes: 0 done; 1 a rule was broken, the run failed, or its answer "
    "was "
    "blocked; 2 the\ncommand line is wrong; 130 and 143 after Ctrl-C and "
    "SIGTERM.");
}

run_command::~run_command() = default;

int run_command::execute(interrupts& signals) const {
  const auto& chosen = *arguments_;
  auto state = read_state(chosen.state);
  if (!state)
    return report(error(errc::invalid_argument,
                        fmt::format("--state: {}", state.error().message())),
                  exit_usage);

  const auto inputs = inputs_->results();
  for (std::size_t index = 0; index < inputs.size(); ++index)
    if (!is_utf8(inputs[index]))
      return report(error(errc::invalid_argument,
                          fmt::format("--input {}: not UTF-8", index + 1)));

  std::vector<given_answer> answers;
  for (const auto& text : answers_->results()) {
    auto read = read_answer(text);
    if (!read)
      return report(read.error(), exit_usage);
    answers.push_back(std::move(*read));
  }

  if (!answers.empty() && is_blank(chosen.session))
    return report(error(errc::invalid_argument,
                        "--answer needs --session, the session that waits"),
                  exit_usage);

  if (!chosen.recover.empty() && (is_blank(chosen.session) || !answers.empty()))
    return report(error(errc::invalid_argument,
                        is_blank(chosen.session)
                          ? "--recover needs --session, the session of the run"
                          : "--recover and --answer cannot be given together"),
                  exit_usage);

  const auto prices = chosen.prices.read();
  if (!prices)
    return report(prices.error());

  std::shared_ptr<recording> kept_answers;
  if (!chosen.record.empty()) {
    auto opened = recording::open(chosen.record);
    if (!opened)
      return report(opened.error());
    kept_answers = std::move(*opened);
  }
  const bool is_dialogue = inputs.empty() && answers.empty()
                           && chosen.recover.empty() && chosen.output == "text"
                           && ::isatty(STDIN_FILENO) == 1
                           && ::isatty(STDOUT_FILENO) == 1;
  const auto retries = std::make_shared<retry_notices>();
  auto options = agents_;
  chosen.access.grant(options);
  if (auto read = chosen.access.read_dotenv(chosen.agent_file, options); !read)
    return report(read.error());
  options.open = [&](model_source source, open_model_options usual) {
    source.streams = source.streams || chosen.stream || is_dialogue;
    usual.on_retry
      = [retries](const model_retry& told) { retries->tell(told); };
    auto opened = open_model(source, usual);
    if (opened && kept_answers)
      opened
        = std::make_shared<recording_model>(std::move(*opened), kept_answers);
    return opened;
  };
  options.on_fallback
    = [retries](const model_fallback& told) { retries->tell(told); };
  if (auto replaced = chosen.model.apply(options); !replaced)
    return report(replaced.error());
  const auto root = load_agent_file(chosen.agent_file, options);
  if (!root)
    return report(root.error());

  signals.begin();
  auto kept = chosen.store.for_runtime();
  const auto running = std::make_shared<running_agents>();
  kept.compaction = chosen.compaction.for_runtime();
  kept.plugins.push_back(running_agents::observer(running));
  telemetry_option telemetry;
  telemetry.describe(*root, chosen.app.value_or(root->name()));
  telemetry.watch(kept);
  auto owners = runtime::open(std::move(kept));
  if (!owners)
    return report(owners.error());
  create_request wanted{
    chosen.app.value_or(root->name()), chosen.user, chosen.session};
  wanted.state = std::move(*state);
  const auto key = answers.empty() && chosen.recover.empty()
                     ? open_session(*owners, std::move(wanted))
                     : find_session(*owners, wanted);
  if (!key)
    return report(key.error());
  if (is_blank(chosen.session))
    std::fputs(fmt::format("session: {}\n", key->id).c_str(), stderr);

  const auto cost = std::make_shared<run_cost>(*prices);
  const conversation::settings how{
    .as_json = chosen.output == "json",
    .prints_pieces = chosen.output == "json" && chosen.stream,
    .options = {.allow_lost_temp = chosen.allow_lost_temp,
                .recoveries_max = chosen.recoveries_max,
                .model_calls_max = chosen.model_calls_max,
                .tokens_max = chosen.tokens_max,
                .session_tokens_max = chosen.session_tokens_max,
                .lost_updates = *read_lost_updates(chosen.lost_updates),
                .step_times = chosen.step_times},
    .go_on = {go_on_line(chosen, *key), go_on_note(chosen)},
    .agents = running,
    .cost = cost};
  conversation talk(*owners, *root, *key, how, signals);
  result<void> outcome;
  if (is_dialogue)
    outcome = dialogue(*owners, *root, *key, how, retries, signals).talk();
  else if (!answers.empty())
    outcome = talk.answer(answers);
  else if (!chosen.recover.empty())
    outcome = talk.recover(chosen.recover);
  else if (inputs.empty())
    outcome = talk.say_lines();
  for (const auto& input : inputs)
    if (outcome)
      outcome = talk.say(input);
  if (outcome && chosen.end_state)
    outcome = talk.print_state();
  // Failed runs cost, too.
  if (const auto line = cost->line(); !line.empty())
    std::fputs((visible_text(line, " ") + '\n').c_str(), stderr);
  return talk.end(outcome);
}

} // namespace troupe::cli
