#include "troupe/agents/turns/node_event.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view input_end = "/input";

// The ids of a run's events hold the path, so no run makes a longer one.
constexpr std::size_t path_bytes_max = 512;

// `customMetadata.troupe.workflow`; null if it is not there, or no object.
const json* record_of(const event& said) {
  const auto* told = fact_in(said, "workflow");
  return told != nullptr && told->is_object() ? told : nullptr;
}

json make_record(const workflow_place& at) {
  auto told = json::object();
  told["run"] = at.run;
  if (at.items > 0)
    told["items"] = at.items;
  return told;
}

std::uint64_t number_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned()
           ? found->get<std::uint64_t>()
           : 0;
}

json fields_with(const std::string& path, json told) {
  auto own = json::object();
  own["workflow"] = std::move(told);
  auto metadata = json::object();
  metadata["troupe"] = std::move(own);
  auto info = json::object();
  info["path"] = path;
  auto fields = json::object();
  fields["nodeInfo"] = std::move(info);
  fields["customMetadata"] = std::move(metadata);
  return fields;
}

std::string text_at(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

// Reads the last segment of a path, `name@number`.
bool read_segment(std::string_view path,
                  std::string& name,
                  std::uint64_t& number) {
  const auto slash = path.rfind('/');
  const auto segment
    = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const auto mark = segment.rfind('@');
  if (mark == std::string_view::npos || mark == 0)
    return false;
  const auto digits = segment.substr(mark + 1);
  const auto* const last = digits.data() + digits.size();
  const auto [end, failed] = std::from_chars(digits.data(), last, number);
  if (failed != std::errc() || end != last || number == 0)
    return false;
  name = segment.substr(0, mark);
  return true;
}

std::vector<std::string> missing_in(const json& told) {
  std::vector<std::string> names;
  const auto found = told.find("missing");
  if (found != told.end() && found->is_array())
    for (const auto& each : *found)
      if (each.is_string())
        names.push_back(each.get<std::string>());
  return names;
}

std::vector<route> routes_in(const event& said) {
  std::vector<route> routes;
  const auto& actions = said.actions.extra.data();
  const auto found
    = actions.is_object() ? actions.find("route") : actions.end();
  if (found == actions.end())
    return routes;
  const auto add = [&routes](const json& one) {
    if (auto read = route_from_json(one))
      routes.push_back(std::move(*read));
  };
  if (!found->is_array())
    add(*found);
  else
    for (const auto& each : *found)
      add(each);
  return routes;
}

} // namespace

std::string path_of(const workflow_place& at,
                    std::string_view node,
                    std::uint64_t ordinal) {
  const auto number = std::to_string(ordinal);
  std::string path;
  path.reserve(at.path.size() + node.size() + number.size() + 2);
  path.append(at.path).append("/").append(node).append("@").append(number);
  return path;
}

std::string visit_id(const workflow_place& at, std::string_view path) {
  std::string id;
  id.reserve(at.run.size() + path.size() + 1);
  id.append(at.run).append("/").append(path);
  return id;
}

event make_begin_event(const workflow_place& at, json structure) {
  event said;
  said.id = visit_id(at, at.path) + "/begin";
  auto told = make_record(at);
  told["begins"] = std::move(structure);
  said.extra = fields_with(at.path, std::move(told));
  return said;
}

event make_end_event(const workflow_place& at,
                     const std::string& path,
                     json output,
                     const std::vector<route>& routes,
                     const std::vector<std::string>& missing) {
  event said;
  said.id = visit_id(at, path);
  auto told = make_record(at);
  if (!missing.empty())
    told["missing"] = missing;
  auto fields = fields_with(path, std::move(told));
  if (!output.is_null())
    fields["output"] = std::move(output);
  said.extra = std::move(fields);
  if (routes.empty())
    return said;
  auto actions = json::object();
  if (routes.size() == 1) {
    actions["route"] = to_json(routes.front());
  } else {
    auto all = json::array();
    for (const auto& each : routes)
      all.push_back(to_json(each));
    actions["route"] = std::move(all);
  }
  said.actions.extra = std::move(actions);
  return said;
}

event make_failure_event(const workflow_place& at,
                         const std::string& path,
                         std::uint64_t attempt,
                         const error& why,
                         bool is_skipped) {
  event said;
  said.id = fmt::format("{}/failure-{}", visit_id(at, path), attempt);
  auto told = make_record(at);
  told["attempt"] = attempt;
  if (is_skipped)
    told["skipped"] = true;
  auto fields = fields_with(path, std::move(told));
  fields["errorCode"] = std::string(to_string(why.code()));
  fields["errorMessage"] = why.message();
  said.extra = std::move(fields);
  return said;
}

