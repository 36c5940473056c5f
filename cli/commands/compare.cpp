#include "troupe/cli/commands/compare.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/output.hpp"
#include "troupe/cli/terminal/report_file.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/core/support/text_file.hpp"
#include "troupe/load/pages/comparison.hpp"
#include "troupe/load/pages/page.hpp"

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

result<std::vector<load::measured_run>> read_run_file(const std::string& path) {
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
  : program_command(load,
                    "compare",
                    "Compare two sets of load tests: the changes, "
                    "and their confidence intervals"),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  show_example(parser(),
               "troupe load --duration 1 --repeat 3 --json before.json\n"
               "troupe load --duration 1 --repeat 3 --json after.json\n"
               "troupe load compare before.json after.json --margin 10");
  parser()
    .add_option("BEFORE",
                chosen.before,
                "Report of troupe load --json, before the change")
    ->required();
  parser()
    .add_option(
      "AFTER", chosen.after, "Report of troupe load --json, after the change")
    ->required();
  parser()
    .add_option("--margin", chosen.margin, "Accepted loss")
    ->check(CLI::Range(0.0, 1e6))
    ->type_name("PERCENT")
    ->capture_default_str();
  parser()
    .add_option(
      "--confidence", chosen.confidence, "Confidence of the intervals")
    ->check(CLI::Range(50.0, 99.99))
    ->type_name("PERCENT")
    ->capture_default_str();
  parser()
    .add_option(
      "--json", chosen.json_file, "Also write the comparison to a file")
    ->type_name("FILE");
  parser().footer(
    "Intervals need several runs on each side: troupe load --repeat 5 --json "
    "FILE.\n"
    "Rate, p50 and p99 decide. One is worse if it lost more than --margin and "
    "its\ninterval does not contain zero change.\n"
    "Exit codes: 0 nothing is worse; 1 something is worse; 2 the command line "
    "is wrong,\nor a file cannot be read.");
}

compare_command::~compare_command() = default;

int compare_command::execute(interrupts& /*signals*/) const {
  const auto& chosen = *arguments_;
  const auto before = read_run_file(chosen.before);
  if (!before)
    return report(before.error(), exit_usage);
  const auto after = read_run_file(chosen.after);
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
    return end(shown, target);
  return found.regressed() ? exit_failed : exit_done;
}

} // namespace troupe::cli
