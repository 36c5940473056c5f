#include "troupe/cli/load_command.hpp"

#include "troupe/cli/exit_code.hpp"
#include "troupe/cli/output.hpp"
#include "troupe/cli/store_option.hpp"
#include "troupe/load/report.hpp"
#include "troupe/load/sweep.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::cli {

struct load_command::arguments {
  load::settings chosen;
  store_option store{"memory:"};
  double seconds = 10;
  std::optional<std::uint64_t> appends;
  bool is_open = false;
  std::string json_file;
  std::string csv_file;
};

namespace {

/// What a second was like, on one line of stderr while a person looks at it.
class second_line {
public:
  explicit second_line(std::string before = {}) : before_(std::move(before)) {}

  second_line(const second_line&) = delete;
  second_line& operator=(const second_line&) = delete;

  ~second_line() { clear(); }

  void show(const load::progress& now) {
    if (!shown_)
      return;
    const auto& second = now.newest;
    std::string left;
    if (now.left)
      left = fmt::format(", {} s left", (now.left->count() + 999) / 1'000);
    drawn_ = true;
    std::fputs(
      fmt::format(
        "\r\033[K{}{} s{}: {} stored, {}/s, p50 {}, p99 {}, max {}, {} "
        "in flight, {} failed",
        before_,
        now.elapsed.count() / 1'000,
        left,
        now.stored,
        second.stored,
        load::to_text(second.p50),
        load::to_text(second.p99),
        load::to_text(second.max),
        second.in_flight,
        now.failed)
        .c_str(),
      stderr);
  }

  void clear() {
    if (std::exchange(drawn_, false))
      std::fputs("\r\033[K", stderr);
  }

private:
  const bool shown_ = ::isatty(STDERR_FILENO) == 1;
  const std::string before_;
  bool drawn_ = false;
};

/// A file that is opened before there is anything to write, so that a test is
/// not run for nothing.
class report_file {
public:
  result<void> open(const std::string& path) {
    if (path.empty())
      return {};
    path_ = path;
    file_.open(path, std::ios::binary);
    return file_ ? result<void>() : failed();
  }

  result<void> write(const std::string& text) {
    if (path_.empty())
      return {};
    file_ << text;
    file_.close();
    return file_ ? result<void>() : failed();
  }

private:
  error failed() const {
    return {
      errc::store_failed,
      fmt::format("write {}: {}",
                  path_,
                  std::error_code(errno, std::generic_category()).message())};
  }

  std::string path_;
  std::ofstream file_;
};

} // namespace

load_command::load_command(CLI::App& program)
  : command_(program.add_subcommand("load",
                                    "Load test of concurrent appends, with a "
                                    "verdict on what was stored")),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = arguments_->chosen;
  arguments_->store.add_to(*command_);
  const auto count
    = [this](const char* name, std::size_t& into, const char* what) {
        command_->add_option(name, into, what)
          ->check(CLI::NonNegativeNumber)
          ->type_name("N")
          ->capture_default_str();
      };
  count("--apps", chosen.apps, "Apps");
  count("--users", chosen.users, "Users, dealt out to the apps");
  count("--sessions", chosen.sessions, "Sessions, dealt out to the users");
  count("--callers", chosen.callers, "Callers, each with one append under way");
  count("--readers", chosen.readers, "Callers that read beside them");
  count("--payload", chosen.payload, "Bytes of text in each event");
  duration_ = command_->add_option(
    "--duration", arguments_->seconds, "How long; of a step of a sweep 3");
  duration_->check(CLI::PositiveNumber)
    ->type_name("SECONDS")
    ->capture_default_str();
  command_
    ->add_option("--appends",
                 arguments_->appends,
                 "So many appends, however long it takes")
    ->check(CLI::PositiveNumber)
    ->type_name("N")
    ->excludes("--duration");
  command_
    ->add_option(
      "--arrival",
      [this](const std::vector<std::string>& words) {
        arguments_->is_open = words.back() == "open";
        return words.back() == "open" || words.back() == "closed";
      },
      "closed: each caller waits for its answer; open: appends begin at "
      "--rate, "
      "and latency counts from when they were due")
    ->type_name("closed|open");
  command_
    ->add_option(
      "--rate", chosen.rate, "Appends per second, with --arrival open")
    ->check(CLI::NonNegativeNumber)
    ->type_name("N");
  command_
    ->add_option(
      "--zipf", chosen.zipf, "Spread appends over sessions by Zipf; 0: evenly")
    ->check(CLI::NonNegativeNumber)
    ->type_name("THETA")
    ->capture_default_str();
  command_->add_flag("--hot", chosen.hot, "All appends go to one session")
    ->excludes("--zipf");
  mix_ = command_->add_option("--ops")
           ->description("What appends do; default: "
                         + load::to_string(chosen.mix))
           ->type_name("SCOPES:KIND[=WEIGHT],...")
           ->allow_extra_args(false);
  command_->add_option("--seed", chosen.seed, "Of all that is random")
    ->type_name("N")
    ->capture_default_str();
  command_
    ->add_option("--json", arguments_->json_file, "Write all of it to a file")
    ->type_name("FILE");
  command_
    ->add_option(
      "--csv", arguments_->csv_file, "Write a row per second to a file")
    ->type_name("FILE");
  expected_ = command_->add_option("--expect")
                ->description("What has to hold, such as 'p99<5ms', "
                              "'rate>100000'; may be repeated")
                ->type_name("WHAT<LIMIT")
                ->take_all()
                ->allow_extra_args(false);
  command_->footer(
    "Prints a report; its last line is the verdict: whether all that was "
    "acknowledged is\nstored once, in order, with exact totals.\n"
    "Exit codes: 0 it holds; 1 it does not, or an --expect does not, or the "
    "test failed;\n2 the command line is wrong; 130 and 143 after Ctrl-C and "
    "SIGTERM, with a report.\n\n"
    "Example:\n"
    "  troupe load --store sqlite:load.db --callers 512 --duration 30 --expect "
    "'p99<10ms'");
  add_sweep();
}

