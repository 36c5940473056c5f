#include "troupe/agents/node_context.hpp"

#include <fmt/format.h>

namespace troupe {

task<event_ptr> node_context::emit(event said) {
  if (said.id.empty() && !said.partial)
    said.id = fmt::format("{}/{}", key(), ++emitted_);
  return invocation_context::emit(std::move(said));
}

} // namespace troupe
