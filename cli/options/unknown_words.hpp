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
/// their order, and the option or command that each was probably meant to be.
/// Empty if it understood all.
std::string unknown_words(const CLI::App& program);

} // namespace troupe::cli
