// Texts for command lines that are wrong.

#pragma once

#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

/// `troupe COMMAND --help` of the command that was chosen.
std::string help_line(const CLI::App& program);

/// Names the words that the command line of `program` did not understand, in
/// their order, each with the option or command that it resembles, or with the
/// command that an option belongs to. Empty if all words were understood.
std::string unknown_words(const CLI::App& program);

} // namespace troupe::cli
