// Variables of a `.env` file, as ADK and python-dotenv read them.
//
// They count where the environment of the process has none of that name, and
// never become part of it.

#pragma once

#include "troupe/core/error.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The variables of one file. A plain value.
struct dotenv_file {
  /// Path of the file; empty: there is none.
  std::filesystem::path file = {};
  /// True if the file stands in the folder of the agent file, and is no link to
  /// another one. Its variables then belong to the author of the agent file,
  /// who may use them.
  bool is_beside_agent = false;
  /// Variables with their values.
  std::map<std::string, std::string> values = {};

  friend bool operator==(const dotenv_file&, const dotenv_file&) = default;
};

/// Reads the syntax of python-dotenv: lines `NAME=value`, also with `export`
/// before them; comments from `#`; values in single quotes, with `\'` and `\\`,
/// or in double quotes, with `\n` and the like, which may go over several
/// lines; `${NAME}` and `${NAME:-default}` in any value. Such a name is looked
/// up among the variables before, then by `outside`; without a value the
/// default counts, else no text. A line without `=` unsets its name. If
/// a name comes twice, the last one counts.
///
/// `outside` returns nothing for a name that it does not have; its failure is
/// that of the call. Fails with `errc::invalid_argument` for a line that
/// python-dotenv would skip with a warning. Messages name the line: `"line 3:
/// …"`.
result<std::map<std::string, std::string>>
read_dotenv(std::string_view text,
            const std::function<result<std::optional<std::string>>(
              const std::string& name)>& outside);

/// Finds and reads the `.env` of an agent file, or of a folder with one: in the
/// folder of the file, else in the nearest folder above that has one, as ADK
/// does. Returns an empty value if there is none.
///
/// `${NAME}` is looked up in the environment of the process, too. A file beside
/// the agent may use only those of its variables that `allowed_variables`
/// names. Fails with `errc::invalid_argument`; the message begins with file and
/// line.
result<dotenv_file>
find_dotenv(const std::filesystem::path& agent_file,
            const std::vector<std::string>& allowed_variables = {});

} // namespace troupe
