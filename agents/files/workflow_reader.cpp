// A node is written once, anywhere in `edges`; other places name it. A place in
// `edges` is one of
//
//   START, NAME            the beginning, or a node that is written elsewhere
//   FILE.yaml              an agent in a file
//   {agent_class: …, …}    an agent or a join that is written here
//   {config_path: FILE}    an agent in a file
//   {command: […], …}      a tool
//
// and an item of `edges` is a chain of places, lists of places, and routing
// maps (`{ROUTE: PLACE or list of places}`), or one edge
// (`{from_node, to_node, route}`).

#include "troupe/agents/files/workflow_reader.hpp"

#include "troupe/agents/files/python_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// Two lists that follow each other have an edge for each pair.
constexpr std::size_t edges_max = 100'000;
constexpr std::string_view default_route = "__DEFAULT__";
constexpr std::string_view way_to_functions
  = "name a tool of the program (C++), make a program a node (command: "
    "[PROGRAM, …]), or write the agent in this file";

// Fields of a node that are none of its agent.
constexpr auto node_fields
  = std::to_array<std::string_view>({"retry_config",
                                     "timeout",
                                     "visits_max",
                                     "parallel_worker",
                                     "max_parallel_workers"});

bool is_file(std::string_view text) {
  return text.ends_with(".yaml") || text.ends_with(".yml")
         || text.ends_with(".json");
}

bool is_join_class(std::string_view named) {
  return named == "JoinNode" || named == "google.adk.workflow.JoinNode";
}

// Returns true for a mapping that is a node, not a routing map.
bool is_inline_node(const yaml_node& item) {
  return std::ranges::any_of(
    std::to_array<std::string_view>({"agent_class",
                                     "command",
                                     "config_path",
                                     "func",
                                     "func_code",
                                     "code",
                                     "name"}),
    [&item](std::string_view name) { return item.find(name) != nullptr; });
}

// A key or a value, by YAML's rules for unquoted texts.
result<route> read_route(const file_place& at, const yaml_node& value) {
  if (value.kind == yaml_node::form::scalar)
    if (auto read = route_from_json(to_json(value)))
      return read;
  return fail_at(at,
                 "a route is a text, a whole number, true or false; put other "
                 "texts in quotes");
}

class edge_reader {
public:
  edge_reader(const std::filesystem::path& file, const node_sources& sources)
    : file_(file),
      sources_(sources) {}

  result<void> read(const yaml_node& item) {
    if (item.kind == yaml_node::form::list)
      return read_chain(item);
    if (item.kind == yaml_node::form::map && item.find("from_node") != nullptr)
      return read_edge(item);
    return fail_at({&file_, item.line},
                   "an item of 'edges' is a list, such as [START, a, b], or a "
                   "mapping with from_node and to_node");
  }

  std::vector<workflow_node> nodes;
  std::vector<workflow_edge> edges;

private:
  using names = std::vector<std::string>;

  // A chain: each place follows all places of the element before it.
  result<void> read_chain(const yaml_node& chain) {
    names before;
    const yaml_node* routed = nullptr;
    for (const auto& item : chain.items) {
      const bool is_map
        = item->kind == yaml_node::form::map && !is_inline_node(*item);
      if (is_map && (before.empty() || routed != nullptr))
        return fail_at({&file_, item->line},
                       routed != nullptr
                         ? "two routing maps follow each other; put a node "
                           "between them"
                         : "a chain begins with a node or START, not with "
                           "routes");
      if (is_map) {
        auto after = read_routes(before, *item);
        if (!after)
          return after.error();
        before = std::move(*after);
        routed = item.get();
        continue;
      }
      routed = nullptr;
      auto after = read_places(*item);
      if (!after)
        return after.error();
      if (auto added = add_all(*item, before, *after, {}, false); !added)
        return added.error();
      before = std::move(*after);
    }
    if (chain.items.size() < 2)
      return fail_at({&file_, chain.line},
                     "a chain of 'edges' has at least two places");
    return {};
  }

