#include "troupe/cli/store_command.hpp"

#include "troupe/cli/exit_code.hpp"
#include "troupe/cli/output.hpp"
#include "troupe/cli/visible_text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace troupe::cli {

namespace {

/// How much is done, on one line of stderr while a person looks at it.
class percent_line {
public:
  percent_line() = default;
  percent_line(const percent_line&) = delete;
  percent_line& operator=(const percent_line&) = delete;

  ~percent_line() {
    if (shown_ && percent_ >= 0)
      std::fputs("\r\033[K", stderr);
  }

  void show(double share) {
    const auto percent = static_cast<int>(share * 100);
    if (!shown_ || percent == percent_)
      return;
    percent_ = percent;
    std::fputs(fmt::format("\r\033[Kchecking: {} %", percent).c_str(), stderr);
  }

private:
  const bool shown_ = ::isatty(STDERR_FILENO) == 1;
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
  : command_(program.add_subcommand("store", "Look after a store")) {
  command_->require_subcommand(1);
  // Before the subcommand, which takes it over.
  command_->footer("Exit codes: 0 sound; 1 damaged, or it cannot be read; 2 "
                   "the command line is wrong.\n\n"
                   "Example:\n"
                   "  troupe store check --store sqlite:troupe.db");
  auto& check = *command_->add_subcommand(
    "check",
    "Read all of a store and print what is damaged, one finding per line");
  store_.add_to(check);
}

bool store_command::is_chosen() const {
  return command_->parsed();
}

int store_command::execute(const interrupts& signals) const {
  const auto findings = find_damage(store_);
  if (!findings)
    return report(findings.error());
  if (findings->empty()) {
    // Not named: an address may hold a password.
    std::fputs("the store is sound\n", stderr);
    return exit_done;
  }
  std::string text;
  for (const auto& finding : *findings)
    text += visible_text(finding, " ") + '\n';
  output target(STDOUT_FILENO, signals.descriptor());
  if (const auto written = target.write(text); !written)
    return target.is_closed() ? exit_failed : report(written.error());
  return report(
    error(errc::corrupt,
          fmt::format("the store is damaged: {} findings", findings->size())));
}

} // namespace troupe::cli
