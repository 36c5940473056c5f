// The `troupe` program.

#include "troupe/cli/cli_main.hpp"

int main(int count, char** words) {
  return troupe::cli_main(count, words);
}