  result<names> read_routes(const names& before, const yaml_node& map) {
    if (map.fields.empty())
      return fail_at({&file_, map.line}, "a routing map has no route");
    names all;
    for (const auto& field : map.fields) {
      auto after = read_places(*field.value);
      if (!after)
        return after;
      yaml_node key;
      key.kind = yaml_node::form::scalar;
      key.text = field.name;
      key.quoted = field.is_quoted;
      const bool is_default = field.name == default_route;
      result<route> value = route();
      if (!is_default)
        value = read_route({&file_, field.line}, key);
      if (!value)
        return value.error();
      if (auto added = add_all(map, before, *after, {*value}, is_default);
          !added)
        return added.error();
      for (auto& to : *after)
        add_name(all, std::move(to));
    }
    return all;
  }

  static void add_name(names& to, std::string name) {
    if (std::ranges::find(to, name) == to.end())
      to.push_back(std::move(name));
  }

  // Adds an edge; the default edge has no routes.
  void add(const std::string& from,
           const std::string& to,
           std::vector<route> routes,
           bool is_default) {
    if (is_default)
      routes.clear();
    edges.push_back({from, to, std::move(routes), is_default});
  }

  // Adds the edges from each of `before` to each of `after`.
  result<void> add_all(const yaml_node& written,
                       const names& before,
                       const names& after,
                       const std::vector<route>& routes,
                       bool is_default) {
    if (edges.size() + before.size() * after.size() > edges_max)
      return fail_at({&file_, written.line},
                     fmt::format("the workflow has more than {} edges; put a "
                                 "join between the two lists",
                                 edges_max));
    for (const auto& from : before)
      for (const auto& to : after)
        add(from, to, routes, is_default);
    return {};
  }

  result<void> read_edge(const yaml_node& item) {
    for (const auto& field : item.fields)
      if (field.name != "from_node" && field.name != "to_node"
          && field.name != "route")
        return fail_at({&file_, field.line},
                       fmt::format("unknown field '{}'; an edge has from_node, "
                                   "to_node and route",
                                   field.name));
    const auto* to = item.find("to_node");
    if (to == nullptr)
      return fail_at({&file_, item.line}, "the edge has no to_node");
    auto first = read_place(*item.find("from_node")->value);
    if (!first)
      return first.error();
    auto second = read_place(*to->value);
    if (!second)
      return second.error();
    const auto* given = item.find("route");
    if (given == nullptr || given->value->kind == yaml_node::form::null) {
      edges.push_back({std::move(*first), std::move(*second)});
      return {};
    }
    const file_place at{&file_, given->line};
    const auto& value = *given->value;
    const bool is_list = value.kind == yaml_node::form::list;
    if (is_list && value.items.empty())
      return fail_at(at, "'route' is an empty list; leave it out");
    std::vector<route> routes;
    for (std::size_t index = 0; index < (is_list ? value.items.size() : 1);
         ++index) {
      const auto& each = is_list ? *value.items[index] : value;
      if (each.text == default_route && is_list)
        return fail_at(at,
                       fmt::format("{} stands alone, not in a list of routes",
                                   default_route));
      if (each.text == default_route) {
        add(*first, *second, {}, true);
        return {};
      }
      auto read = read_route(at, each);
      if (!read)
        return read.error();
      routes.push_back(std::move(*read));
    }
    add(*first, *second, std::move(routes), false);
    return {};
  }

  result<names> read_places(const yaml_node& item) {
    if (item.kind != yaml_node::form::list) {
      auto one = read_place(item);
      if (!one)
        return one.error();
      return names{std::move(*one)};
    }
    names all;
    for (const auto& each : item.items) {
      auto one = read_place(*each);
      if (!one)
        return one.error();
      add_name(all, std::move(*one));
    }
    if (all.empty())
      return fail_at({&file_, item.line}, "the list names no node");
    return all;
  }

