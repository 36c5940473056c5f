#include "troupe/cli/commands/experiment.hpp"

#include "troupe/cli/options/agent_access.hpp"
#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/number_check.hpp"
#include "troupe/cli/options/prices_option.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/sessions/cleaning.hpp"
#include "troupe/cli/talk/open_questions.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/report_file.hpp"
#include "troupe/cli/terminal/screen_line.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/load/experiment_report.hpp"
#include "troupe/load/pages/page.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::cli {

struct experiment_command::arguments {
  std::string file;
  store_option store;
  std::optional<std::size_t> at_once;
  std::optional<std::size_t> repeats;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> model;
  std::optional<std::string> from;
  std::optional<std::string> app;
  std::optional<std::string> user;
  std::string json_file;
  std::string html_file;
  bool removes = false;
  agent_access access;
  prices_option prices;
};

namespace {

// Limit of timelines in one page, so that it stays quick. `troupe trace --html`
// draws the others.
constexpr std::size_t page_timelines_max = 300;

/// Draws at most ten times a second.
class run_count {
public:
  void show(const load::experiment_progress& now) {
    if (now.done < now.planned && drawn_at_ && now.elapsed - *drawn_at_ < step)
      return;
    drawn_at_ = now.elapsed;
    std::string left;
    if (now.left)
      left = fmt::format(", {} s left", (now.left->count() + 999) / 1'000);
    line_.show(fmt::format("{} s{}: {} of {} runs, {} running, {} failed",
                           now.elapsed.count() / 1'000,
                           left,
                           now.done,
                           now.planned,
                           now.running,
                           now.failed));
  }

private:
  static constexpr std::chrono::milliseconds step{100};

  screen_line line_;
  std::optional<std::chrono::milliseconds> drawn_at_;
};

// A path on the command line is relative to the working folder, not to the
// experiment file.
std::string absolute_model(const std::string& spec) {
  constexpr std::string_view scripted = "scripted:";
  if (!spec.starts_with(scripted) || spec.size() == scripted.size())
    return spec;
  return fmt::format(
    "{}{}",
    scripted,
    std::filesystem::absolute(spec.substr(scripted.size())).string());
}

/// The apps of an experiment, or its forks of a session, from its start until
/// `--remove` has removed them. A store in memory ends with its program, so
/// nothing remains of it.
class leftovers {
public:
  leftovers(const store_option& store,
            const load::experiment& planned,
            interrupts& signals)
    : store_(store),
      planned_(planned),
      signals_(signals) {}

  /// Makes a process that ends early name the apps or forks that it leaves.
  void begin(const std::string& run) {
    if (!prefix_.empty() || store_.address() == "memory:")
      return;
    // The names begin with those of the experiment and of this run of it, also
    // the names of runs that were interrupted.
    prefix_ = fmt::format("{}-{}-", planned_.name, run);
    signals_.set_early_error(
      fmt::format("ended before the {} were removed; {}", noun(), rest()));
  }

  /// Removes the apps, or the forks among `sessions`. After a first signal
  /// there is no time limit for it.
  result<void> remove(const std::vector<session_key>& sessions) {
    signals_.set_exit_timeout(interrupts::forever);
    const auto removed = remove_all(sessions);
    if (!removed)
      return error(removed.error().code(),
                   fmt::format("remove the {} of the runs: {}; {}",
                               noun(),
                               removed.error().message(),
                               rest()));
    signals_.set_early_error({});
    std::fputs(fmt::format("removed {} {}\n", *removed, noun()).c_str(),
               stderr);
    return {};
  }

  /// Prints how the names begin that stay.
  void keep() const {
    if (!prefix_.empty())
      std::fputs(
        visible_text(fmt::format("nothing was removed; {}\n", rest()), "\n")
          .c_str(),
        stderr);
  }

private:
  const char* noun() const { return planned_.from ? "forks" : "apps"; }

  result<std::size_t>
  remove_all(const std::vector<session_key>& sessions) const {
    if (prefix_.empty())
      return std::size_t{0};
    // The app of the forks has sessions of others, too.
    return planned_.from ? remove_sessions(store_, sessions)
                         : remove_apps(store_, prefix_);
  }

