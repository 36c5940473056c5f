#include "troupe/cli/options/unknown_words.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::cli {

namespace {

// Number of characters to insert, remove, replace, or swap with the next one.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before;
  std::vector<std::size_t> last(to.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t row = 1; row <= from.size(); ++row) {
    std::vector<std::size_t> now(to.size() + 1, row);
    for (std::size_t column = 1; column <= to.size(); ++column) {
      const bool same = from[row - 1] == to[column - 1];
      now[column] = std::min({last[column] + 1,
                              now[column - 1] + 1,
                              last[column - 1] + (same ? 0U : 1U)});
      if (row > 1 && column > 1 && from[row - 1] == to[column - 2]
          && from[row - 2] == to[column - 1])
        now[column] = std::min(now[column], before[column - 2] + 1);
    }
    before = std::move(last);
    last = std::move(now);
  }
  return last.back();
}

// The command and its chosen subcommands, outermost first.
std::vector<const CLI::App*> chosen_commands(const CLI::App& program) {
  std::vector<const CLI::App*> chosen{&program};
  for (auto next = program.get_subcommands(); !next.empty();
       next = chosen.back()->get_subcommands())
    chosen.push_back(next.front());
  return chosen;
}

// Returns the command as the user writes it, up to `commands[last]`.
std::string path_of(const std::vector<const CLI::App*>& commands,
                    std::size_t last) {
  std::string path = "troupe";
  for (std::size_t index = 1; index <= last; ++index)
    path += ' ' + commands[index]->get_name();
  return path;
}

// Returns the command that has the option, or an empty text.
std::string command_of(const std::string& option,
                       const std::vector<const CLI::App*>& commands) {
  for (auto index = commands.size(); index-- > 0;)
    for (const auto* each : commands[index]->get_options())
      for (const auto& spelling : each->get_lnames())
        if (option == "--" + spelling)
          return path_of(commands, index);
  return {};
}

// Returns an empty text if no name is near.
std::string nearest(std::string_view word,
                    const std::vector<std::string>& names) {
  // A third of the word may be wrong.
  auto least = word.size() / 3 + 1;
  std::string found;
  for (const auto& name : names)
    if (const auto off = distance(word, name); off < least) {
      least = off;
      found = name;
    }
  return found;
}

} // namespace

std::string help_line(const CLI::App& program) {
  const auto commands = chosen_commands(program);
  return path_of(commands, commands.size() - 1) + " --help";
}

std::string unknown_words(const CLI::App& program) {
  const auto commands = chosen_commands(program);
  std::vector<std::string> options{"--help"};
  for (const auto* each : commands)
    for (const auto* option : each->get_options())
      for (const auto& spelling : option->get_lnames())
        options.push_back("--" + spelling);
  std::vector<std::string> subcommands;
  for (const auto* each : commands.back()->get_subcommands(
         [](const CLI::App* other) { return !other->get_name().empty(); }))
    subcommands.push_back(each->get_name());

  std::string text;
  bool is_value = false;
  for (const auto& given : program.remaining(true)) {
    const bool is_option = given.starts_with('-');
    // A word behind an unknown option is its value.
    if (std::exchange(is_value, is_option && given.find('=') == given.npos)
        && !is_option)
      continue;
    const auto word = given.substr(0, is_option ? given.find('=') : given.npos);
    // The option is known, but another command reads the words at this place.
    if (const auto owner = command_of(word, commands); !owner.empty()) {
      text += fmt::format("{}option '{}' must stand after '{}'",
                          text.empty() ? "" : "; ",
                          word,
                          owner);
      continue;
    }
    const auto meant = nearest(word, is_option ? options : subcommands);
    text += fmt::format(
      "{}unknown {} '{}'{}",
      text.empty() ? "" : "; ",
      is_option             ? "option"
      : subcommands.empty() ? "argument"
                            : "command",
      given,
      meant.empty() ? "" : fmt::format(", did you mean '{}'?", meant));
  }
  return text;
}

} // namespace troupe::cli