  result<std::string> read_place(const yaml_node& item) {
    const file_place at{&file_, item.line};
    if (item.kind == yaml_node::form::map)
      return read_node(item);
    if (item.kind != yaml_node::form::scalar || item.text.empty())
      return fail_at(at,
                     "expected START, the name of a node, the path of an agent "
                     "file, or a node");
    if (is_file(item.text)) {
      // The same file names the same node.
      const auto known = files_.find(item.text);
      if (known != files_.end())
        return known->second;
      yaml_node path;
      path.kind = yaml_node::form::map;
      path.line = item.line;
      path.fields.push_back(
        {"config_path", item.line, 0, std::make_shared<yaml_node>(item)});
      auto made = read_node(path);
      if (made)
        files_[item.text] = *made;
      return made;
    }
    if (item.text.find('.') != std::string::npos)
      return fail_on_python(at, item.text, way_to_functions);
    lines_.try_emplace(item.text, item.line);
    return item.text;
  }

public:
  // Adds the tools of the program that the edges name. Fails for a name that is
  // no node either.
  result<void> add_tools() {
    for (const auto& [name, line] : lines_) {
      if (name == workflow_start
          || std::ranges::find(nodes, name, &workflow_node::name)
               != nodes.end())
        continue;
      auto found = sources_.find_tool(name);
      if (!found)
        return fail_at(
          {&file_, line},
          fmt::format("'{}' is neither a node of this workflow nor "
                      "a tool of the program",
                      name));
      nodes.push_back({.name = name, .work = std::move(*found)});
    }
    return {};
  }

private:
  // Reads a node that is written here; returns its name.
  result<std::string> read_node(const yaml_node& item) {
    const field_reader fields(file_, item);
    workflow_node made;
    if (auto read = read_rules(fields, made); !read)
      return read.error();
    for (const auto* code : {"func", "func_code", "code"})
      if (item.find(code) != nullptr)
        return fail_on_python(fields.at(code), code, way_to_functions);
    auto rest = item;
    std::erase_if(rest.fields, [](const auto& field) {
      return std::ranges::find(node_fields, field.name) != node_fields.end();
    });
    const auto* kind = fields.find("agent_class");
    if (kind != nullptr && is_join_class(kind->text)) {
      if (auto read = read_join(fields, made); !read)
        return read.error();
    } else if (kind != nullptr
               && (kind->text == "FunctionNode"
                   || kind->text == "google.adk.workflow.FunctionNode")) {
      return fail_on_python(
        fields.at("agent_class"), kind->text, way_to_functions);
    } else if (item.find("command") != nullptr) {
      auto which = sources_.read_tool(file_, rest);
      if (!which)
        return which.error();
      made.name = which->name();
      made.work = std::move(*which);
    } else {
      auto which = sources_.read_agent(file_, rest);
      if (!which)
        return which.error();
      made.name = which->name();
      made.work = std::move(*which);
    }
    if (auto read = read_map(fields, made); !read)
      return read.error();
    auto name = made.name;
    nodes.push_back(std::move(made));
    return name;
  }

  // Makes the node a map of its agent or tool, in ADK's words.
  static result<void> read_map(const field_reader& fields,
                               workflow_node& made) {
    auto is_map = fields.flag("parallel_worker");
    if (!is_map)
      return is_map.error();
    auto most = fields.count("max_parallel_workers");
    if (!most)
      return most.error();
    if (*most && !*is_map)
      return fail_at(fields.at("max_parallel_workers"),
                     "'max_parallel_workers' needs 'parallel_worker: true'");
    if (!*is_map)
      return {};
    map_over all;
    if (auto* which = std::get_if<agent>(&made.work))
      all.work = std::move(*which);
    else
      all.work = std::get<tool>(std::move(made.work));
    if (*most)
      all.lanes_max = static_cast<std::size_t>(**most);
    made.work = std::move(all);
    return {};
  }

  static result<void> read_join(const field_reader& fields,
                                workflow_node& made) {
    for (const auto& field : fields.node().fields)
      if (field.name != "agent_class" && field.name != "name"
          && field.name != "description" && field.name != "count"
          && field.name != "on_missing" && field.name != "on_failed")
        return fail_at({&fields.file(), field.line},
                       fmt::format("unknown field '{}'; JoinNode has "
                                   "agent_class, name, description, count, "
                                   "on_missing, on_failed",
                                   field.name));
    auto name = fields.text("name");
    if (!name)
      return name.error();
    if (!*name)
      return fail_at(fields.at(), "a JoinNode needs a field 'name'");
    made.name = **name;
    join rule;
    auto count = fields.count("count");
    if (!count)
      return count.error();
    if (*count)
      rule.count = static_cast<std::size_t>(**count);
    constexpr std::array<std::string_view, 3> choices{"fail", "skip", "drop"};
    auto missing = fields.choice("on_missing", choices);
    if (!missing)
      return missing.error();
    rule.on_missing = static_cast<missing_inputs>(missing->value_or(0));
    constexpr std::array<std::string_view, 2> effects{"fail", "skip"};
    auto failed = fields.choice("on_failed", effects);
    if (!failed)
      return failed.error();
    rule.on_failed = static_cast<failed_inputs>(failed->value_or(0));
    made.work = rule;
    return {};
  }