void load_command::add_sweep() {
  sweep_ = command_->add_subcommand(
    "sweep", "The same under changing settings: a table of all combinations");
  sweep_->fallthrough();
  varied_ = sweep_->add_option("--vary")
              ->description("A setting and its values, such as "
                            "callers=1,8,64,512; given twice, every "
                            "combination")
              ->type_name("NAME=VALUE,...")
              ->required()
              ->take_all()
              ->allow_extra_args(false);
  sweep_->footer("The options are those of troupe load.\n\n"
                 "Example:\n"
                 "  troupe load sweep --vary callers=1,8,64,512 --vary "
                 "sessions=1,64");
}

load_command::~load_command() = default;

bool load_command::is_chosen() const {
  return command_->parsed();
}

int load_command::execute(interrupts& signals) const {
  const auto read = read_settings();
  if (const auto* code = std::get_if<int>(&read))
    return *code;
  const auto& chosen = std::get<load::settings>(read);
  return sweep_->parsed() ? execute_sweep(chosen, signals)
                          : execute_test(chosen, signals);
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

int load_command::execute_test(const load::settings& chosen,
                               interrupts& signals) const {
  std::vector<load::expectation> expected;
  for (const auto& text : expected_->results()) {
    auto read = load::read_expectation(text);
    if (!read)
      return report(read.error(), exit_usage);
    expected.push_back(std::move(*read));
  }
  if (auto fit = load::check_settings(chosen); !fit)
    return report(fit.error());
  report_file json_file;
  report_file csv_file;
  for (auto opened : {json_file.open(arguments_->json_file),
                      csv_file.open(arguments_->csv_file)})
    if (!opened)
      return report(opened.error());

  signals.begin();
  second_line line;
  auto made = load::run_load_test(
    chosen,
    [&line](const load::progress& now) { line.show(now); },
    signals.token());
  line.clear();
  if (!made)
    return report(made.error());
  const auto broken = load::broken_expectations(*made, expected);
  output target(STDOUT_FILENO, -1);
  const auto shown = target.write(load::to_text(*made));
  for (const auto& each : broken)
    std::fputs(fmt::format("{}\n", each).c_str(), stderr);
  for (auto written : {json_file.write(to_json(*made).dump() + '\n'),
                       csv_file.write(load::to_csv(*made))})
    if (!written)
      return report(written.error());
  if (!shown)
    return target.is_closed() ? exit_failed : report(shown.error());
  if (!made->found || !made->found->holds() || !broken.empty())
    return exit_failed;
  return signals.signal() != 0 ? interrupts::exit_code(signals.signal())
                               : exit_done;
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
  const auto steps = load::plan_sweep(base, varied);
  if (!steps)
    return report(steps.error());
  report_file json_file;
  if (auto opened = json_file.open(arguments_->json_file); !opened)
    return report(opened.error());

  signals.begin();
  std::vector<load::sweep_row> rows;
  bool holds = true;
  for (const auto& step : *steps) {
    if (signals.token().stop_requested())
      break;
    second_line line(fmt::format("{} of {}: ", rows.size() + 1, steps->size()));
    auto made = load::run_load_test(
      step.chosen,
      [&line](const load::progress& now) { line.show(now); },
      signals.token());
    line.clear();
    if (!made)
      return report(made.error());
    rows.push_back(load::row_of(step, *made));
    holds = holds && rows.back().holds;
  }
  output target(STDOUT_FILENO, -1);
  if (auto shown = target.write(load::to_text(varied, rows)); !shown)
    return target.is_closed() ? exit_failed : report(shown.error());
  if (auto written = json_file.write(load::to_json(varied, rows).dump() + '\n');
      !written)
    return report(written.error());
  if (!holds)
    return exit_failed;
  return signals.signal() != 0 ? interrupts::exit_code(signals.signal())
                               : exit_done;
}

} // namespace troupe::cli
