// A program that knows only the installed package runs a load test.

#include "troupe/load/report.hpp"

int main() {
  troupe::load::settings chosen;
  chosen.appends = 100;
  const auto made = troupe::load::run_load_test(chosen, {}, {});
  return made && made->found && made->found->holds() ? 0 : 1;
}
