// The program `troupe` with the tools of the support desk.

#include "troupe/cli/cli_main.hpp"

#include "desk_tools.hpp"

int main(int count, char** words) {
  return troupe::cli_main(count, words, {.tools = desk_tools()});
}
