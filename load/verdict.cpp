#include "troupe/load/verdict.hpp"

#include <fmt/format.h>

namespace troupe::load {

std::string to_string(const verdict& found) {
  auto text = fmt::format("verdict: {} acknowledged, {} lost, {} doubled",
                          found.acknowledged,
                          found.lost,
                          found.doubled);
  if (found.ghosts > 0)
    text += fmt::format(", {} ghosts", found.ghosts);
  if (found.torn > 0)
    text += fmt::format(", {} torn", found.torn);
  text += found.reordered == 0
            ? ", order ok"
            : fmt::format(", {} out of order", found.reordered);
  text += found.wrong_totals == 0
            ? ", totals ok"
            : fmt::format(", {} totals wrong", found.wrong_totals);
  return text;
}

} // namespace troupe::load