  std::string rest() const {
    const auto store = quoted(without_password(store_.address()));
    if (!planned_.from)
      return fmt::format(
        "apps whose names begin with '{0}' may be left: troupe apps list "
        "--store {1} lists all apps, and troupe apps remove --store {1} --app "
        "NAME removes one",
        prefix_,
        store);
    const auto place = fmt::format("--store {} --app {} --user {}",
                                   store,
                                   quoted(planned_.from->session.app),
                                   quoted(planned_.from->session.user));
    return fmt::format(
      "forks whose ids begin with '{0}' may be left: troupe sessions list {1} "
      "lists all sessions of the user, and troupe sessions delete {1} "
      "--session ID removes one",
      prefix_,
      place);
  }

  const store_option& store_;
  const load::experiment& planned_;
  interrupts& signals_;
  std::string prefix_;
};

} // namespace

experiment_command::experiment_command(CLI::App& program,
                                       agent_file_options agents)
  : program_command(program,
                    "experiment",
                    "Run variants of an agent file, each on "
                    "the same inputs, and compare them"),
    agents_(std::move(agents)),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  show_example(parser(),
               "troupe init hello --no-program\n"
               "troupe experiment hello/experiment.yaml --html hello.html");
  parser()
    .add_option("FILE",
                chosen.file,
                "Experiment file (YAML or JSON; docs/experiments.md)")
    ->required();
  chosen.store.add_to(parser());
  chosen.store.add_artifacts_to(parser());
  chosen.store.add_memory_to(parser());
  parser()
    .add_option("--repeats",
                chosen.repeats,
                "Runs of each variant and input, in place of the file's")
    ->check(number_from(1))
    ->type_name("N");
  parser()
    .add_option("--at-once",
                chosen.at_once,
                "Runs at the same time, in place of the file's")
    ->check(number_from(1))
    ->type_name("N");
  parser()
    .add_option(
      "--seed", chosen.seed, "Seed of the order, in place of the file's")
    ->type_name("N");
  parser()
    .add_option("--model",
                chosen.model,
                "Model in place of every agent's own, where a variant has "
                "none: scripted:FILE")
    ->type_name("M");
  parser()
    .add_option("--from",
                chosen.from,
                "Run on forks of this session, beginning at this revision; "
                "without @REVISION at its newest event. In place of the file's")
    ->type_name("SESSION[@REVISION]");
  parser()
    .add_option("--app", chosen.app, "App of the session of --from")
    ->type_name("A");
  parser()
    .add_option(
      "--user", chosen.user, "User of the session of --from; default: user")
    ->type_name("U");
  chosen.access.add_to(parser());
  chosen.prices.add_to(parser());
  parser()
    .add_option("--json", chosen.json_file, "Write all results to a file")
    ->type_name("FILE");
  parser()
    .add_option("--html",
                chosen.html_file,
                "Write a page with charts and timelines to a file")
    ->type_name("FILE");
  parser().add_flag("--remove",
                    chosen.removes,
                    "Remove the apps of the runs, or with --from the forks, "
                    "from the store once all reports are written, also after "
                    "Ctrl-C");
  parser().footer(
    "Each run has a session in an app of its own, which stays in the store "
    "without --remove:\ntroupe trace and troupe sessions get show the single "
    "runs.\n"
    "With --from, each run has a fork of that session instead, in the "
    "session's app. The\nsession and all forks share their app: and user: "
    "state: a run that changes it changes\nit for all of them.\n"
    "Exit codes: 0 done, even if some runs failed; 1 all runs failed, or the "
    "command\nfailed; 2 the command line or a file is wrong; 130 and "
    "143 after Ctrl-C and SIGTERM,\nwith a report.");
}

experiment_command::~experiment_command() = default;

