#include "troupe/cli/commands/load.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/number_check.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/sessions/cleaning.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/load_progress.hpp"
#include "troupe/cli/terminal/report_file.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/load/pages/page.hpp"
#include "troupe/load/pages/series.hpp"
#include "troupe/load/pages/sweep.hpp"
#include "troupe/load/report.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cli {

struct load_command::arguments {
  load::settings chosen;
  store_option store{"memory:"};
  double seconds = 10;
  std::optional<std::uint64_t> appends;
  bool is_open = false;
  std::size_t repeats = 1;
  std::string json_file;
  std::string csv_file;
  std::string hgrm_file;
  std::string html_file;
  bool removes = false;
};

/// Files that a test or a sweep writes, besides stdout.
struct load_command::report_files {
  report_file json;
  report_file csv;
  report_file hgrm;
  report_file html;
};

namespace {

// Reports settings that cannot be run, and returns the exit code. A forbidden
// store path breaks a rule of stores; all else is a wrong option.
std::optional<int> refusal(const load::settings& chosen) {
  const auto fit = load::check_settings(chosen);
  if (fit)
    return std::nullopt;
  return report(fit.error(),
                read_store_address(name_of(chosen.store)) ? exit_usage
                                                          : exit_failed);
}

} // namespace

// Collects the facts that decide the exit code.
struct load_command::ending {
  bool holds = true;
  bool well = true; // Nothing else has failed.

  void fail(const error& why) {
    report(why);
    well = false;
  }

  void note(const result<void>& done) {
    if (!done)
      fail(done.error());
  }

  int code(const interrupts& signals) const {
    if (signals.signal() != 0 && holds)
      return interrupts::exit_code(signals.signal());
    return holds && well ? exit_done : exit_failed;
  }
};

load_command::load_command(CLI::App& program)
  : program_command(
    program,
    "load",
    "Load test of concurrent appends; checks the stored events at the end"),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = arguments_->chosen;
  show_example(parser(),
               "troupe load --store sqlite:load.db --callers 64 --duration 3 "
               "--expect 'p99<1s'");
  arguments_->store.add_to(parser());
  const auto count
    = [this](const char* name, std::size_t& into, const char* what) {
        parser()
          .add_option(name, into, what)
          ->check([check = number_from(0)](const std::string& text) {
            auto reason = check(text);
            if (!reason.empty() && text.find(',') != std::string::npos)
              reason += "; for several values see --vary";
            return reason;
          })
          ->type_name("N")
          ->capture_default_str();
      };
  count("--apps", chosen.apps, "Apps");
  count("--users", chosen.users, "Users, spread evenly over the apps");
  count(
    "--sessions", chosen.sessions, "Sessions, spread evenly over the users");
  count("--callers", chosen.callers, "Callers, each with one append under way");
  count("--readers", chosen.readers, "Callers that read meanwhile");
  count("--payload", chosen.payload, "Bytes of text in each event");
  duration_ = parser().add_option(
    "--duration",
    arguments_->seconds,
    "Length of the test; for each step of a sweep the default is 3");
  duration_->check(CLI::Range(0.001, 1e6))
    ->type_name("SECONDS")
    ->capture_default_str();
  parser()
    .add_option("--appends",
                arguments_->appends,
                "Number of appends, in place of a duration")
    ->check(number_from(1))
    ->type_name("N")
    ->excludes("--duration");
  parser()
    .add_option(
      "--arrival",
      [this](const std::vector<std::string>& words) {
        arguments_->is_open = words.back() == "open";
        return words.back() == "open" || words.back() == "closed";
      },
      "closed: each caller waits for its answer; open: appends begin at "
      "--rate, "
      "and latency counts from when they were due")
    ->type_name("closed|open");
  parser()
    .add_option(
      "--rate", chosen.rate, "Appends per second, with --arrival open")
    ->check(number_from(0))
    ->type_name("N");
  parser()
    .add_option(
      "--zipf", chosen.zipf, "Spread appends over sessions by Zipf; 0: evenly")
    ->check(number_from(0))
    ->type_name("THETA")
    ->capture_default_str();
  parser()
    .add_flag("--hot", chosen.hot, "All appends go to one session")
    ->excludes("--zipf");
  mix_ = parser()
           .add_option("--ops")
           ->description("Operations of the appends; default: "
                         + load::to_string(chosen.mix))
           ->type_name("SCOPES:KIND[=WEIGHT],...")
           ->allow_extra_args(false);
  parser()
    .add_option("--seed", chosen.seed, "Seed of all random choices")
    ->type_name("N")
    ->capture_default_str();
  auto* const repeat = parser()
                         .add_option("--repeat",
                                     arguments_->repeats,
                                     "Number of tests, one after another; the "
                                     "report has confidence intervals")
                         ->check(number_from(1))
                         ->type_name("N")
                         ->capture_default_str();
  const auto file
    = [this](const char* name, std::string& into, const char* what) {
        return parser().add_option(name, into, what)->type_name("FILE");
      };
  file("--json",
       arguments_->json_file,
       "Write all results to a file, one line for each test");
  file("--csv", arguments_->csv_file, "Write a row per second to a file")
    ->excludes(repeat);
  file("--hgrm",
       arguments_->hgrm_file,
       "Write the response times to a file, as HdrHistogram text in ms")
    ->excludes(repeat);
  file("--html", arguments_->html_file, "Write a page with charts to a file")
    ->excludes(repeat);
  parser().add_flag("--remove",
                    arguments_->removes,
                    "Remove the apps of each test from the store after it; "
                    "kept if an event is lost or wrong");
  expected_ = parser()
                .add_option("--expect")
                ->description("Condition on the results, such as 'p99<5ms', "
                              "'rate>100000'; may be repeated")
                ->type_name("WHAT<LIMIT")
                ->take_all()
                ->allow_extra_args(false);
  parser().footer(
    "Prints a report; its last line is the verdict: whether each acknowledged "
    "append is\nstored once, in order, with exact totals.\n"
    "Exit codes: 0 it holds; 1 it does not, or an --expect does not, or the "
    "test failed;\n2 the command line is wrong; 130 and 143 after Ctrl-C and "
    "SIGTERM, with a report.");
  add_sweep();
  compare_ = std::make_unique<compare_command>(parser());
}

