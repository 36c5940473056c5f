#include "troupe/cli/commands/run.hpp"

#include "troupe/agents/turns/resumption.hpp"
#include "troupe/cli/options/allow_env_option.hpp"
#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/state_option.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/event_text.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/input_lines.hpp"
#include "troupe/cli/terminal/output.hpp"
#include "troupe/cli/terminal/progress.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
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
  std::optional<std::string> model;
  store_option store;
  std::string output = "text";
  std::size_t model_calls_max = run_options().model_calls_max;
  bool step_times = false;
  bool stream = false;
  std::string record;
  std::vector<std::string> allowed_variables;
};

namespace {

/// The word, quoted for a shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char next : word)
    text += next == '\'' ? std::string("'\\''") : std::string(1, next);
  return text + "'";
}

/// The name of a program, quoted only if it has to be.
std::string in_shell(const std::string& name) {
  constexpr std::string_view others = "./_-+";
  const bool plain = std::ranges::all_of(name, [&](unsigned char each) {
    return std::isalnum(each) != 0
           || others.find(static_cast<char>(each)) != others.npos;
  });
  return plain ? name : quoted(name);
}

/// `CALL_ID=JSON`.
struct given_answer {
  std::string call_id;
  json response;
};

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

/// The command line that continues a session that waits; empty if it cannot be
/// continued.
struct command_line {
  std::string text;
  std::string note; // Extra advice, starts with a semicolon.
};

/// The invocations of one session, in order.
class conversation {
public:
  conversation(runtime& owners,
               const agent& root,
               session_key session,
               bool as_json,
               bool prints_pieces,
               run_options options,
               command_line go_on,
               std::shared_ptr<running_agents> agents,
               const interrupts& signals)
    : owners_(owners),
      root_(root),
      session_(std::move(session)),
      as_json_(as_json),
      prints_pieces_(prints_pieces),
      options_(options),
      go_on_(std::move(go_on)),
      agents_(std::move(agents)),
      signals_(signals),
      output_(STDOUT_FILENO, signals.descriptor()) {}

  result<void> say(const std::string& input) { return say(user_text(input)); }

  /// Answers calls that an earlier run has left open, by their ids.
  result<void> answer(const std::vector<given_answer>& given) {
    std::vector<std::string> ids;
    ids.reserve(given.size());
    for (const auto& each : given)
      ids.push_back(each.call_id);
    const auto held = events_with_calls(ids);
    if (!held)
      return held.error();
    content message("user", {});
    for (const auto& each : given) {
      const auto found = find_call(*held, each.call_id);
      message.parts.emplace_back(function_response{
        each.call_id, found ? found->call->name : "", each.response});
    }
    return say(std::move(message));
  }

  result<void> say(content message) {
    if (signals_.token().stop_requested())
      return error(errc::cancelled, "interrupted");
    progress line(agents_);
    auto run = owners_.run(root_, session_, std::move(message), options_);
    const std::stop_callback interrupted(signals_.token(),
                                         [&run] { run.cancel(); });
    for (;;) {
      auto next = run.next().get();
      if (!next)
        return next.error();
      if (!*next) {
        tell_waits(run.waits_for());
        return {};
      }
      const bool is_piece = (*next)->partial;
      if (is_piece)
        line.hear((*next)->author, (*next)->text());
      else
        line.count_event();
      if (is_piece && !prints_pieces_)
        continue;
      auto written = line.without_line([this, &next] { return print(**next); });
      if (!written) {
        run.cancel();
        const auto unused
          = run.wait().get(); // The write has failed, not the run.
        return written.error();
      }
    }
  }

  result<void> say_lines() {
    input_lines lines(STDIN_FILENO, signals_.descriptor());
    for (;;) {
      auto line = lines.next();
      if (!line)
        return line.error();
      if (!*line)
        return {};
      if (auto said = say(**line); !said)
        return error(
          said.error().code(),
          fmt::format("line {}: {}", lines.number(), said.error().message()));
    }
  }

