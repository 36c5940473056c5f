#include "troupe/agents/files/missing_fields.hpp"

#include <algorithm>
#include <array>

namespace troupe {

namespace {

struct missing_field {
  std::string_view name;
  std::string_view why;
};

constexpr std::string_view functions
  = "it belongs to nodes that are Python functions; make a tool of the program "
    "(C++) a node, or a program (command: [PROGRAM, …])";

// docs/agent_files.md lists the fields.
constexpr std::array missing_fields{
  missing_field{"func", functions},
  missing_field{"func_code", functions},
  missing_field{"parallel_worker",
                "it belongs to the nodes of a Workflow; elsewhere use a "
                "MapAgent, which runs its agent for each element of a list"},
  missing_field{"max_parallel_workers",
                "it belongs to the nodes of a Workflow; a MapAgent has a "
                "lanes_max"},
  missing_field{"planner",
                "troupe has no planners; thinking of Gemini is set by "
                "thinkingConfig in generate_content_config"},
  missing_field{"rerun_on_resume",
                "an agent that waited for an answer always goes on where it "
                "was"},
  missing_field{"retry_config",
                "it belongs to the nodes of a Workflow; calls of a model are "
                "repeated by 'attempts' of 'model', such as {name: "
                "openai:NAME, attempts: 3}"},
  missing_field{"state_schema",
                "troupe does not check the types of state keys; a tool or a "
                "callback of the program may"},
  missing_field{"timeout",
                "it belongs to the nodes of a Workflow; the lanes of "
                "ParallelAgent and MapAgent have a lane_timeout, and a program "
                "gives a run a deadline"},
  missing_field{"wait_for_output",
                "the end of a node is always one event, with output or "
                "without"},
};

} // namespace

std::string_view why_missing(std::string_view field) {
  const auto found
    = std::ranges::find(missing_fields, field, &missing_field::name);
  return found == missing_fields.end() ? std::string_view() : found->why;
}

} // namespace troupe
