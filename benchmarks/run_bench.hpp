// Runs of agents, reads, and memory of idle sessions.

#pragma once

#include "measure.hpp"

namespace bench {

void get_recent(std::size_t rounds);
void run_sequence(std::size_t rounds);
void run_parallel(std::size_t rounds);
void run_many_lanes(std::size_t rounds);
void run_turns(std::size_t rounds);
void run_many_models(std::size_t rounds);
void run_history(std::size_t rounds);
void idle_sessions();

} // namespace bench