event make_question_event(const workflow_place& at,
                          const std::string& path,
                          function_call asked) {
  event said;
  said.id = asked.id;
  said.long_running_tool_ids.push_back(asked.id);
  said.content.role = "model";
  said.content.parts.emplace_back(std::move(asked));
  auto told = make_record(at);
  told["question"] = true;
  said.extra = fields_with(path, std::move(told));
  return said;
}

event make_input_event(const workflow_place& at,
                       const std::string& path,
                       const json& input) {
  event said(content(
    "user",
    {part(input.is_string() ? input.get<std::string>() : to_text(input))}));
  said.id = visit_id(at, path) + std::string(input_end);
  auto told = make_record(at);
  told["input"] = true;
  said.extra = fields_with(path, std::move(told));
  return said;
}

event make_over_event(const workflow_place& at, json output) {
  event said;
  said.id = visit_id(at, at.path) + "/end";
  auto told = make_record(at);
  told["ends"] = true;
  auto fields = fields_with(at.path, std::move(told));
  if (!output.is_null())
    fields["output"] = std::move(output);
  said.extra = std::move(fields);
  return said;
}

bool is_node_input(const event& said) {
  const auto* told = record_of(said);
  return told != nullptr && told->contains("input");
}

bool is_input_of(const event& said, std::string_view visit) {
  const std::string_view id = said.id;
  return !visit.empty() && id.starts_with(visit)
         && is_placed(id.substr(visit.size()), input_end);
}

std::optional<workflow_record> record_in(const event& said) {
  // Users append events of their own, with any fields.
  if (said.author == "user" || path_in(said).size() > path_bytes_max)
    return std::nullopt;
  const auto* record = record_of(said);
  if (record == nullptr)
    return std::nullopt;
  const auto& told = *record;
  workflow_record read;
  read.at.run = text_at(told, "run");
  read.at.items = number_at(told, "items");
  const auto& fields = said.extra.data();
  const auto path = path_in(said);
  if (read.at.run.empty())
    return std::nullopt;
  std::string name;
  std::uint64_t number = 0;
  if (!read_segment(path, name, number))
    return std::nullopt;
  const auto output = fields.find("output");
  if (const auto begins = told.find("begins"); begins != told.end()) {
    read.is = workflow_record::kind::begin;
    read.at.path = path;
    read.data = *begins;
    return read;
  }
  if (output != fields.end())
    read.data = *output;
  if (told.contains("ends")) {
    read.is = workflow_record::kind::over;
    read.at.path = path;
    return read;
  }
  const auto slash = path.rfind('/');
  if (slash == path.npos)
    return std::nullopt;
  read.at.path = path.substr(0, slash);
  read.node = std::move(name);
  read.ordinal = number;
  if (told.contains("input")) {
    read.is = workflow_record::kind::input;
  } else if (told.contains("question")) {
    read.is = workflow_record::kind::question;
  } else if (const auto attempt = told.find("attempt");
             attempt != told.end() && attempt->is_number_unsigned()) {
    read.is = workflow_record::kind::failure;
    read.attempt = attempt->get<std::uint64_t>();
    read.is_skipped = told.contains("skipped");
  } else {
    read.is = workflow_record::kind::end;
    read.routes = routes_in(said);
    read.missing = missing_in(told);
  }
  return read;
}

std::optional<workflow_record> visit_of_item(const workflow_record& told) {
  const auto slash = told.at.path.rfind('/');
  workflow_record visit;
  if (told.at.items == 0 || slash == std::string::npos
      || !read_segment(told.at.path, visit.node, visit.ordinal))
    return std::nullopt;
  visit.at.run = told.at.run;
  visit.at.path = told.at.path.substr(0, slash);
  return visit;
}

std::string
item_branch(std::string_view node, std::uint64_t visit, std::uint64_t item) {
  // No branch of a node has this form: names of nodes have no hyphen. The end
  // is a number, as in all branches that are no calls.
  return fmt::format("{}-{}@{}", node, visit, item);
}

std::uint64_t item_in_branch(std::string_view segment,
                             std::string_view node,
                             std::uint64_t visit) {
  std::string name;
  std::uint64_t item = 0;
  return read_segment(segment, name, item)
             && name == fmt::format("{}-{}", node, visit)
           ? item
           : 0;
}

} // namespace troupe
