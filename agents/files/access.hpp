// The programs and environment variables that an agent file may use.
//
// A file may come from another person. It names programs and variables, and
// only the user allows them (`--allow-command`, `--allow-env`). Every failure
// is `errc::invalid_argument` and names file and line. Files that are only
// shown need no permission, and no variable is read for them.

#pragma once

#include "troupe/agents/files/fields.hpp"
#include "troupe/core/dotenv.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

class file_access {
public:
  /// The parameters outlive this. With `only_shown`, every program and variable
  /// is allowed, `${NAME}` stays as it is, and `dotenv_value` returns nothing.
  file_access(const std::vector<std::string>& commands,
              const std::vector<std::string>& variables,
              const dotenv_file& dotenv,
              bool only_shown)
    : commands_(commands),
      variables_(variables),
      dotenv_(dotenv),
      only_shown_(only_shown) {}

  /// Returns the program to start: a name without `/` as it is, or the whole
  /// path of one whose relative path starts at the file's folder. Fails if it
  /// is not allowed.
  result<std::string> program(const file_place& at,
                              const std::string& command) const;

  /// Returns the value of a variable if it comes from the `.env`; nothing if
  /// the environment has it, or no place has it. Fails if the user does not
  /// allow the variable, unless it comes from a `.env` beside the agent alone.
  result<std::optional<std::string>>
  dotenv_value(const file_place& at, const std::string& name) const;

  /// Replaces each `${NAME}` by the value of the variable, with the permission
  /// of `dotenv_value`. Fails if it is not set. `$${` becomes `${`.
  result<std::string> expand(const file_place& at,
                             const std::string& text) const;

  /// Reads the fields `env` and `pass_env`: variables that a program gets, with
  /// texts in which `${NAME}` is replaced, and names of variables. Those of the
  /// `.env` are added to `env`. The user has to allow each name, since some
  /// variables change what a program does (`LD_PRELOAD`).
  result<void> read_environment(const field_reader& fields,
                                std::map<std::string, std::string>& env,
                                std::vector<std::string>& passed) const;

private:
  result<void> check_allowed(const file_place& at,
                             const std::string& name) const;
  bool is_allowed(const std::string& name) const;

  const std::vector<std::string>& commands_;
  const std::vector<std::string>& variables_;
  const dotenv_file& dotenv_;
  const bool only_shown_;
};

/// Returns the folder where relative paths of a file start.
std::filesystem::path folder_of(const field_reader& fields);

/// Reads a list of texts; other scalars count as their text, as in a command
/// line.
result<std::vector<std::string>> read_texts(const field_reader& fields,
                                            std::string_view name);

/// Reads a mapping of names to texts.
result<std::map<std::string, std::string>>
read_text_map(const field_reader& fields, std::string_view name);

/// Fails if `fields` is no mapping or has a field that is not in `known`.
/// `what` names the mapping for messages.
result<void> check_known(const field_reader& fields,
                         std::string_view what,
                         std::span<const std::string_view> known);

} // namespace troupe