  /// Returns the exit code after the last invocation.
  int end(const result<void>& done) const {
    return cli::end(done, output_, signals_);
  }

private:
  // The newest events of the session, up to the calls of all `ids`; all events
  // if one is missing.
  result<event_slice>
  events_with_calls(const std::vector<std::string>& ids) const {
    for (std::size_t count = 64;; count *= 4) {
      const auto held
        = owners_.sessions().get(session_, {.num_recent_events = count}).get();
      if (!held)
        return held.error();
      const bool has_all = std::ranges::all_of(ids, [&held](const auto& id) {
        return find_call(held->events(), id).has_value();
      });
      if (has_all || held->events().size() == held->revision())
        return held->events();
    }
  }

  // Prints the questions that the user has to answer.
  void tell_waits(const std::vector<std::string>& ids) const {
    if (ids.empty())
      return;
    const auto held = events_with_calls(ids);
    for (const auto& id : ids) {
      const auto found
        = held ? find_call(*held, id) : std::optional<found_call>();
      const auto line = visible_text("waiting: " + described(id, found), " ");
      std::fputs((line + '\n').c_str(), stderr);
    }
  }

  std::string described(const std::string& id,
                        const std::optional<found_call>& found) const {
    const bool is_question = found && found->call->name == confirmation_name;
    std::string what;
    if (is_question)
      what = "may this be called? "
             + troupe::to_text(found->call->args->value("originalFunctionCall",
                                                        json::object()));
    else if (found)
      what = fmt::format("a call of '{}'", found->call->name);
    if (go_on_.text.empty())
      return what
             + "; the run cannot be continued, since the session ends with "
               "this program (--store memory:)";
    return fmt::format(
      "{}; go on with {} --answer {}{}",
      what,
      go_on_.text,
      quoted(id + (is_question ? R"(={"confirmed": true})" : "=JSON")),
      go_on_.note);
  }

  result<void> print(const event& said) {
    return output_.write(as_json_ ? visible_json(to_json(said)) + '\n'
                                  : show(said));
  }

  // The first four outlive the conversation, which exists during one `execute`.
  runtime& owners_;
  const agent& root_;
  session_key session_;
  bool as_json_;
  bool prints_pieces_;
  run_options options_;
  command_line go_on_;
  const std::shared_ptr<running_agents> agents_;
  const interrupts& signals_;
  output output_;
};

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

// The command line that continues the session, up to its answer.
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
  for (const auto& name : chosen.allowed_variables)
    line += " --allow-env " + quoted(name);
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
  : command_(program.add_subcommand("run", "Run an agent file on a session")),
    agents_(std::move(agents)),
    program_name_(std::move(program_name)),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  show_example(*command_,
               "troupe init hello --no-program\n"
               "troupe run hello --input 'Hello!' --state "
               "'{\"user:name\": \"Ann\"}'");
  command_
    ->add_option("AGENT_FILE",
                 chosen.agent_file,
                 "Agent file (YAML or JSON), or a folder with root_agent.yaml")
    ->required();
  // Read as plain text: CLI11's conversion to a list would split `[a,b]` and
  // drop `{}`.
  inputs_ = command_->add_option("--input")
              ->description("Message of one invocation; may be repeated. "
                            "Without it, each line of stdin is one")
              ->type_name("TEXT")
              ->take_all()
              ->allow_extra_args(false);
  answers_ = command_->add_option("--answer")
               ->description("Answer to a call that an earlier run has left "
                             "open; may be repeated, all in one message")
               ->type_name("CALL_ID=JSON")
               ->take_all()
               ->allow_extra_args(false);
  command_
    ->add_option("--app", chosen.app, "App; default: the root agent's name")
    ->type_name("A");
  command_->add_option("--user", chosen.user, "User")
    ->type_name("U")
    ->capture_default_str();
  command_
    ->add_option("--session",
                 chosen.session,
                 "Session, created if missing; default: a new one, whose id is "
                 "printed on stderr")
    ->type_name("S");
  command_
    ->add_option("--state",
                 chosen.state,
                 "Initial state of a session that is created, a JSON object")
    ->type_name("JSON")
    ->capture_default_str();
  command_
    ->add_option(
      "--model",
      chosen.model,
      "Model in place of every agent's own: openai:NAME, gemini-..., "
      "claude-..., scripted:FILE")
    ->type_name("M");
  add_allow_env(*command_, chosen.allowed_variables);
  command_
    ->add_option(
      "--record",
      chosen.record,
      "Record the models' answers in a file, which scripted:FILE plays back")
    ->type_name("FILE");
  command_
    ->add_option("--model-calls-max",
                 chosen.model_calls_max,
                 "Model calls that one invocation may make")
    ->check(CLI::NonNegativeNumber)
    ->type_name("N")
    ->capture_default_str();
  command_->add_flag("--stream",
                     chosen.stream,
                     "Models answer in pieces: --output json prints each as a "
                     "partial event, text shows them on the progress line");
  command_->add_flag(
    "--step-times",
    chosen.step_times,
    "Record in the events when models and tools worked, for troupe trace");
  chosen.store.add_to(*command_);
  chosen.store.add_artifacts_to(*command_);
  command_
    ->add_option("--output",
                 chosen.output,
                 "text: for people; json: one event per line, in wire form")
    ->type_name("text|json")
    ->check([](const std::string& text) {
      return text == "text" || text == "json"
               ? std::string()
               : fmt::format("'{}' is neither text nor json", text);
    })
    ->capture_default_str();
  command_->footer(
    "Prints each event as it is committed.\n"
    "Exit codes: 0 done; 1 a rule was broken or the run failed; 2 the command "
    "line is wrong;\n130 and 143 after Ctrl-C and SIGTERM.");
}

