// `troupe apps`: the apps of a store, listed and removed.

#pragma once

#include "troupe/cli/lists/names_command.hpp"

namespace troupe::cli {

class apps_command final : public names_command {
public:
  /// Adds the command to `program`, which outlives this.
  explicit apps_command(CLI::App& program);

private:
  result<name_page> read(session_service& sessions) const override;
};

} // namespace troupe::cli
