#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/served.hpp"

#include <fmt/format.h>

#include <utility>
#include <variant>

namespace troupe::serving {

namespace {

// An instruction that a function makes has no text before a run.
std::string instruction_of(const llm_options& options) {
  if (!options.static_instruction.empty())
    return options.static_instruction;
  const auto* text = std::get_if<std::string>(&options.instruction.source());
  return text == nullptr ? std::string() : *text;
}

json declarations_of(const llm_options& options) {
  auto tools = json::array();
  for (const auto& each : options.tools)
    tools.push_back(
      {{"functionDeclarations",
        json::array({{{"name", each.name()},
                      {"description", each.description()},
                      {"parametersJsonSchema", each.parameters()}}})}});
  return tools;
}

// Adds an agent and those below it. Only LLM agents are shown, as in ADK.
void describe(json& agents, const agent& which) {
  auto names = json::array();
  for (const auto& each : which.sub_agents())
    names.push_back(each.name());
  if (const auto* options = std::get_if<llm_options>(&which.kind()))
    agents[which.name()] = {{"name", which.name()},
                            {"description", which.description()},
                            {"instruction", instruction_of(*options)},
                            {"tools", declarations_of(*options)},
                            {"sub_agents", std::move(names)}};
  for (const auto& each : which.sub_agents())
    describe(agents, each);
}

json summary_of(const std::string& name, const agent& root) {
  return {{"name", name},
          {"rootAgentName", root.name()},
          {"description", root.description()},
          {"language", "yaml"},
          {"isComputerUse", false}};
}

void list_apps(const served_ptr& on, exchange asked) {
  const auto* wanted = asked.asked.target.find("detailed");
  const bool is_detailed = wanted != nullptr && *wanted == "true";
  auto apps = json::array();
  for (const auto& [name, root] : on->apps)
    apps.push_back(is_detailed ? summary_of(name, root) : json(name));
  asked.to.send(
    json_response(is_detailed ? json{{"apps", std::move(apps)}} : apps));
}

void show_app(const served_ptr& on, exchange asked) {
  const auto found = on->apps.find(asked.path["app"]);
  if (found == on->apps.end())
    return asked.to.send(
      detail(404, fmt::format("App not found: {}", asked.path["app"])));
  const auto& root = found->second;
  if (!std::holds_alternative<llm_options>(root.kind()))
    return asked.to.send(detail(400, "Root agent is not an LlmAgent"));
  auto shown = summary_of(found->first, root);
  auto& agents = shown["agents"] = json::object();
  describe(agents, root);
  asked.to.send(json_response(shown));
}

void tell_health(const served_ptr&, exchange asked) {
  asked.to.send(json_text_response(R"({"status":"ok"})"));
}

void tell_version(const served_ptr&, exchange asked) {
  asked.to.send(json_response({{"version", TROUPE_VERSION},
                               {"language", "cpp"},
                               {"language_version", "20"}}));
}

} // namespace

void add_apps(router& routes, const served_ptr& on) {
  routes.add("GET", "/health", handled_by(on, tell_health));
  routes.add("GET", "/version", handled_by(on, tell_version));
  routes.add("GET", "/list-apps", handled_by(on, list_apps));
  routes.add("GET", "/apps/{app}/app-info", handled_by(on, show_app));
}

} // namespace troupe::serving
