#include "troupe/agents/standard_tools.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

constexpr std::string_view tool_name = "load_artifacts";

json names_schema() {
  json properties = json::object();
  properties["artifact_names"]
    = {{"type", "array"},
       {"items", {{"type", "string"}}},
       {"description", "Names of the artifacts to show."}};
  json parameters{{"type", "object"},
                  {"required", json::array({"artifact_names"})},
                  {"additionalProperties", false}};
  parameters["properties"] = std::move(properties);
  return parameters;
}

bool is_for_models(std::string_view mime_type) {
  return mime_type.starts_with("image/") || mime_type.starts_with("audio/")
         || mime_type.starts_with("video/") || mime_type == "application/pdf";
}

// The artifact in a form that models take.
part shown(part artifact) {
  const auto bytes = blob_of(artifact);
  if (!bytes || !*bytes || is_for_models((*bytes)->mime_type))
    return artifact;
  const auto& held = **bytes;
  if (is_utf8(held.bytes))
    return part(held.bytes);
  return part(fmt::format("{} bytes of type {}, which cannot be shown",
                          held.bytes.size(),
                          held.mime_type.empty() ? "unknown" : held.mime_type));
}

// The names that the latest turn has asked for.
std::vector<std::string>
asked_names(const std::vector<std::shared_ptr<const content>>& contents) {
  std::vector<std::string> names;
  if (contents.empty())
    return names;
  for (const auto& element : contents.back()->parts) {
    const auto* response = element.response();
    if (response == nullptr || response->name != tool_name)
      continue;
    const auto& told = response->response.data();
    const auto found = told.find("artifact_names");
    if (found == told.end() || !found->is_array())
      continue; // The call has failed.
    for (const auto& name : *found)
      if (name.is_string())
        names.push_back(name.get<std::string>());
  }
  return names;
}

task<void> show_artifacts(readonly_context& context, model_request& request) {
  const auto known = (co_await context.artifacts().list()).value();
  if (known.empty())
    co_return;
  auto& instruction = request.system_instruction;
  if (!instruction.empty())
    instruction += "\n\n";
  instruction
    += fmt::format("There are files, called artifacts: {}. To read some of "
                   "them, call {} with their names before you answer; they "
                   "are then part of the conversation for one turn.",
                   to_text(json(known)),
                   tool_name);
  for (const auto& name : asked_names(request.contents)) {
    auto loaded = co_await context.artifacts().load(name);
    content file("user", {part(fmt::format("Artifact {} is:", name))});
    if (!loaded)
      file.parts.emplace_back(
        fmt::format("not available: {}", loaded.error().message()));
    else if (!*loaded)
      file.parts.emplace_back("not available: there is no such artifact");
    else
      file.parts.push_back(shown(std::move(**loaded)));
    request.contents.push_back(
      std::make_shared<const content>(std::move(file)));
  }
}

} // namespace

tool load_artifacts() {
  return tool({.name = std::string(tool_name),
               .description = "Shows artifacts: files of the session and of "
                              "its user.",
               .parameters = names_schema(),
               .run = [](const json& args, tool_context&) -> json {
                 json told = json::object();
                 told["artifact_names"] = args.at("artifact_names");
                 return told;
               },
               .prepare = show_artifacts});
}

} // namespace troupe
