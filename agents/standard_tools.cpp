#include "troupe/agents/standard_tools.hpp"

#include "troupe/agents/agent.hpp"

namespace troupe {

std::vector<tool> standard_tools() {
  return {exit_loop(),
          get_user_choice(),
          load_artifacts(),
          load_memory(),
          preload_memory()};
}

} // namespace troupe
