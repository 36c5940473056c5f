#include "troupe/cli/compare_command.hpp"

#include "troupe/cli/exit_code.hpp"
#include "troupe/cli/output.hpp"
#include "troupe/cli/report_file.hpp"
#include "troupe/cli/visible_text.hpp"
#include "troupe/core/text_file.hpp"
#include "troupe/load/comparison.hpp"
#include "troupe/load/page.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace troupe::cli {

struct compare_command::arguments {
  std::string before;
  std::string after;
  double margin = 5;
  double confidence = 95;
  std::string json_file;
};

namespace {

constexpr std::size_t file_bytes_max = std::size_t{1} << 30U;

result<std::vector<load::measured_run>> read_file(const std::string& path) {
  const auto failed = [&path](std::string_view why) {
    return error(errc::invalid_argument, fmt::format("{}: {}", path, why));
  };
  const auto text = read_text_file(path, file_bytes_max);
  if (!text)
    return failed(text.error().message());
  auto runs = load::read_runs(*text);
  if (!runs)
    return failed(runs.error().message());
  return runs;
}

} // namespace

compare_command::compare_command(CLI::App& load)
  : command_(load.add_subcommand("compare",
                                 "Two sets of load tests held against each "
                                 "other: what changed, and how sure that is")),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  command_->add_option("BEFORE", chosen.before, "What troupe load --json wrote")
    ->required();
  command_->add_option("AFTER", chosen.after, "The same, of what is compared")
    ->required();
  command_->add_option("--margin", chosen.margin, "How much worse is accepted")
    ->check(CLI::Range(0.0, 1e6))
    ->type_name("PERCENT")
    ->capture_default_str();
  command_->add_option("--confidence", chosen.confidence, "Of the intervals")
    ->check(CLI::Range(50.0, 99.99))
    ->type_name("PERCENT")
    ->capture_default_str();
  command_->add_option("--json", chosen.json_file, "Write it to a file, too")
    ->type_name("FILE");
  command_->footer(
    "Intervals need several runs on each side: troupe load --repeat 5 --json "
    "FILE.\n"
    "Rate, p50 and p99 decide. One is worse when it is so by more than "
    "--margin, and\nits interval leaves out no change at all.\n"
    "Exit codes: 0 nothing is worse; 1 something is; 2 the command line is "
    "wrong, or a\nfile cannot be read.\n\n"
    "Example:\n"
    "  troupe load compare before.json after.json --margin 10");
}

compare_command::~compare_command() = default;

bool compare_command::is_chosen() const {
  return command_->parsed();
}

int compare_command::execute() const {
  const auto& chosen = *arguments_;
  const auto before = read_file(chosen.before);
  if (!before)
    return report(before.error(), exit_usage);
  const auto after = read_file(chosen.after);
  if (!after)
    return report(after.error(), exit_usage);
  report_file json_file;
  if (auto opened = json_file.open(chosen.json_file); !opened)
    return report(opened.error(), exit_usage);
  const auto found = load::compare(
    *before,
    *after,
    {.confidence = chosen.confidence / 100, .margin = chosen.margin / 100});
  output target(STDOUT_FILENO, -1);
  const auto shown = target.write(visible_text(load::to_text(found), "\n"));
  if (auto written = json_file.finish(load::to_line(to_json(found))); !written)
    return report(written.error());
  if (!shown)
    return target.is_closed() ? exit_failed : report(shown.error());
  return found.regressed() ? exit_failed : exit_done;
}

} // namespace troupe::cli
