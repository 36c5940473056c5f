#include "troupe/cli/commands/serve.hpp"

#include "troupe/cli/options/agent_access.hpp"
#include "troupe/cli/options/compaction_option.hpp"
#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/model_option.hpp"
#include "troupe/cli/options/number_check.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/options/telemetry_option.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/log.hpp"
#include "troupe/core/support/low_memory.hpp"
#include "troupe/core/support/text_file.hpp"
#include "troupe/server/server.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cli {

struct serve_command::arguments {
  std::string folder = ".";
  store_option store;
  server_options server{.port = 8000};
  model_option model;
  compaction_option compaction;
  agent_access access;
  std::string token_file;
  std::string log = "text";
  std::uint64_t grace = 10;                                       // Seconds.
  std::uint64_t body_max = server_limits().body_bytes_max >> 20U; // MiB.
};

namespace {

namespace fs = std::filesystem;

using app_map = std::map<std::string, agent>;

constexpr std::string_view agent_file = "root_agent.yaml";

bool holds_agent(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / agent_file, ignored);
}

// The folders in a folder that hold an agent file.
std::vector<fs::path> agent_folders(const fs::path& folder,
                                    std::error_code& failure) {
  std::vector<fs::path> found;
  for (const auto& each : fs::directory_iterator(folder, failure))
    if (each.is_directory() && holds_agent(each.path()))
      found.push_back(each.path());
  std::ranges::sort(found);
  return found;
}

using loaded_agents = std::vector<std::optional<result<agent>>>;

// Loads the agents of all folders. Several are loaded at the same time, since
// each one waits until its MCP servers have started. After a failure no more
// are begun; all agents before the first failure are there.
loaded_agents
load_side_by_side(const std::vector<fs::path>& folders,
                  const std::function<result<agent>(const fs::path&)>& load) {
  constexpr std::size_t threads_max = 16;
  loaded_agents loaded(folders.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> has_failed{false};
  const auto work = [&] {
    allocate_once();
    while (!has_failed) {
      const auto index = next++;
      if (index >= folders.size())
        return;
      loaded[index] = load(folders[index]);
      if (!*loaded[index])
        has_failed = true;
    }
  };
  std::vector<std::future<void>> working;
  for (std::size_t count = std::min(folders.size(), threads_max); count > 0;
       --count)
    working.push_back(std::async(std::launch::async, work));
  for (auto& each : working)
    each.get();
  return loaded;
}

// The name of an app is that of its folder. A folder that is an app itself has
// the name of its agent, as in `troupe run`.
result<app_map> load_apps(const fs::path& folder,
                          const agent_file_options& options,
                          const agent_access& access) {
  app_map apps;
  // Each app has a `.env` of its own.
  const auto load = [&](const fs::path& from) -> result<agent> {
    auto own = options;
    if (auto read = access.read_dotenv(from, own); !read)
      return read.error();
    return load_agent_file(from, own);
  };
  if (holds_agent(folder)) {
    auto root = load(folder);
    if (!root)
      return root.error();
    auto name = root->name();
    apps.emplace(std::move(name), std::move(*root));
    return apps;
  }
  std::error_code failure;
  const auto folders = agent_folders(folder, failure);
  if (failure)
    return error(errc::not_found,
                 fmt::format("{}: {}", folder.string(), failure.message()));
  auto loaded = load_side_by_side(folders, load);
  for (std::size_t index = 0; index < folders.size(); ++index) {
    auto& root = *loaded[index];
    if (!root)
      return root.error();
    apps.emplace(folders[index].filename().string(), std::move(*root));
  }
  if (apps.empty())
    return error(errc::not_found,
                 fmt::format("{}: neither it nor a folder in it has a file {}",
                             folder.string(),
                             agent_file));
  return apps;
}

result<std::string> read_tokens(const std::string& file) {
  constexpr std::size_t bytes_max = std::size_t{1} << 20U;
  if (file.empty())
    return std::string();
  auto text = read_text_file(file, bytes_max);
  if (!text)
    return error(text.error().code(),
                 fmt::format("{}: {}", file, text.error().message()));
  return text;
}

// Opens the models of agent files. All of them stream, since a client may ask
// for the pieces of a text.
agent_file_options with_models(agent_file_options options,
                               const agent_access& access) {
  access.grant(options);
  options.open = [](model_source source, const open_model_options& usual) {
    source.streams = true;
    return open_model(source, usual);
  };
  return options;
}

std::string start_line(const app_map& apps, const server& started) {
  std::string names;
  auto listed = json::array();
  for (const auto& [name, root] : apps) {
    names += (names.empty() ? "" : ", ") + name;
    listed.push_back(name);
  }
  auto line = fmt::format("{} on {}", names, started.address());
  if (chosen_log_format() == log_format::text)
    return line + '\n';
  auto fields = json::object();
  fields["apps"] = std::move(listed);
  fields["address"] = started.address();
  return json_log_line(log_severity::info, line, std::move(fields));
}

void tell_recovery(const unfinished_run& left, const result<void>& ended) {
  auto fields = json::object();
  fields["invocation_id"] = left.invocation_id;
  fields["app"] = left.session.app;
  fields["user"] = left.session.user;
  fields["session"] = left.session.id;
  if (!ended)
    fields["code"] = std::string(to_string(ended.error().code()));
  write_log(ended ? log_severity::info : log_severity::warning,
            {},
            ended ? fmt::format("recovered run {} of session {}: it has ended",
                                left.invocation_id,
                                to_string(left.session))
                  : fmt::format("recovery of run {} of session {} ended with "
                                "an error: {}",
                                left.invocation_id,
                                to_string(left.session),
                                to_string(ended.error())),
            std::move(fields));
}

void tell_warning(const std::string& warning) {
  write_log(log_severity::warning, "troupe: warning: ", warning);
}

// The end by a signal is plain to a person at a terminal.
void tell_stop(int signal, std::uint64_t grace) {
  if (chosen_log_format() == log_format::text)
    return;
  auto fields = json::object();
  fields["signal"] = signal;
  write_log(log_severity::info,
            {},
            fmt::format("the server stops; runs may take {} s to end", grace),
            std::move(fields));
}

// Each connection needs a file descriptor. Shells start programs with a limit
// of 1,024 that the program itself may raise.
void raise_file_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0)
    return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

