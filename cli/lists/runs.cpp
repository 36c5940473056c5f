#include "troupe/cli/lists/runs.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/options/number_check.hpp"
#include "troupe/cli/sessions/on_sessions.hpp"
#include "troupe/core/support/blank.hpp"

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cli {

namespace {

using run_list = std::vector<unfinished_run>;

std::int64_t whole_ms(std::chrono::microseconds time) {
  return std::chrono::floor<std::chrono::milliseconds>(time).count();
}

json line_of(const unfinished_run& listed) {
  return {{"run", listed.invocation_id},
          {"app", listed.session.app},
          {"user", listed.session.user},
          {"session", listed.session.id},
          {"agent", listed.agent},
          {"began", to_seconds(listed.began)},
          {"holder", listed.holder},
          {"silentMs", listed.silent ? json(whole_ms(*listed.silent)) : json()},
          {"free", listed.is_free}};
}

// Tells if another process can recover the run.
std::string holder_text(const unfinished_run& listed) {
  if (!listed.silent)
    return "free: its process has ended or has left it";
  const auto silent = whole_ms(*listed.silent);
  return listed.is_free
           ? fmt::format("free: its process was last heard of {} ms ago",
                         silent)
           : fmt::format("its process was heard of {} ms ago", silent);
}

std::string text_of(const unfinished_run& listed) {
  const auto began = std::chrono::floor<std::chrono::seconds>(listed.began);
  return visible_text(
           fmt::format("{}  {}  {}  began {:%Y-%m-%d %H:%M:%S} UTC  {}",
                       listed.invocation_id,
                       to_string(listed.session),
                       listed.agent,
                       fmt::gmtime(std::chrono::system_clock::to_time_t(began)),
                       holder_text(listed)),
           " ")
         + '\n';
}

result<void> print_text(output& target, const run_list& found) {
  for (const auto& listed : found)
    if (auto written = target.write(text_of(listed)); !written)
      return written;
  if (found.empty())
    std::fputs("no open runs\n", stderr);
  else if (std::ranges::any_of(found, &unfinished_run::is_free))
    std::fputs("recover one that is free: troupe run FILE --app APP --user "
               "USER --session SESSION --recover RUN\n",
               stderr);
  return {};
}

result<void> print_json(output& target, const run_list& found) {
  auto rows = json::array();
  for (const auto& listed : found)
    rows.push_back(line_of(listed));
  return print_line(target, {{"runs", std::move(rows)}});
}

} // namespace

runs_command::runs_command(CLI::App& program)
  : program_command(
    program,
    "runs",
    "List the runs of a store that have begun and not ended, the oldest first: "
    "those of processes that were killed, and those that run now. `troupe run "
    "FILE --session S --recover RUN` continues one of a process that has "
    "ended, and `troupe runs --close RUN` gives it up") {
  show_example(parser(),
               "troupe sessions create --app press --user ann\n"
               "troupe runs --app press");
  parser().footer(
    "Exit codes: 0 done; 1 the command failed; 2 the command line is wrong; "
    "130 and 143 after\nCtrl-C and SIGTERM.");
  parser()
    .add_option("--app", app_, "Only runs of this app; default: of all apps")
    ->type_name("A");
  parser()
    .add_option("--close",
                close_,
                "Give up this open run in place of a list: its id, or `last` "
                "for the newest one whose process has ended. It is not listed "
                "any more, and cannot be "
                "recovered; its events stay. Its process must have ended")
    ->type_name("RUN")
    ->check([](const std::string& text) {
      return is_blank(text)
               ? std::string("it is empty; pass the id of a run, or last")
               : std::string();
    });
  parser()
    .add_option("--limit", limit_, "Runs to print at most")
    ->type_name("N")
    ->check(number_from(1))
    ->capture_default_str();
  parser().add_flag(
    "--json",
    as_json_,
    "Print one line of JSON: {\"runs\": [{\"run\", \"app\", \"user\", "
    "\"session\", \"agent\", \"began\", \"holder\", \"silentMs\", "
    "\"free\"}]}, or {\"closed\": run} with --close");
  store_.add_to(parser());
}

// The newest open run, or the run that is named.
result<unfinished_run> runs_command::find_run(runtime& owners) const {
  auto open
    = owners
        .unfinished(app_, {.limit = std::numeric_limits<std::int32_t>::max()})
        .get();
  if (!open)
    return open.error();
  const bool is_last = close_ == "last";
  // Of runs whose processes go on, the newest one tells when to try again.
  const bool any_free = std::ranges::any_of(*open, &unfinished_run::is_free);
  std::erase_if(*open, [&](const unfinished_run& each) {
    return is_last ? any_free && !each.is_free : each.invocation_id != close_;
  });
  if (open->empty())
    return error(errc::not_found,
                 is_last ? "there is no open run to close"
                         : fmt::format("there is no open run '{}'; `troupe "
                                       "runs` lists the open ones",
                                       *close_));
  if (!is_last && open->size() > 1)
    return error(errc::invalid_argument,
                 fmt::format("{} sessions have an open run '{}'; name the app "
                             "of one with --app",
                             open->size(),
                             *close_));
  return std::move(open->back());
}

result<void> runs_command::close(runtime& owners, output& target) const {
  const auto found = find_run(owners);
  if (!found)
    return found.error();
  if (auto closed
      = owners.close_run(found->session, found->invocation_id).get();
      !closed)
    return closed;
  if (as_json_)
    return print_line(target, json::object({{"closed", line_of(*found)}}));
  return target.write(visible_text(fmt::format("closed run {} of session {}",
                                               found->invocation_id,
                                               to_string(found->session)),
                                   " ")
                      + '\n');
}

int runs_command::execute(interrupts& signals) const {
  signals.begin();
  auto owners = runtime::open(store_.for_runtime());
  if (!owners)
    return report(owners.error());
  output target(STDOUT_FILENO, signals.descriptor());
  if (close_)
    return end(close(*owners, target), target, signals);
  const auto found = owners->unfinished(app_, {.limit = limit_}).get();
  if (!found)
    return end(found.error(), target, signals);
  return end(as_json_ ? print_json(target, *found) : print_text(target, *found),
             target,
             signals);
}

} // namespace troupe::cli