  static result<void> read_rules(const field_reader& fields,
                                 workflow_node& made) {
    auto timeout = fields.seconds("timeout");
    if (!timeout)
      return timeout.error();
    made.timeout = *timeout;
    auto visits = fields.count("visits_max");
    if (!visits)
      return visits.error();
    made.visits_max = visits->value_or(made.visits_max);
    const auto* written = fields.find("retry_config");
    if (written == nullptr)
      return {};
    if (written->kind != yaml_node::form::map)
      return fail_at(fields.at("retry_config"),
                     "'retry_config' must be a mapping");
    return read_retry(field_reader(fields.file(), *written), made.retry);
  }

  // The defaults are those of ADK.
  static result<void> read_retry(const field_reader& fields, node_retry& made) {
    constexpr auto known = std::to_array<std::string_view>({"max_attempts",
                                                            "initial_delay",
                                                            "max_delay",
                                                            "backoff_factor",
                                                            "jitter"});
    for (const auto& field : fields.node().fields) {
      if (field.name == "exceptions")
        return fail_on_python({&fields.file(), field.line},
                              field.name,
                              "leave it out, and every failure is tried again");
      if (std::ranges::find(known, field.name) == known.end())
        return fail_at({&fields.file(), field.line},
                       fmt::format("unknown field '{}'; retry_config has {}",
                                   field.name,
                                   fmt::join(known, ", ")));
    }
    const auto number
      = [&fields](std::string_view name, double usual) -> result<double> {
      const auto* found = fields.find(name);
      if (found == nullptr)
        return usual;
      const auto value = to_json(*found);
      if (!value.is_number() || value.get<double>() < 0)
        return fail_at(
          fields.at(name),
          fmt::format("'{}' must be a number, and not below 0", name));
      return value.get<double>();
    };
    const auto millis = [](double seconds) {
      constexpr double seconds_max = 1e9;
      return std::chrono::milliseconds(static_cast<std::int64_t>(
        std::clamp(seconds, -1.0, seconds_max) * 1e3));
    };
    auto attempts = fields.count("max_attempts");
    if (!attempts)
      return attempts.error();
    made.attempts_max = attempts->value_or(5);
    const auto first = number("initial_delay", 1);
    const auto most = number("max_delay", 60);
    const auto factor = number("backoff_factor", 2);
    const auto jitter = number("jitter", 1);
    for (const auto* each : {&first, &most, &factor, &jitter})
      if (!*each)
        return each->error();
    made.first_delay = millis(*first);
    made.delay_max = millis(*most);
    made.factor = *factor;
    made.jitter = *jitter;
    return {};
  }

  const std::filesystem::path& file_;
  const node_sources& sources_;
  std::map<std::string, std::string, std::less<>> files_;
  std::map<std::string, int> lines_; // Of names, where they come first.
};

} // namespace

result<workflow_options> read_workflow(const field_reader& fields,
                                       const node_sources& sources) {
  workflow_options made;
  edge_reader reader(fields.file(), sources);
  auto items = fields.list("edges");
  if (!items)
    return items.error();
  if (items->empty())
    return fail_at(fields.at(), "a Workflow needs a field 'edges'");
  for (const auto& item : *items)
    if (auto read = reader.read(*item); !read)
      return read.error();
  if (auto added = reader.add_tools(); !added)
    return added.error();
  made.nodes = std::move(reader.nodes);
  made.edges = std::move(reader.edges);
  // `max_concurrency` is ADK's name.
  for (const auto* name : {"lanes_max", "max_concurrency"}) {
    auto most = fields.count(name);
    if (!most)
      return most.error();
    if (*most && made.lanes_max)
      return fail_at(fields.at(name),
                     "'lanes_max' and 'max_concurrency' are the same; leave "
                     "one out");
    if (*most)
      made.lanes_max = static_cast<std::size_t>(**most);
  }
  auto key = fields.text("output_key");
  if (!key)
    return key.error();
  made.output_key = key->value_or("");
  return made;
}

} // namespace troupe
