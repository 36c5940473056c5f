#include "troupe/agents/drawing.hpp"

#include "troupe/agents/drawings/dot_text.hpp"
#include "troupe/agents/drawings/tree_text.hpp"

namespace troupe {

std::string to_text(const agent& drawn) {
  return drawings::to_tree_text(drawings::draw(drawn));
}

std::string to_dot(const agent& drawn, const dot_options& options) {
  return drawings::to_dot_text(drawings::draw(drawn), options.dark);
}

} // namespace troupe