void load_command::add_sweep() {
  sweep_ = parser().add_subcommand(
    "sweep", "Load tests with varied settings: a table of all combinations");
  sweep_->fallthrough();
  show_example(*sweep_,
               "troupe load sweep --vary callers=1,8,64 --vary sessions=8,64 "
               "--duration 1");
  varied_ = sweep_->add_option("--vary")
              ->description("A setting and its values, such as "
                            "callers=1,8,64,512; given twice, every "
                            "combination")
              ->type_name("NAME=VALUE,...")
              ->required()
              ->take_all()
              ->allow_extra_args(false);
  sweep_->footer("The options are those of troupe load.");
}

load_command::~load_command() = default;

int load_command::execute(interrupts& signals) const {
  if (compare_->is_chosen())
    return compare_->execute(signals);
  const auto read = read_settings();
  if (const auto* code = std::get_if<int>(&read))
    return *code;
  // Checking the stored events may take any time.
  signals.set_exit_timeout(interrupts::forever);
  const auto& chosen = std::get<load::settings>(read);
  return sweep_->parsed() ? execute_sweep(chosen, signals)
                          : execute_tests(chosen, signals);
}

std::variant<load::settings, int> load_command::read_settings() const {
  auto chosen = arguments_->chosen;
  chosen.store = arguments_->store.address();
  chosen.durability = arguments_->store.for_store().durability;
  const auto seconds
    = sweep_->parsed() && duration_->count() == 0 ? 3.0 : arguments_->seconds;
  chosen.duration
    = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1'000));
  chosen.appends = arguments_->appends;
  if (arguments_->is_open)
    chosen.arrival = load::arrival::open;
  if (mix_->count() > 0) {
    auto mix = load::read_mix(mix_->results().back());
    if (!mix)
      return report(mix.error(), exit_usage);
    chosen.mix = std::move(*mix);
  }
  return chosen;
}

result<void> load_command::open(report_files& files) const {
  const auto& chosen = *arguments_;
  const auto address = read_store_address(chosen.store.address());
  const auto database = address && address->kind == store_kind::sqlite
                          ? address->location
                          : std::string();
  if (auto apart = check_distinct({database,
                                   chosen.json_file,
                                   chosen.csv_file,
                                   chosen.hgrm_file,
                                   chosen.html_file});
      !apart)
    return apart;
  for (const auto& [file, path] : {std::pair(&files.json, &chosen.json_file),
                                   std::pair(&files.csv, &chosen.csv_file),
                                   std::pair(&files.hgrm, &chosen.hgrm_file),
                                   std::pair(&files.html, &chosen.html_file)})
    if (auto opened = file->open(*path); !opened)
      return opened;
  return {};
}

