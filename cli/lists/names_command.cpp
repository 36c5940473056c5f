#include "troupe/cli/lists/names_command.hpp"

#include "troupe/cli/options/example_first.hpp"
#include "troupe/cli/sessions/on_sessions.hpp"

#include <CLI/CLI.hpp>

namespace troupe::cli {

namespace {

const std::string first_line
  = "troupe sessions create --app press --user ann\n";

} // namespace

names_command::names_command(CLI::App& program,
                             const std::string& field,
                             const std::string& description,
                             const std::string& example)
  : program_command(program, field, description),
    field_(field) {
  parser().require_subcommand(1);
  // Set before the subcommands, which inherit it.
  parser().footer(
    "Exit codes: 0 done; 1 the request was refused, the command failed, or "
    "the question was not\nanswered with yes; 2 the command line is wrong; 130 "
    "and 143 after "
    "Ctrl-C and SIGTERM.");
  show_example(parser(), first_line + example);
}

CLI::App& names_command::add_list(const std::string& description) {
  auto& list = *parser().add_subcommand("list", description);
  store_.add_to(list);
  page_.add_to(list, "Names");
  list_ = &list;
  return list;
}

CLI::App& names_command::add_remove(const std::string& description,
                                    const std::string& example) {
  auto& remove = *parser().add_subcommand("remove", description);
  show_example(remove, first_line + example);
  add_app(remove);
  remove.add_flag("--yes", target_.is_confirmed, "Remove without a question");
  store_.add_to(remove);
  store_.add_artifacts_to(remove);
  store_.add_memory_to(remove);
  return remove;
}

void names_command::add_app(CLI::App& command) {
  command.add_option("--app", target_.app, "App")->required()->type_name("A");
}

int names_command::execute(interrupts& signals) const {
  if (!list_->parsed())
    return remove_from(store_, target_, signals);
  return on_sessions(
    store_,
    signals,
    [this](session_service& sessions, output& target) -> result<void> {
      const auto page = read(sessions);
      return page ? print_line(target, to_line(*page, field_.c_str()))
                  : page.error();
    });
}

} // namespace troupe::cli
