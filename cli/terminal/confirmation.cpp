#include "troupe/cli/terminal/confirmation.hpp"

#include "troupe/cli/terminal/visible_text.hpp"

#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace troupe::cli {

result<void> confirm(const std::string& question) {
  if (::isatty(STDIN_FILENO) != 1)
    return error(errc::invalid_argument,
                 "nothing was removed: stdin is no terminal to ask on; --yes "
                 "removes without a question");
  std::fputs((visible_text(question, " ") + " [y/N] ").c_str(), stderr);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes")
    return {};
  return error(errc::cancelled, "nothing was removed");
}

} // namespace troupe::cli
