#include "troupe/telemetry/runs/agent_facts.hpp"

#include <array>
#include <variant>

namespace troupe::telemetry {

std::string provider_of(std::string_view model) {
  // The part before the last slash names a route, as in `models/gemini-pro`.
  const auto slash = model.rfind('/');
  const auto name
    = slash == std::string_view::npos ? model : model.substr(slash + 1);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> known{
    {{"gemini", "gcp.gemini"},
     {"claude", "anthropic"},
     {"gpt", "openai"},
     {"o1", "openai"},
     {"o3", "openai"},
     {"o4", "openai"}}};
  for (const auto& [start, provider] : known)
    if (name.starts_with(start))
      return std::string(provider);
  return {};
}

void agent_register::add(const std::string& app, const agent& root) {
  const std::lock_guard guard(mutex_);
  roots_.emplace(app, root.name());
  add_tree(app, root);
}

void agent_register::add_tree(const std::string& app, const agent& which) {
  agent_facts facts;
  facts.description = which.description();
  facts.is_workflow = std::holds_alternative<compiled_workflow>(which.kind());
  const auto* llm = std::get_if<llm_options>(&which.kind());
  if (llm != nullptr && llm->model)
    facts.model = llm->model->name();
  // An agent that was here before has its tree here, too.
  if (!agents_.emplace(std::pair(app, which.name()), std::move(facts)).second)
    return;
  for (const auto& sub : which.sub_agents())
    add_tree(app, sub);
  if (llm != nullptr)
    for (const auto& each : llm->tools)
      if (each.options().as_agent)
        add_tree(app, *each.options().as_agent);
}

std::optional<agent_facts> agent_register::find(const std::string& app,
                                                const std::string& name) const {
  const std::lock_guard guard(mutex_);
  for (const auto& where : {app, std::string()})
    if (const auto found = agents_.find(std::pair(where, name));
        found != agents_.end())
      return found->second;
  return std::nullopt;
}

std::string agent_register::root_of(const std::string& app) const {
  const std::lock_guard guard(mutex_);
  for (const auto& where : {app, std::string()})
    if (const auto found = roots_.find(where); found != roots_.end())
      return found->second;
  return {};
}

} // namespace troupe::telemetry