int load_command::execute_tests(const load::settings& chosen,
                                interrupts& signals) const {
  std::vector<load::expectation> expected;
  for (const auto& text : expected_->results()) {
    auto read = load::read_expectation(text);
    if (!read)
      return report(read.error(), exit_usage);
    expected.push_back(std::move(*read));
  }
  if (auto possible = load::check_expectations(chosen, expected); !possible)
    return report(possible.error(), exit_usage);
  if (const auto code = refusal(chosen))
    return *code;
  report_files files;
  if (auto opened = open(files); !opened)
    return report(opened.error(), exit_usage);

  signals.begin();
  std::vector<load::outcome> runs;
  ending end;
  while (runs.size() < arguments_->repeats && end.well
         && (runs.empty() || !signals.token().stop_requested())) {
    auto made
      = run(chosen,
            arguments_->repeats > 1
              ? fmt::format("{} of {}: ", runs.size() + 1, arguments_->repeats)
              : std::string(),
            signals);
    if (!made) {
      // A signal between two tests ends the series.
      if (!runs.empty() && signals.token().stop_requested())
        break;
      end.fail(made.error());
      break;
    }
    made->expected = load::judge_expectations(*made, expected);
    for (const auto& each : made->expected)
      end.holds = end.holds && each.holds;
    end.holds = end.holds && made->holds();
    if (end.well)
      end.note(files.json.write(load::to_line(to_json(*made))));
    clear(*made, end);
    runs.push_back(std::move(*made));
  }
  if (runs.empty())
    return end.code(signals);
  const auto& last = runs.back();
  const auto text
    = arguments_->repeats > 1 ? load::to_text(runs) : load::to_text(last);
  // Printed first, so that a file that cannot be written does not lose the
  // report.
  if (const auto code = print(visible_text(text, "\n")); code != exit_done)
    return code;
  end.note(files.json.finish());
  end.note(files.csv.finish(load::to_csv(last)));
  end.note(files.hgrm.finish(
    load::to_hgrm(last.response, std::chrono::milliseconds(1))));
  end.note(finish_page(files, text, to_json(last)));
  return end.code(signals);
}

result<load::outcome> load_command::run(const load::settings& chosen,
                                        std::string before,
                                        const interrupts& signals) {
  load_progress line(std::move(before));
  return load::run_load_test(
    chosen,
    [&line](const load::progress& now) { line.show(now); },
    signals.token());
}

void load_command::clear(const load::outcome& made, ending& end) const {
  if (!arguments_->removes || !made.holds())
    return;
  const auto removed
    = remove_apps(arguments_->store, fmt::format("load-{}-", made.run));
  if (!removed)
    end.fail(error(removed.error().code(),
                   fmt::format("remove the apps of the test: {}",
                               removed.error().message())));
}

result<void> load_command::finish_page(report_files& files,
                                       const std::string& text,
                                       const json& data) {
  return files.html.is_wanted() ? files.html.finish(
           load::to_page("troupe load", visible_text(text, "\n"), data))
                                : result<void>();
}

int load_command::execute_sweep(const load::settings& base,
                                interrupts& signals) const {
  std::vector<load::variation> varied;
  for (const auto& text : varied_->results()) {
    auto read = load::read_variation(text);
    if (!read)
      return report(read.error(), exit_usage);
    varied.push_back(std::move(*read));
  }
  if (arguments_->repeats > 1 || !arguments_->csv_file.empty()
      || !arguments_->hgrm_file.empty() || expected_->count() > 0)
    return report(error(errc::invalid_argument,
                        "a sweep has no --repeat, --csv, --hgrm, --expect"),
                  exit_usage);
  const auto steps = load::plan_sweep(base, varied);
  if (!steps)
    return report(steps.error(), exit_usage);
  report_files files;
  if (auto opened = open(files); !opened)
    return report(opened.error(), exit_usage);

  signals.begin();
  load::sweep done{base, varied, {}, {}};
  ending end;
  for (const auto& step : *steps) {
    if (signals.token().stop_requested())
      break;
    auto made
      = run(step.chosen,
            fmt::format("{} of {}: ", done.rows.size() + 1, steps->size()),
            signals);
    if (!made) {
      if (done.rows.empty() || !signals.token().stop_requested())
        end.fail(made.error());
      break;
    }
    if (done.rows.empty())
      done.started = made->started;
    done.rows.push_back(load::row_of(step, *made));
    end.holds = end.holds && done.rows.back().holds;
    clear(*made, end);
  }
  if (done.rows.empty())
    return end.code(signals);
  const auto text = load::to_text(done);
  const auto data = to_json(done);
  if (const auto code = print(visible_text(text, "\n")); code != exit_done)
    return code;
  end.note(files.json.finish(load::to_line(data)));
  end.note(finish_page(files, text, data));
  return end.code(signals);
}

} // namespace troupe::cli
