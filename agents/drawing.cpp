#include "troupe/agents/drawing.hpp"

#include "troupe/agents/drawings/dot_text.hpp"
#include "troupe/agents/drawings/marks.hpp"
#include "troupe/agents/drawings/tree_text.hpp"

namespace troupe {

std::string to_text(const agent& drawn) {
  return drawings::to_tree_text(drawings::draw(drawn));
}

std::string to_text(const agent& drawn,
                    const std::vector<workflow_view>& seen) {
  auto root = drawings::draw(drawn);
  drawings::mark(root, seen);
  return drawings::to_tree_text(root);
}

std::string to_dot(const agent& drawn, const dot_options& options) {
  auto root = drawings::draw(drawn);
  drawings::mark(root, options.workflows);
  return drawings::to_dot_text(root, options.dark);
}

} // namespace troupe
