// The part that `troupe apps` and `troupe users` share: names are listed, and
// one of them is removed with all that belongs to it.

#pragma once

#include "troupe/cli/commands/program_command.hpp"
#include "troupe/cli/options/page_option.hpp"
#include "troupe/cli/options/store_option.hpp"
#include "troupe/cli/sessions/cleaning.hpp"
#include "troupe/runtime/session_service.hpp"

#include <string>

namespace troupe::cli {

class names_command : public program_command {
public:
  int execute(interrupts& signals) const final;

protected:
  /// `field` is the name of the list in the output.
  names_command(CLI::App& program,
                const std::string& field,
                const std::string& description,
                const std::string& example);

  /// Each adds a subcommand, and is called once.
  CLI::App& add_list(const std::string& description);
  CLI::App& add_remove(const std::string& description,
                       const std::string& example);

  /// Adds the required option `--app`.
  void add_app(CLI::App& command);

  /// Reads the page that `page_` asks for.
  virtual result<name_page> read(session_service& sessions) const = 0;

  // Arguments.
  store_option store_;
  page_option page_;
  unwanted target_;

private:
  const std::string field_;
  const CLI::App* list_ = nullptr;
};

} // namespace troupe::cli
