#include "troupe/cli/experiment_command.hpp"

#include "troupe/agents/exit_loop.hpp"
#include "troupe/cli/allow_env_option.hpp"
#include "troupe/cli/exit_code.hpp"
#include "troupe/cli/output.hpp"
#include "troupe/cli/report_file.hpp"
#include "troupe/cli/screen_line.hpp"
#include "troupe/cli/store_option.hpp"
#include "troupe/cli/visible_text.hpp"
#include "troupe/load/experiment_report.hpp"
#include "troupe/load/page.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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
  std::string artifacts;
  std::optional<std::size_t> at_once;
  std::optional<std::size_t> repeats;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> model;
  std::string json_file;
  std::string html_file;
  std::vector<std::string> allowed_variables;
};

namespace {

// A page stays quick with so many timelines in it; the others are drawn by
// `troupe trace --html`.
constexpr std::size_t page_timelines_max = 300;

/// At most some ten times a second.
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

// A script's path is told from where the program runs, and not from the
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

} // namespace

experiment_command::experiment_command(CLI::App& program)
  : command_(program.add_subcommand("experiment",
                                    "Run variants of an agent file, each on "
                                    "the same inputs, and compare them")),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  command_
    ->add_option("FILE",
                 chosen.file,
                 "Experiment file (YAML or JSON; docs/experiments.md)")
    ->required();
  chosen.store.add_to(*command_);
  command_
    ->add_option("--artifacts",
                 chosen.artifacts,
                 "Where artifacts are kept: memory: or file:PATH; default: "
                 "memory: with --store memory:, else nowhere")
    ->type_name("A");
  command_
    ->add_option("--repeats", chosen.repeats, "In place of the file's number")
    ->check(CLI::PositiveNumber)
    ->type_name("N");
  command_
    ->add_option("--at-once", chosen.at_once, "Runs at the same time; the same")
    ->check(CLI::PositiveNumber)
    ->type_name("N");
  command_->add_option("--seed", chosen.seed, "The same")->type_name("N");
  command_
    ->add_option("--model",
                 chosen.model,
                 "Model in place of every agent's own, where a variant has "
                 "none: scripted:FILE")
    ->type_name("M");
  add_allow_env(*command_, chosen.allowed_variables);
  command_->add_option("--json", chosen.json_file, "Write all of it to a file")
    ->type_name("FILE");
  command_
    ->add_option("--html",
                 chosen.html_file,
                 "Write a page with charts and timelines to a file")
    ->type_name("FILE");
  command_->footer(
    "Each run has a session in an app of its own, which stays in the store: "
    "troupe trace\nand troupe sessions get show what is behind a figure.\n"
    "Exit codes: 0 done, also when runs have failed; 1 no run ended well, or "
    "something else\nfailed; 2 the command line or a file is wrong; 130 and "
    "143 after Ctrl-C and SIGTERM,\nwith a report.\n\n"
    "Example:\n"
    "  troupe experiment lanes.yaml --repeats 20 --html lanes.html");
}

experiment_command::~experiment_command() = default;

bool experiment_command::is_chosen() const {
  return command_->parsed();
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
  if (auto apart = check_distinct({chosen.json_file, chosen.html_file}); !apart)
    return report(apart.error(), exit_usage);
  agent_file_options more;
  more.tools = make_registry({exit_loop()});
  more.allowed_variables = chosen.allowed_variables;
  if (chosen.model) {
    // Opened anew for each run, so that a script starts from its beginning.
    for (auto& each : planned->variants)
      if (each.model.empty())
        each.model = absolute_model(*chosen.model);
  }
  for (std::size_t index = 0; index < planned->variants.size(); ++index)
    if (auto made = load::make_agents(*planned, {index, 0, 0}, more); !made)
      return report(made.error(), exit_usage);
  report_file json_file;
  report_file html_file;
  // What was said in the sessions may be in there.
  constexpr auto readers = output_file::readers::owner;
  for (const auto& opened : {json_file.open(chosen.json_file, readers),
                             html_file.open(chosen.html_file, readers)})
    if (!opened)
      return report(opened.error(), exit_usage);

  signals.begin();
  auto kept = chosen.store.for_runtime();
  kept.artifacts = chosen.artifacts;
  const auto made = [&] {
    run_count line;
    return load::run_experiment(
      *planned,
      std::move(kept),
      more,
      [&line](const load::experiment_progress& now) { line.show(now); },
      signals.token());
  }();
  if (!made)
    return report(made.error());
  const auto text = load::to_text(*made);
  // First of all, so that no file that cannot be written costs the report.
  output target(STDOUT_FILENO, -1);
  if (auto shown = target.write(visible_text(text, "\n")); !shown)
    return target.is_closed() ? exit_failed : report(shown.error());
  bool is_written = true;
  const auto note = [&is_written](const result<void>& done) {
    if (!done) {
      report(done.error());
      is_written = false;
    }
  };
  if (json_file.is_wanted())
    note(json_file.finish(load::to_line(to_json(*made))));
  if (html_file.is_wanted())
    note(html_file.finish(
      load::to_page(visible_text("troupe experiment " + planned->name, " "),
                    visible_text(text, "\n"),
                    to_json(*made, page_timelines_max))));
  if (signals.signal() != 0)
    return interrupts::exit_code(signals.signal());
  const bool any_well = std::ranges::any_of(
    made->runs, [](const auto& each) { return each.error.empty(); });
  return any_well && is_written ? exit_done : exit_failed;
}

} // namespace troupe::cli