run_command::~run_command() = default;

bool run_command::is_chosen() const {
  return command_->parsed();
}

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
                        "--answer needs the --session that waits for it"),
                  exit_usage);

  std::shared_ptr<recording> kept_answers;
  if (!chosen.record.empty()) {
    auto opened = recording::open(chosen.record);
    if (!opened)
      return report(opened.error());
    kept_answers = std::move(*opened);
  }
  auto options = agents_;
  options.open = [&kept_answers, &chosen](model_source source,
                                          const std::filesystem::path& base) {
    source.streams = source.streams || chosen.stream;
    auto opened = open_model(
      source, {.allowed_variables = chosen.allowed_variables, .base = base});
    if (opened && kept_answers)
      opened
        = std::make_shared<recording_model>(std::move(*opened), kept_answers);
    return opened;
  };
  if (chosen.model) {
    auto model = options.open({.name = *chosen.model}, {});
    if (!model)
      return report(model.error());
    options.model = std::move(*model);
  }
  const auto root = load_agent_file(chosen.agent_file, options);
  if (!root)
    return report(root.error());

  signals.begin();
  auto kept = chosen.store.for_runtime();
  const auto running = std::make_shared<running_agents>();
  kept.plugins.push_back(running_agents::observer(running));
  auto owners = runtime::open(std::move(kept));
  if (!owners)
    return report(owners.error());
  create_request wanted{
    chosen.app.value_or(root->name()), chosen.user, chosen.session};
  wanted.state = std::move(*state);
  const auto key = answers.empty() ? open_session(*owners, std::move(wanted))
                                   : find_session(*owners, wanted);
  if (!key)
    return report(key.error());
  if (is_blank(chosen.session))
    std::fputs(fmt::format("session: {}\n", key->id).c_str(), stderr);

  conversation talk(*owners,
                    *root,
                    *key,
                    chosen.output == "json",
                    chosen.output == "json" && chosen.stream,
                    {.model_calls_max = chosen.model_calls_max,
                     .step_times = chosen.step_times},
                    {go_on_line(chosen, *key), go_on_note(chosen)},
                    running,
                    signals);
  result<void> outcome;
  if (!answers.empty())
    outcome = talk.answer(answers);
  else if (inputs.empty())
    outcome = talk.say_lines();
  for (const auto& input : inputs)
    if (outcome)
      outcome = talk.say(input);
  return talk.end(outcome);
}

} // namespace troupe::cli
