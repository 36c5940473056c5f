#include "troupe/agents/graphs/recorded.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <sstream>
#include <utility>

namespace troupe {

namespace {

error unreadable(const std::string& workflow) {
  return {errc::invalid_argument,
          fmt::format("the session has no readable structure of workflow '{}'",
                      workflow)};
}

const json* row_field(const json& row, const char* name) {
  const auto found = row.is_object() ? row.find(name) : row.end();
  return found == row.end() ? nullptr : &*found;
}

std::optional<std::string> words_in(const json& row, const char* name) {
  const auto* found = row_field(row, name);
  return found != nullptr && found->is_string()
           ? std::optional(found->get<std::string>())
           : std::nullopt;
}

// Reads `NAME`, `NAME otherwise`, or `NAME route route`, with routes as JSON.
std::optional<workflow_edge> edge_in(std::string from,
                                     const std::string& text) {
  workflow_edge made;
  made.from = std::move(from);
  const auto space = text.find(' ');
  made.to = text.substr(0, space);
  if (space == std::string::npos)
    return made;
  if (text.substr(space) == " otherwise") {
    made.otherwise = true;
    return made;
  }
  std::istringstream rest(text.substr(space + 1));
  while (rest >> std::ws, !rest.eof()) {
    json value;
    try {
      rest >> value;
    } catch (const json::exception&) {
      return std::nullopt;
    }
    auto read = route_from_json(value);
    if (!read)
      return std::nullopt;
    made.routes.push_back(std::move(*read));
  }
  return made;
}

std::optional<join> rule_in(const json& row) {
  join rule;
  if (const auto* count = row_field(row, "count")) {
    if (!count->is_number_unsigned())
      return std::nullopt;
    rule.count = count->get<std::size_t>();
  }
  if (const auto* effect = row_field(row, "onMissing")) {
    if (!effect->is_number_integer() || *effect < 0 || *effect > 2)
      return std::nullopt;
    rule.on_missing = static_cast<missing_inputs>(effect->get<int>());
  }
  if (const auto* effect = row_field(row, "onFailed")) {
    if (!effect->is_number_integer() || *effect < 0 || *effect > 1)
      return std::nullopt;
    rule.on_failed = static_cast<failed_inputs>(effect->get<int>());
  }
  return rule;
}

} // namespace

result<recorded_graph> read_structure(const std::string& workflow,
                                      const json& structure) {
  if (row_field(structure, "hash") != nullptr
      || to_text(structure).size() > structure_bytes_max)
    return error(errc::not_found,
                 fmt::format("the session has only a hash of the structure of "
                             "workflow '{}'",
                             workflow));
  const auto* rows = row_field(structure, "nodes");
  if (rows == nullptr || !rows->is_array())
    return unreadable(workflow);
  recorded_graph made;
  std::vector<workflow_node> nodes;
  std::vector<workflow_edge> edges;
  for (const auto& row : *rows) {
    const auto name = words_in(row, "name");
    const auto kind = words_in(row, "kind");
    const auto* targets = row_field(row, "edges");
    if (!name || !kind || targets == nullptr || !targets->is_array())
      return unreadable(workflow);
    for (const auto& target : *targets) {
      auto edge = target.is_string()
                    ? edge_in(*name, target.get_ref<const std::string&>())
                    : std::nullopt;
      if (!edge)
        return unreadable(workflow);
      edges.push_back(std::move(*edge));
    }
    if (*name == workflow_start)
      continue;
    auto& added = nodes.emplace_back();
    added.name = *name;
    added.visits_max = UINT64_MAX;
    if (*kind == "join") {
      const auto rule = rule_in(row);
      if (!rule)
        return unreadable(workflow);
      added.work = *rule;
    } else {
      const node_function nothing([](node_context&) { return json(); });
      if (*kind == "map")
        added.work = map_over{.work = nothing};
      else
        added.work = nothing;
    }
    made.kinds.push_back(*kind);
    made.has_agent.push_back(*kind == "agent"
                             || words_in(row, "each") == "agent");
  }
  try {
    std::vector<agent> agents;
    made.graph
      = std::make_unique<const workflow_graph>(workflow, nodes, edges, agents);
  } catch (const error&) {
    return unreadable(workflow);
  }
  return made;
}

} // namespace troupe
