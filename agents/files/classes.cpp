#include "troupe/agents/files/classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace troupe {

namespace {

struct class_name {
  std::string_view name;
  agent_class kind;
};

constexpr std::array class_names{
  class_name{"LlmAgent", agent_class::llm},
  class_name{"SequentialAgent", agent_class::sequential},
  class_name{"ParallelAgent", agent_class::parallel},
  class_name{"MapAgent", agent_class::map},
  class_name{"LoopAgent", agent_class::loop},
};

constexpr unsigned bit(agent_class kind) {
  return 1U << static_cast<unsigned>(kind);
}

constexpr unsigned llm = bit(agent_class::llm);
constexpr unsigned parallel = bit(agent_class::parallel);
constexpr unsigned map = bit(agent_class::map);
constexpr unsigned loop = bit(agent_class::loop);
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
  field_rule{"sub_agents", every},
  field_rule{"before_agent_callbacks", every},
  field_rule{"after_agent_callbacks", every},
  field_rule{"model", llm},
  field_rule{"instruction", llm},
  field_rule{"global_instruction", llm},
  field_rule{"static_instruction", llm},
  field_rule{"include_contents", llm},
  field_rule{"contents_max", llm},
  field_rule{"generate_content_config", llm},
  field_rule{"output_key", llm | map},
  field_rule{"output_schema", llm},
  field_rule{"input_schema", llm},
  field_rule{"tools", llm},
  field_rule{"disallow_transfer_to_parent", llm},
  field_rule{"disallow_transfer_to_peers", llm},
  field_rule{"before_model_callbacks", llm},
  field_rule{"after_model_callbacks", llm},
  field_rule{"on_model_error_callbacks", llm},
  field_rule{"before_tool_callbacks", llm},
  field_rule{"after_tool_callbacks", llm},
  field_rule{"on_tool_error_callbacks", llm},
  field_rule{"max_iterations", loop},
  field_rule{"lanes_max", parallel | map},
  field_rule{"on_failure", parallel | map},
  field_rule{"quorum", parallel | map},
  field_rule{"lane_timeout", parallel | map},
  field_rule{"isolate_temp", parallel},
  field_rule{"items_key", map},
};

std::string_view name_of(agent_class kind) {
  return std::ranges::find(class_names, kind, &class_name::kind)->name;
}

} // namespace

result<agent_class> read_class(const field_reader& fields) {
  auto named = fields.text("agent_class");
  if (!named)
    return named.error();
  if (!*named)
    return agent_class::llm;
  const auto known = std::ranges::find(class_names, **named, &class_name::name);
  if (known == class_names.end())
    return fail_at(fields.at("agent_class"),
                   fmt::format("unknown agent_class '{}'; expected one of {}",
                               **named,
                               list_names(class_names, [](const auto& row) {
                                 return row.name;
                               })));
  return known->kind;
}

result<void> check_fields(const field_reader& fields, agent_class kind) {
  const auto fits = [kind](const field_rule& rule) {
    return (rule.classes & bit(kind)) != 0;
  };
  for (const auto& [name, line, column, unused] : fields.node().fields) {
    const auto known = std::ranges::find(field_rules, name, &field_rule::name);
    if (known != field_rules.end() && fits(*known))
      continue;
    std::vector<field_rule> fitting;
    std::ranges::copy_if(field_rules, std::back_inserter(fitting), fits);
    return fail_at(
      {&fields.file(), line},
      fmt::format(
        "{} '{}'; {} has {}",
        known == field_rules.end() ? "unknown field"
                                   : "this class has no field",
        name,
        name_of(kind),
        list_names(fitting, [](const auto& rule) { return rule.name; })));
  }
  return {};
}

} // namespace troupe
