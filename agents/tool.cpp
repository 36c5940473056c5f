#include "troupe/agents/tool.hpp"

#include "troupe/agents/turns/fence.hpp"
#include "troupe/agents/turns/name.hpp"
#include "troupe/agents/turns/turnstile.hpp"

#include <fmt/format.h>

namespace troupe {

struct tool::description_data {
  tool_options options;
  tool_declaration declaration;
  json_schema schema;
  std::shared_ptr<turnstile> entrance;
};

namespace {

void check_options(const tool_options& options) {
  const auto refuse = [&options](std::string_view why) {
    throw error(errc::invalid_argument,
                fmt::format("tool '{}' {}", options.name, why));
  };
  if (!is_tool_name(options.name))
    refuse("has a name that is not allowed; expected letters, digits, '_' and "
           "'-', starting with a letter or '_'");
  if (!options.run && !options.as_agent && !options.prepare)
    refuse("has no function");
  if (options.run && options.as_agent)
    refuse("has both a function and an agent");
  if (options.timeout && options.timeout->count() <= 0)
    refuse("has a timeout that is not above 0");
  if (options.long_running && options.as_agent)
    refuse("is an agent, which cannot be long-running");
  if (options.calls_max == std::size_t{0})
    refuse("has a calls_max of 0 and could never be called");
}

json_schema schema_from(const tool_options& options) {
  const auto& text = options.parameters;
  if (!text.is_object() || text.value("type", json("object")) != "object")
    throw error(
      errc::invalid_argument,
      fmt::format("the parameters of tool '{}' are not a schema of an object "
                  "(type: object)",
                  options.name));
  try {
    return json_schema(text);
  } catch (const error& failure) {
    throw error(failure.code(),
                fmt::format("the parameters of tool '{}': {}",
                            options.name,
                            failure.message()));
  }
}

tool_declaration declare(const tool_options& options) {
  if (!options.is_described_by_server)
    return {options.name, options.description, value(options.parameters)};
  return {options.name,
          options.description.empty()
            ? std::string()
            : fenced(fence::tool_description, options.description),
          value(fenced_descriptions(options.parameters))};
}

} // namespace

json detail::any_object() {
  return {{"type", "object"}, {"properties", json::object()}};
}

tool::tool(tool_options options) {
  check_options(options);
  auto schema = schema_from(options);
  auto declaration = declare(options);
  auto entrance = options.calls_max
                    ? std::make_shared<turnstile>(*options.calls_max)
                    : nullptr;
  data_ = std::make_shared<const description_data>(
    description_data{std::move(options),
                     std::move(declaration),
                     std::move(schema),
                     std::move(entrance)});
}

const std::string& tool::name() const noexcept {
  return data_->options.name;
}

const std::string& tool::description() const noexcept {
  return data_->options.description;
}

const json& tool::parameters() const noexcept {
  return data_->options.parameters;
}

const tool_declaration& tool::declaration() const noexcept {
  return data_->declaration;
}

const tool_options& tool::options() const noexcept {
  return data_->options;
}

bool tool::can_be_called() const noexcept {
  return data_->options.run || data_->options.as_agent != nullptr;
}

result<void> tool::check(const json& args) const {
  return data_->schema.check(args);
}

const std::shared_ptr<turnstile>& tool::entrance() const noexcept {
  return data_->entrance;
}

tool_registry make_registry(const std::vector<tool>& tools) {
  tool_registry registry;
  for (const auto& added : tools)
    if (!registry.emplace(added.name(), added).second)
      throw error(errc::invalid_argument,
                  fmt::format("tool name '{}' comes twice", added.name()));
  return registry;
}

} // namespace troupe
