#include "troupe/cli/commands/store.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/terminal/ending.hpp"
#include "troupe/cli/terminal/exit_code.hpp"
#include "troupe/cli/terminal/screen_line.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/stores/vacuum_store.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cli {

namespace {

/// Progress in percent, on one line of a terminal.
class percent_line {
public:
  void show(double share) {
    const auto percent = static_cast<int>(share * 100);
    if (std::exchange(percent_, percent) != percent)
      line_.show(fmt::format("checking: {} %", percent));
  }

private:
  screen_line line_;
  int percent_ = -1;
};

result<std::vector<std::string>> find_damage(const store_option& chosen) {
  auto options = chosen.for_store();
  options.read_only = true;
  auto opened = open_store(chosen.address(), options);
  if (!opened)
    return opened.error();
  percent_line line;
  auto findings = (*opened)->check([&line](double done) { line.show(done); });
  if (const auto closed = (*opened)->close(); findings && !closed)
    return closed.error();
  return findings;
}

} // namespace

store_command::store_command(CLI::App& program)
  : program_command(
    program, "store", "Check a store for damage, or vacuum its file") {
  parser().require_subcommand(1);
  // Set before the subcommand, which inherits it.
  parser().footer("Exit codes: 0 sound, or done; 1 damaged, or it failed; 2 "
                  "the command line is wrong.");
  show_example(parser(),
               "troupe sessions create --app press --user ann\n"
               "troupe store check --store sqlite:troupe.db");
  auto& check = *parser().add_subcommand(
    "check", "Read a whole store and print its damage, one finding per line");
  store_.add_to(check);
  auto& vacuum = *parser().add_subcommand(
    "vacuum",
    "Rewrite a SQLite file without anything that belonged to removed sessions, "
    "users and apps; no other program may use it meanwhile");
  show_example(vacuum,
               "troupe users remove --app press --user ann --yes\n"
               "troupe store vacuum --store sqlite:troupe.db");
  store_.add_to(vacuum);
  vacuum_ = &vacuum;
}

int store_command::execute(interrupts& signals) const {
  return vacuum_->parsed() ? vacuum(signals) : check(signals);
}

int store_command::vacuum(const interrupts& signals) const {
  const auto done = vacuum_store(store_.address(), store_.for_store());
  if (!done)
    return report(done.error());
  return print(fmt::format("{} bytes, before: {}\n",
                           done->bytes_after,
                           done->bytes_before),
               signals.descriptor());
}

int store_command::check(const interrupts& signals) const {
  const auto findings = find_damage(store_);
  if (!findings)
    return report(findings.error());
  if (findings->empty()) {
    // The address is not printed: it may hold a password.
    std::fputs("the store is sound\n", stderr);
    return exit_done;
  }
  std::string text;
  for (const auto& finding : *findings)
    text += visible_text(finding, " ") + '\n';
  if (const auto code = print(text, signals.descriptor()); code != exit_done)
    return code;
  return report(
    error(errc::corrupt,
          fmt::format("the store is damaged: {} findings", findings->size())));
}

} // namespace troupe::cli
