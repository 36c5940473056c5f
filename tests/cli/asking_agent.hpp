// An agent whose run waits for a person, and the question of that run.

#pragma once

#include "program.hpp"

#include <string>
#include <string_view>

namespace troupe::testing {

// Writes an agent that asks before it calls a tool, and the script `done.json`
// for the program that answers: each program starts a script from its
// beginning. Returns the agent file.
inline std::string write_asking_agent(const scratch_folder& into) {
  into.write("ask.json",
             R"({"asks": [{"function_calls": [{"name": "exit_loop"}]}]})");
  into.write("done.json", R"({"asks": ["done"]})");
  return into.write("asks.yaml",
                    "name: asks\nmodel: scripted:ask.json\n"
                    "tools: [{name: exit_loop, require_confirmation: true}]\n");
}

// The id of the question that a run waits for.
inline std::string question_of(const ended& asked) {
  const std::string_view option = "--answer '";
  const auto from = asked.errors.find(option) + option.size();
  return asked.errors.substr(from, asked.errors.find('=', from) - from);
}

} // namespace troupe::testing
