#include "troupe/cli/terminal/ending.hpp"

#include "troupe/cli/terminal/exit_code.hpp"

#include <unistd.h>

namespace troupe::cli {

int end(const result<void>& done, const output& target) {
  if (target.is_closed())
    return exit_failed;
  return done ? exit_done : report(done.error());
}

int end(const result<void>& done,
        const output& target,
        const interrupts& signals) {
  if (signals.signal() == 0)
    return end(done, target);
  if (!done)
    report(done.error());
  return interrupts::exit_code(signals.signal());
}

int print(std::string_view text, int interrupted) {
  output target(STDOUT_FILENO, interrupted);
  const auto written = target.write(text);
  return end(written, target);
}

} // namespace troupe::cli
