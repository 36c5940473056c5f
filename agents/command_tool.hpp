// A program as a tool: one call is one run of it.
//
//   auto weather = troupe::command_tool(
//     {.name = "weather",
//      .description = "Tells the weather of a city.",
//      .parameters = {{"type", "object"}, …},
//      .command = {"./weather.py", "--json"}});

#pragma once

#include "troupe/agents/tool.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The program of a tool, and the limits of its runs.
struct command_tool_options {
  /// The name that the model uses, as in `tool_options`.
  std::string name = {};
  /// Purpose of the tool, as text for the model.
  std::string description = {};
  /// JSON Schema of the arguments; must describe an object. Arguments that do
  /// not fit never reach the program.
  json parameters = detail::any_object();
  /// The program, a path or a name that is searched in `PATH`, and its
  /// arguments, started without a shell. Without a placeholder, the program
  /// gets the arguments of the call as one JSON object and a line end on its
  /// stdin. In a word, the placeholder `{NAME}` stands for the argument NAME,
  /// and `{{NAME}}` is the text `{NAME}`; stdin is empty then. The program's
  /// name has no placeholders. A word with a placeholder stays one argument of
  /// the program. It is left out if the call does not have the argument. The
  /// call fails if such a word begins with `-` because of its argument, and no
  /// word `--` comes before.
  std::vector<std::string> command = {};
  /// Working folder of the program; empty: that of this process.
  std::filesystem::path folder = {};
  /// Further environment variables of the program. It inherits only `PATH`,
  /// `HOME`, `USER`, `LOGNAME`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `LANG`,
  /// `LC_ALL` and `LC_CTYPE`.
  std::map<std::string, std::string> env = {};
  /// Names of environment variables of this process that the program gets, too.
  /// They are read once, by `command_tool`.
  std::vector<std::string> passed_variables = {};
  /// Time limit of one run. Unset: `run_options::tool_timeout`.
  std::optional<std::chrono::milliseconds> timeout = {};
  /// Limit of the runs at the same time; further calls wait in order.
  std::size_t calls_max = 16;
  /// Limit of the bytes on stdout. A program that writes more is ended, and the
  /// call fails. A result has to fit in an event with others.
  std::size_t output_bytes_max = std::size_t{256} << 10U;
  /// The time in which a program may end after SIGTERM. Then it is killed.
  std::chrono::milliseconds end_grace{2'000};
  /// Effect of a failed call on the agent.
  tool_failure on_failure = tool_failure::tell_model;
  /// Calls that the user has to allow, as in `tool_options`.
  confirmation_rule require_confirmation = {};
};

/// Makes the tool. A call starts the program and holds no thread while the
/// program runs. The result is the text on stdout: the object if it is a JSON
/// object, otherwise the text without the line ends at its end. Bytes that are
/// not UTF-8 become U+FFFD.
///
/// A call fails with `errc::tool_failed` if the program cannot be started, or
/// if it ends with another exit status than 0 or by a signal; the message has
/// the end of its stderr (of stdout if that is empty). It fails with
/// `errc::too_large` above `output_bytes_max`, and with
/// `errc::invalid_argument` for an argument that cannot be placed.
///
/// If the run is cancelled or the time is over, the process group of the
/// program gets SIGTERM, and SIGKILL after `end_grace`. The group is killed,
/// too, when the program has ended, and no zombie stays. The program inherits
/// no file but stdin, stdout and stderr.
///
/// Throws `errc::invalid_argument` as the constructor of `tool`, for an empty
/// `command`, for a placeholder whose name is no property of `parameters`, for
/// an `output_bytes_max` of 0, and for a variable of `passed_variables` that is
/// not set.
tool command_tool(command_tool_options options);

} // namespace troupe
