#include "troupe/agents/files/missing_fields.hpp"

#include <algorithm>
#include <array>

namespace troupe {

namespace {

struct missing_field {
  std::string_view name;
  std::string_view why;
};

constexpr std::string_view workflows
  = "it belongs to workflows, which troupe does not have; combine "
    "SequentialAgent, ParallelAgent, MapAgent and LoopAgent";

// docs/agent_files.md lists the fields.
constexpr std::array missing_fields{
  missing_field{"edges", workflows},
  missing_field{"func", workflows},
  missing_field{"func_code", workflows},
  missing_field{"max_concurrency", workflows},
  missing_field{"parallel_worker",
                "use a MapAgent, which runs its agent for each element of a "
                "list"},
  missing_field{"planner",
                "troupe has no planners; thinking of Gemini is set by "
                "thinkingConfig in generate_content_config"},
  missing_field{"rerun_on_resume", workflows},
  missing_field{"retry_config",
                "calls of a model are repeated by 'attempts' of 'model', such "
                "as {name: openai:NAME, attempts: 3}"},
  missing_field{"state_schema",
                "troupe does not check the types of state keys; a tool or a "
                "callback of the program may"},
  missing_field{"timeout",
                "the lanes of ParallelAgent and MapAgent have a lane_timeout, "
                "and a program gives a run a deadline"},
  missing_field{"wait_for_output", workflows},
};

} // namespace

std::string_view why_missing(std::string_view field) {
  const auto found
    = std::ranges::find(missing_fields, field, &missing_field::name);
  return found == missing_fields.end() ? std::string_view() : found->why;
}

} // namespace troupe