void await_signal(const interrupts& signals) {
  pollfd waits{signals.descriptor(), POLLIN, 0};
  while (::poll(&waits, 1, -1) < 0)
    continue;
}

} // namespace

serve_command::serve_command(CLI::App& program, agent_file_options agents)
  : program_command(program, "serve", "Serve the agents of a folder over HTTP"),
    agents_(std::move(agents)),
    arguments_(std::make_unique<arguments>()) {
  show_example(parser(),
               "troupe init hello --no-program\n"
               "troupe serve hello --port 8000");
  add_options();
  add_access_options();
  parser().footer(
    "Prints the names of the apps and the address when it is ready. ADK's "
    "clients can talk to it;\ndocs/server.md lists the requests. Ctrl-C and "
    "SIGTERM let requests and runs finish.\n"
    "Exit codes: 1 a rule was broken or it failed; 2 the command line is "
    "wrong; 130 and 143 after\nCtrl-C and SIGTERM.");
}

serve_command::~serve_command() = default;

void serve_command::add_options() {
  auto& chosen = *arguments_;
  parser()
    .add_option(
      "FOLDER",
      chosen.folder,
      "Folder whose sub-folders with root_agent.yaml are the apps, or "
      "one such folder")
    ->capture_default_str();
  parser()
    .add_option("--port", chosen.server.port, "Port; 0: a free one")
    ->type_name("N")
    ->capture_default_str();
  parser()
    .add_option("--address",
                chosen.server.address,
                "Address to listen on; another one than loopback needs "
                "--token-file or --trust-header")
    ->type_name("A")
    ->capture_default_str();
  parser()
    .add_option(
      "--grace",
      chosen.grace,
      "Seconds that runs may take to end after SIGTERM; then they are "
      "cancelled, or with --recover left to the next server")
    ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{86'400}))
    ->type_name("S")
    ->capture_default_str();
  parser()
    .add_option("--body-max", chosen.body_max, "Limit of a request's body")
    ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'024}))
    ->type_name("MIB")
    ->capture_default_str();
  parser()
    .add_option("--rate",
                chosen.server.requests_per_second,
                "Requests that one caller may send in a second; 0: no limit")
    ->check(number_from(0))
    ->type_name("N")
    ->capture_default_str();
  parser()
    .add_option("--ui",
                chosen.server.ui_folder,
                "Folder of ADK's page, google/adk/cli/browser of its package, "
                "to serve under /dev-ui/")
    ->type_name("FOLDER");
  parser()
    .add_option("--log-format",
                chosen.log,
                "Form of the lines that it prints: text, or json for one "
                "object per line")
    ->check(CLI::IsMember({"text", "json"}))
    ->type_name("F")
    ->capture_default_str();
  parser().add_flag("--cancel-on-disconnect",
                    chosen.server.cancel_on_disconnect,
                    "Cancel a run when its client leaves");
  parser().add_flag("--recover",
                    chosen.server.recovers_runs,
                    "Continue the open runs of the apps whose processes have "
                    "ended, now and while the server runs (troupe runs lists "
                    "them)");
  parser()
    .add_option("--model-calls-max",
                chosen.server.runs.model_calls_max,
                "Model calls that one run may make")
    ->check(number_from(0))
    ->type_name("N")
    ->capture_default_str();
  parser()
    .add_option("--tokens-max",
                chosen.server.runs.tokens_max,
                "Budget of tokens of one run, as the models count them; "
                "default: none")
    ->check(number_from(0))
    ->type_name("N");
  parser()
    .add_option("--session-tokens-max",
                chosen.server.runs.session_tokens_max,
                "Budget of tokens of each session; default: none")
    ->check(number_from(0))
    ->type_name("N");
  chosen.compaction.add_to(parser());
  chosen.model.add_to(parser());
  chosen.access.add_to(parser());
  chosen.store.add_to(parser());
  chosen.store.add_artifacts_to(parser());
  chosen.store.add_memory_to(parser());
}

void serve_command::add_access_options() {
  auto& chosen = *arguments_;
  parser()
    .add_option("--token-file",
                chosen.token_file,
                "Lines of TOKEN USER ROLE, with the roles reader, user and "
                "admin; requests then need one of the tokens")
    ->type_name("FILE");
  parser()
    .add_option("--trust-header",
                chosen.server.trusted_header,
                "Header by which a proxy names the user")
    ->type_name("NAME");
  parser()
    .add_option("--trust-proxy",
                chosen.server.trusted_proxy,
                "Address of this proxy, or a block such as 10.0.0.0/8; its "
                "X-Forwarded-Proto counts")
    ->type_name("A");
  parser()
    .add_option("--allow-origin",
                chosen.server.origins,
                "Site whose pages may send requests, such as "
                "https://example.com, or *; may be repeated")
    ->allow_extra_args(false)
    ->type_name("O");
  parser()
    .add_option("--tls-certificate",
                chosen.server.tls_certificate,
                "Certificate chain in PEM, for https")
    ->type_name("FILE");
  parser()
    .add_option("--tls-key", chosen.server.tls_key, "Its key in PEM")
    ->type_name("FILE");
}

int serve_command::execute(interrupts& signals) const {
  const auto& chosen = *arguments_;
  set_log_format(chosen.log == "json" ? log_format::json : log_format::text);
  auto wanted = chosen.server;
  wanted.limits.body_bytes_max = chosen.body_max << 20U;
  wanted.runs.step_times = true;
  wanted.on_recovery = tell_recovery;
  auto tokens = read_tokens(chosen.token_file);
  if (!tokens)
    return report(tokens.error());
  if (!chosen.token_file.empty() && tokens->empty())
    return report(
      error(errc::invalid_argument,
            fmt::format("{}: there is no token", chosen.token_file)));
  wanted.tokens = std::move(*tokens);
  auto agents = with_models(agents_, chosen.access);
  if (!chosen.model.names.empty())
    if (auto read = chosen.access.read_dotenv(chosen.folder, agents); !read)
      return report(read.error());
  if (auto replaced = chosen.model.apply(agents); !replaced)
    return report(replaced.error());
  const auto apps = load_apps(chosen.folder, agents, chosen.access);
  if (!apps)
    return report(apps.error());

  signals.begin();
  raise_file_limit();
  // A server refuses appends that would wait for long.
  auto kept = chosen.store.for_runtime();
  kept.append_wait_max = runtime_options().append_wait_max;
  kept.compaction = chosen.compaction.for_runtime();
  kept.on_warning = tell_warning;
  const auto commits = std::make_shared<commit_counts>();
  kept.on_commit = [commits](std::size_t changes) { commits->add(changes); };
  wanted.commits = commits;
  telemetry_option telemetry;
  for (const auto& [app, root] : *apps)
    telemetry.describe(root, app);
  telemetry.watch(kept);
  auto owners = runtime::open(std::move(kept));
  if (!owners)
    return report(owners.error());
  auto started = server::start(*owners, *apps, std::move(wanted));
  if (!started)
    return report(started.error());
  if (const int failed
      = print(start_line(*apps, *started), signals.descriptor());
      failed != exit_done)
    return failed;
  // Time for the last answers and for the store, after the grace period.
  constexpr std::chrono::seconds closing{30};
  signals.set_exit_timeout(std::chrono::seconds(chosen.grace) + closing);
  await_signal(signals);
  tell_stop(signals.signal(), chosen.grace);
  started->stop(std::chrono::seconds(chosen.grace));
  if (const auto closed = owners->shut_down(); !closed)
    return report(closed.error());
  return interrupts::exit_code(signals.signal());
}

} // namespace troupe::cli
