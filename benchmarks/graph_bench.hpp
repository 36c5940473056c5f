// Workflows: a chain of nodes, and a fan-out with a join.

#pragma once

#include "measure.hpp"

namespace bench {

void run_graphs(std::size_t rounds);

} // namespace bench
