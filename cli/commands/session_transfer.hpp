// Moves sessions between a store and files: session JSON, or a database of ADK.

#pragma once

#include "troupe/cli/terminal/interrupts.hpp"
#include "troupe/runtime/runtime.hpp"

#include <optional>
#include <string>

namespace troupe::cli {

/// Sessions and their file, as the command line names them.
struct session_transfer {
  std::optional<std::string> app;
  std::optional<std::string> user;
  std::optional<std::string> session;
  /// Path, or `-` for stdin and stdout; of a database of ADK its address.
  std::string file;
  bool is_for_adk = false;
  /// An import leaves out sessions that exist already.
  bool skips_existing = false;
};

/// Writes sessions of the store; needs an app. Returns the exit code.
int write_sessions(const session_transfer& chosen,
                   runtime_options options,
                   interrupts& signals);

/// Creates sessions in the store, under the names that are given. Returns the
/// exit code.
int read_sessions(const session_transfer& chosen,
                  runtime_options options,
                  interrupts& signals);

} // namespace troupe::cli
