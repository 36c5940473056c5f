#include "troupe/cli/commands/trace.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/prices_option.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/report_file.hpp"
#include "troupe/cli/terminal/screen_line.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/load/pages/page.hpp"
#include "troupe/load/pages/picture.hpp"
#include "troupe/load/timeline.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cli {

struct trace_command::arguments {
  store_option store;
  std::string app;
  std::string user = "user";
  std::string session;
  std::string invocation;
  std::string json_file;
  std::string html_file;
  std::string svg_file;
  prices_option prices;
};

namespace {

constexpr std::size_t columns_without_terminal = 100;

// The cost of all shown invocations.
load::cost_sum cost_of(const std::vector<load::timeline>& lines) {
  load::cost_sum sum;
  for (const auto& each : lines)
    if (each.cost)
      sum.add(*each.cost);
  return sum;
}

// The invocation of this name; the newest one if there is none.
const load::timeline& drawn_of(const std::vector<load::timeline>& lines,
                               const std::string& invocation) {
  const auto found
    = std::ranges::find(lines, invocation, &load::timeline::invocation);
  return found == lines.end() ? lines.back() : *found;
}

json report_of(const session& held,
               const std::vector<load::timeline>& lines,
               const load::price_list* prices) {
  auto written = json::object();
  written["kind"] = "trace";
  auto& where = written["session"] = json::object();
  where["app"] = held.key().app;
  where["user"] = held.key().user;
  where["id"] = held.key().id;
  written["cost"] = prices != nullptr
                      ? load::to_json(cost_of(lines), prices->currency())
                      : json();
  auto& shown = written["invocations"] = json::array();
  for (const auto& each : lines)
    shown.push_back(to_json(each));
  return written;
}

} // namespace

trace_command::trace_command(CLI::App& program)
  : program_command(
    program, "trace", "Show timelines of a session's agents, from its log"),
    arguments_(std::make_unique<arguments>()) {
  auto& chosen = *arguments_;
  show_example(parser(),
               "troupe init hello --no-program\n"
               "troupe run hello --session s1 --step-times --input 'Hello!'\n"
               "troupe trace --app hello --session s1");
  chosen.store.add_to(parser());
  parser().add_option("--app", chosen.app, "App")->required()->type_name("A");
  parser()
    .add_option("--user", chosen.user, "User")
    ->type_name("U")
    ->capture_default_str();
  parser()
    .add_option("--session", chosen.session, "Session")
    ->required()
    ->type_name("S");
  parser()
    .add_option("--invocation",
                chosen.invocation,
                "Show only this invocation, and those that continue it after "
                "a question; default: all of the session")
    ->type_name("ID");
  chosen.prices.add_to(parser());
  parser()
    .add_option("--json", chosen.json_file, "Write all steps to a file")
    ->type_name("FILE");
  parser()
    .add_option(
      "--html", chosen.html_file, "Write a page with the timelines to a file")
    ->type_name("FILE");
  parser()
    .add_option("--svg",
                chosen.svg_file,
                "Draw the newest invocation, or that of --invocation, as a "
                "picture")
    ->type_name("FILE");
  parser().footer(
    "Runs of troupe experiment and of troupe run --step-times record when "
    "models and\ntools worked. In other sessions only the ends of steps are "
    "known.");
}

trace_command::~trace_command() = default;

int trace_command::execute(interrupts& /*signals*/) const {
  const auto& chosen = *arguments_;
  if (auto apart
      = check_distinct({chosen.json_file, chosen.html_file, chosen.svg_file});
      !apart)
    return report(apart.error(), exit_usage);
  const auto prices = chosen.prices.read();
  if (!prices)
    return report(prices.error());
  private_report files;
  if (auto opened = files.open(chosen.json_file, chosen.html_file); !opened)
    return report(opened.error(), exit_usage);
  // A picture has names of agents and tools, and nothing of the conversation.
  report_file picture;
  if (auto opened = picture.open(chosen.svg_file); !opened)
    return report(opened.error(), exit_usage);
  auto owners = runtime::open(chosen.store.for_runtime());
  if (!owners)
    return report(owners.error());
  const auto held
    = owners->sessions().get({chosen.app, chosen.user, chosen.session}).get();
  if (!held)
    return report(held.error());
  auto lines = load::timelines_of(held->events(), prices->get());
  if (!chosen.invocation.empty())
    std::erase_if(lines, [&chosen](const auto& each) {
      return each.invocation != chosen.invocation
             && each.first_invocation != chosen.invocation;
    });
  if (lines.empty())
    return report(error(
      errc::not_found,
      chosen.invocation.empty()
        ? fmt::format("session {} has no invocations", to_string(held->key()))
        : fmt::format("session {} has no invocation '{}'",
                      to_string(held->key()),
                      chosen.invocation)));
  std::string text;
  for (const auto& each : lines)
    text += (text.empty() ? "" : "\n")
            + load::to_text(
              each, columns_of(STDOUT_FILENO, columns_without_terminal));
  if (*prices && lines.size() > 1)
    text += fmt::format("\ncost of all invocations: {}\n",
                        load::to_text(cost_of(lines), (*prices)->currency()));
  const auto data = report_of(*held, lines, prices->get());
  int code = print(visible_text(text, "\n"));
  if (code != exit_done)
    return code;
  const auto note = [&code](const result<void>& done) {
    if (!done)
      code = report(done.error());
  };
  note(files.json.finish(load::to_line(data)));
  if (files.html.is_wanted())
    note(files.html.finish(
      load::to_page(visible_text("troupe trace " + to_string(held->key()), " "),
                    visible_text(text, "\n"),
                    data)));
  if (picture.is_wanted())
    note(picture.finish(
      load::to_picture(drawn_of(lines, chosen.invocation),
                       fmt::format("A run of {}", held->key().app))));
  return code;
}

} // namespace troupe::cli