// The command line wins over the file.
result<void> experiment_command::choose_start(load::experiment& planned) const {
  const auto& chosen = *arguments_;
  const auto fail
    = [](const char* why) { return error(errc::invalid_argument, why); };
  if (chosen.from) {
    auto named = load::read_fork_point(*chosen.from);
    named.session.app = planned.from ? planned.from->session.app : "";
    named.session.user = planned.from ? planned.from->session.user : "user";
    planned.from = std::move(named);
  }
  if (!planned.from)
    return chosen.app || chosen.user
             ? fail("--app and --user are those of the session of --from, "
                    "which is missing")
             : result<void>();
  auto& session = planned.from->session;
  session.app = chosen.app.value_or(session.app);
  session.user = chosen.user.value_or(session.user);
  if (session.app.empty())
    return fail("--from needs --app, the app of the session");
  if (chosen.store.address() == "memory:")
    return fail("memory: has no session to begin at; choose the store of the "
                "session with --store");
  return load::check_start(planned);
}

int experiment_command::execute(interrupts& signals) const {
  const auto& chosen = *arguments_;
  auto planned = load::read_experiment(chosen.file);
  if (!planned)
    return report(planned.error(), exit_usage);
  planned->repeats = chosen.repeats.value_or(planned->repeats);
  planned->at_once = chosen.at_once.value_or(planned->at_once);
  planned->seed = chosen.seed.value_or(planned->seed);
  if (auto fit = load::check_amounts(*planned); !fit)
    return report(fit.error(), exit_usage);
  auto prices = chosen.prices.read();
  if (!prices)
    return report(prices.error(), exit_usage);
  planned->prices = std::move(*prices);
  if (auto fit = choose_start(*planned); !fit)
    return report(fit.error(), exit_usage);
  if (auto apart = check_distinct({chosen.json_file, chosen.html_file}); !apart)
    return report(apart.error(), exit_usage);
  auto more = agents_;
  chosen.access.grant(more);
  if (auto read = chosen.access.read_dotenv(planned->agent_file, more); !read)
    return report(read.error());
  if (chosen.model) {
    // Opened anew for each run, so that a script starts from its beginning.
    for (auto& each : planned->variants)
      if (each.model.empty())
        each.model = absolute_model(*chosen.model);
  }
  for (std::size_t index = 0; index < planned->variants.size(); ++index)
    if (auto made = load::make_agents(*planned, {index, 0, 0}, more); !made)
      return report(made.error(), exit_usage);
  private_report files;
  if (auto opened = files.open(chosen.json_file, chosen.html_file); !opened)
    return report(opened.error(), exit_usage);

  leftovers left(chosen.store, *planned, signals);
  signals.begin();
  const auto made = [&] {
    run_count line;
    return load::run_experiment(
      *planned,
      chosen.store.for_runtime(),
      more,
      [&](const load::experiment_progress& now) {
        if (chosen.removes)
          left.begin(now.run);
        line.show(now);
      },
      signals.token());
  }();
  if (!made) {
    const auto code = report(made.error());
    left.keep();
    return code;
  }
  const auto text = load::to_text(*made);
  // Printed first, so that a file that cannot be written does not lose the
  // report.
  if (const auto code = print(visible_text(text, "\n")); code != exit_done) {
    left.keep();
    return code;
  }
  bool is_written = true;
  const auto note = [&is_written](const result<void>& done) {
    if (!done) {
      report(done.error());
      is_written = false;
    }
  };
  if (files.json.is_wanted())
    note(files.json.finish(load::to_line(to_json(*made))));
  if (files.html.is_wanted())
    note(files.html.finish(
      load::to_page(visible_text("troupe experiment " + planned->name, " "),
                    visible_text(text, "\n"),
                    to_json(*made, page_timelines_max))));
  if (chosen.removes && is_written)
    note(left.remove(made->sessions));
  else
    left.keep();
  if (signals.signal() != 0)
    return interrupts::exit_code(signals.signal());
  const bool any_well = std::ranges::any_of(
    made->runs, [](const auto& each) { return each.error.empty(); });
  return any_well && is_written ? exit_done : exit_failed;
}

} // namespace troupe::cli
