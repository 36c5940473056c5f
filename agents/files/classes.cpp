#include "troupe/agents/files/classes.hpp"

#include "troupe/agents/files/missing_fields.hpp"
#include "troupe/agents/files/python_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace troupe {

namespace {

constexpr std::string_view agents_package = "google.adk.agents";

struct class_row {
  adk_name name;
  agent_class kind;
};

// The first name of a kind is shown in messages.
constexpr std::array class_rows{
  class_row{{"LlmAgent", "llm_agent"}, agent_class::llm},
  class_row{{"SequentialAgent", "sequential_agent"}, agent_class::sequential},
  class_row{{"ParallelAgent", "parallel_agent"}, agent_class::parallel},
  class_row{{"MapAgent", ""}, agent_class::map},
  class_row{{"LoopAgent", "loop_agent"}, agent_class::loop},
  class_row{{"Workflow", ""}, agent_class::workflow},
  class_row{{"Agent", "llm_agent"}, agent_class::llm},
};

// Further classes of ADK, in `google.adk.agents` and `google.adk.workflow`.
constexpr auto missing_classes
  = std::to_array<std::string_view>({"BaseAgent",
                                     "FunctionNode",
                                     "LanggraphAgent",
                                     "ManagedAgent",
                                     "Node",
                                     "RemoteA2aAgent"});

constexpr unsigned bit(agent_class kind) {
  return 1U << static_cast<unsigned>(kind);
}

constexpr unsigned llm = bit(agent_class::llm);
constexpr unsigned parallel = bit(agent_class::parallel);
constexpr unsigned map = bit(agent_class::map);
constexpr unsigned loop = bit(agent_class::loop);
constexpr unsigned workflows = bit(agent_class::workflow);
constexpr unsigned every = ~0U;

struct field_rule {
  std::string_view name;
  unsigned classes;
};

// docs/agent_files.md explains the fields.
constexpr std::array field_rules{
  field_rule{"agent_class", every},
  field_rule{"name", every},
  field_rule{"description", every},
  field_rule{"sub_agents", every & ~workflows},
  field_rule{"before_agent_callbacks", every},
  field_rule{"after_agent_callbacks", every},
  field_rule{"mode", llm},
  field_rule{"model", llm},
  field_rule{"instruction", llm},
  field_rule{"global_instruction", llm},
  field_rule{"static_instruction", llm},
  field_rule{"include_contents", llm},
  field_rule{"contents_max", llm},
  field_rule{"generate_content_config", llm},
  field_rule{"output_key", llm | map | workflows},
  field_rule{"output_schema", llm},
  field_rule{"input_schema", llm},
  field_rule{"tools", llm},
  field_rule{"code_executor", llm},
  field_rule{"disallow_transfer_to_parent", llm},
  field_rule{"disallow_transfer_to_peers", llm},
  field_rule{"before_model_callbacks", llm},
  field_rule{"after_model_callbacks", llm},
  field_rule{"on_model_error_callbacks", llm},
  field_rule{"before_tool_callbacks", llm},
  field_rule{"after_tool_callbacks", llm},
  field_rule{"on_tool_error_callbacks", llm},
  field_rule{"max_iterations", loop},
  field_rule{"lanes_max", parallel | map | workflows},
  field_rule{"on_failure", parallel | map},
  field_rule{"quorum", parallel | map},
  field_rule{"lane_timeout", parallel | map},
  field_rule{"isolate_temp", parallel},
  field_rule{"items_key", map},
  field_rule{"edges", workflows},
  field_rule{"max_concurrency", workflows},
};

std::string_view name_of(agent_class kind) {
  return std::ranges::find(class_rows, kind, &class_row::kind)->name.name;
}

error unknown_class(const file_place& at, const std::string& named) {
  const auto expected
    = "expected one of "
      + list_names(class_rows, [](const auto& row) { return row.name.name; });
  if (named.starts_with("google.adk.")
      || std::ranges::find(missing_classes, named) != missing_classes.end())
    return fail_at(at,
                   fmt::format("troupe does not have ADK's class '{}'; {}",
                               named,
                               expected));
  if (is_python_name(named))
    return fail_on_python(at, named, expected);
  return fail_at(at,
                 fmt::format("unknown agent_class '{}'; {}", named, expected));
}

bool is_field(std::string_view name) {
  return std::ranges::find(field_rules, name, &field_rule::name)
         != field_rules.end();
}

// The error for a field that no class has.
error unknown_field(const file_place& at,
                    const std::string& name,
                    std::string_view shown) {
  constexpr std::string_view of_code = "_code";
  const auto base = name.ends_with(of_code)
                      ? name.substr(0, name.size() - of_code.size())
                      : name;
  if (const auto why = why_missing(base); !why.empty())
    return fail_at(at, fmt::format("'{}' cannot be used: {}", name, why));
  if (base != name && is_field(base))
    return fail_on_python(at, name, fmt::format("use '{}' in its place", base));
  if (is_field(name + 's'))
    return fail_at(
      at, fmt::format("unknown field '{}'; write '{}s', a list", name, name));
  return fail_at(at, fmt::format("unknown field '{}'; {}", name, shown));
}

} // namespace

result<agent_class> read_class(const field_reader& fields) {
  auto named = fields.text("agent_class");
  if (!named)
    return named.error();
  if (!*named || (*named)->empty())
    return agent_class::llm;
  // ADK exports this one class from its outermost package, too.
  if (**named == "google.adk.Agent")
    return agent_class::llm;
  if (**named == "google.adk.workflow.Workflow")
    return agent_class::workflow;
  if (**named == "JoinNode" || **named == "google.adk.workflow.JoinNode")
    return fail_at(fields.at("agent_class"),
                   "a JoinNode stands in the edges of a Workflow, and is no "
                   "agent itself");
  const auto known = std::ranges::find_if(class_rows, [&](const auto& row) {
    return is_name_of(row.name, agents_package, **named);
  });
  if (known == class_rows.end())
    return unknown_class(fields.at("agent_class"), **named);
  return known->kind;
}

result<void> check_fields(const field_reader& fields, agent_class kind) {
  const auto fits = [kind](const field_rule& rule) {
    return (rule.classes & bit(kind)) != 0;
  };
  for (const auto& [name, line, column, unused, is_quoted] :
       fields.node().fields) {
    const auto known = std::ranges::find(field_rules, name, &field_rule::name);
    if (known != field_rules.end() && fits(*known))
      continue;
    std::vector<field_rule> fitting;
    std::ranges::copy_if(field_rules, std::back_inserter(fitting), fits);
    const file_place at{&fields.file(), line};
    const auto shown = fmt::format(
      "{} has {}", name_of(kind), list_names(fitting, [](const auto& rule) {
        return rule.name;
      }));
    if (known == field_rules.end())
      return unknown_field(at, name, shown);
    return fail_at(
      at, fmt::format("this class has no field '{}'; {}", name, shown));
  }
  return {};
}

} // namespace troupe
