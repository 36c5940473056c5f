#include "troupe/agents/files/options_reader.hpp"

#include "troupe/agents/files/generation_config.hpp"
#include "troupe/agents/files/python_name.hpp"
#include "troupe/agents/files/schema_reader.hpp"
#include "troupe/agents/files/static_reader.hpp"
#include "troupe/agents/files/tool_reader.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// Assigns a value that was read successfully.
template <class Target, class Read>
result<void> assign(Target& target, result<Read> read) {
  if (!read)
    return read.error();
  target = std::move(*read);
  return {};
}

result<void> assign_text(std::string& target,
                         result<std::optional<std::string>> read) {
  if (!read)
    return read.error();
  target = read->value_or("");
  return {};
}

// Reads a state key; leaves the target empty if the field is left out.
result<void> read_key(const field_reader& fields,
                      std::string_view name,
                      std::string& target) {
  if (auto read = assign_text(target, fields.text(name)); !read)
    return read;
  if (!target.empty())
    if (auto checked = check_key(target); !checked)
      return fail_at(fields.at(name),
                     fmt::format("{}: {}", name, checked.error().message()));
  return {};
}

// Reads the fields of parallel and map agents.
template <class Options>
result<void> read_lane_options(const field_reader& fields, Options& options) {
  if (auto read = assign(options.lanes_max, fields.count("lanes_max")); !read)
    return read;
  if (auto read = assign(options.lane_timeout, fields.seconds("lane_timeout"));
      !read)
    return read;
  constexpr std::array<std::string_view, 3> policies{
    "fail_fast", "collect", "quorum"};
  auto policy = fields.choice("on_failure", policies);
  if (!policy)
    return policy.error();
  options.on_failure = static_cast<lane_failures>(policy->value_or(0));
  auto quorum = fields.count("quorum");
  if (!quorum)
    return quorum.error();
  options.quorum = static_cast<std::size_t>(quorum->value_or(0));
  return {};
}

// Reads callbacks by name: `[name, {name: name}, …]`.
template <class Callback>
result<std::vector<Callback>>
read_callbacks(const field_reader& fields,
               std::string_view name,
               const std::map<std::string, Callback, std::less<>>& known) {
  auto items = fields.list(name);
  if (!items)
    return items.error();
  std::vector<Callback> callbacks;
  for (const auto& item : *items) {
    auto called = item_name(fields.file(), *item, "callback");
    if (!called)
      return called.error();
    const auto found = known.find(*called);
    const file_place at{&fields.file(), item->line};
    if (found == known.end() && is_python_name(*called))
      return fail_on_python(at, *called, python_code::callback);
    if (found == known.end())
      return fail_at(at,
                     fmt::format("unknown callback '{}' in {}; known ones: {}",
                                 *called,
                                 name,
                                 known.empty()
                                   ? "none"
                                   : list_names(known, [](const auto& row) {
                                       return row.first;
                                     })));
    callbacks.push_back(found->second);
  }
  return callbacks;
}

result<void> read_llm_callbacks(const field_reader& fields,
                                const callback_registry& known,
                                llm_options& options) {
  result<void> read;
  const auto fill
    = [&](std::string_view name, const auto& called, auto& target) {
        if (read)
          read = assign(target, read_callbacks(fields, name, called));
      };
  fill("before_model_callbacks", known.before_model, options.before_model);
  fill("after_model_callbacks", known.after_model, options.after_model);
  fill(
    "on_model_error_callbacks", known.on_model_error, options.on_model_error);
  fill("before_tool_callbacks", known.before_tool, options.before_tool);
  fill("after_tool_callbacks", known.after_tool, options.after_tool);
  fill("on_tool_error_callbacks", known.on_tool_error, options.on_tool_error);
  return read;
}

result<llm_options> read_llm(const field_reader& fields,
                             const callback_registry& callbacks) {
  llm_options options;
  std::string instruction;
  std::string global;
  for (const auto& [field, target] : {std::pair("instruction", &instruction),
                                      std::pair("global_instruction", &global)})
    if (auto read = assign_text(*target, fields.text(field)); !read)
      return read.error();
  // The files are written for ADK, whose code replaces `{{key}}`, too.
  options.instruction = {std::move(instruction), template_braces::any};
  options.global_instruction = {std::move(global), template_braces::any};
  auto fixed = read_static_instruction(fields);
  if (!fixed)
    return fixed.error();
  options.static_instruction = std::move(fixed->text);
  options.static_contents = std::move(fixed->contents);
  if (auto read = read_key(fields, "output_key", options.output_key); !read)
    return read.error();

  constexpr std::array<std::string_view, 3> modes{
    "chat", "task", "single_turn"};
  auto mode = fields.choice("mode", modes);
  if (!mode)
    return mode.error();
  options.mode = static_cast<agent_mode>(mode->value_or(0));

  constexpr std::array<std::string_view, 3> contents{
    "default", "none", "since_summary"};
  auto which = fields.choice("include_contents", contents);
  if (!which)
    return which.error();
  options.include_contents
    = static_cast<enum include_contents>(which->value_or(0));
  if (auto most = assign(options.contents_max, fields.count("contents_max"));
      !most)
    return most.error();

  auto config = read_generation_config(fields);
  if (!config)
    return config.error();
  options.generation_config = std::move(*config);
  result<void> read;
  const auto take = [&read](auto& target, auto&& taken) {
    if (read)
      read = assign(target, std::forward<decltype(taken)>(taken));
  };
  take(options.output_schema, read_schema(fields, "output_schema"));
  take(options.input_schema, read_schema(fields, "input_schema"));
  take(options.disallow_transfer_to_parent,
       fields.flag("disallow_transfer_to_parent"));
  take(options.disallow_transfer_to_peers,
       fields.flag("disallow_transfer_to_peers"));
  if (!read)
    return read.error();
  if (auto called = read_llm_callbacks(fields, callbacks, options); !called)
    return called.error();
  return options;
}

} // namespace

result<agent::body> read_options(const field_reader& fields,
                                 agent_class kind,
                                 const callback_registry& callbacks) {
  switch (kind) {
  case agent_class::llm: {
    auto options = read_llm(fields, callbacks);
    if (!options)
      return options.error();
    return agent::body(std::move(*options));
  }
  case agent_class::sequential:
    return agent::body(sequential_options());
  case agent_class::parallel: {
    parallel_options options;
    if (auto read = read_lane_options(fields, options); !read)
      return read.error();
    if (auto read = assign(options.isolate_temp, fields.flag("isolate_temp"));
        !read)
      return read.error();
    return agent::body(std::move(options));
  }
  case agent_class::map: {
    map_options options;
    if (auto read = read_lane_options(fields, options); !read)
      return read.error();
    for (const auto& [field, target] :
         {std::pair("items_key", &options.items_key),
          std::pair("output_key", &options.output_key)})
      if (auto read = read_key(fields, field, *target); !read)
        return read.error();
    if (options.items_key.empty())
      return fail_at(fields.at(), "a MapAgent needs a field 'items_key'");
    return agent::body(std::move(options));
  }
  case agent_class::loop: {
    loop_options options;
    if (auto read
        = assign(options.max_iterations, fields.count("max_iterations"));
        !read)
      return read.error();
    return agent::body(std::move(options));
  }
  case agent_class::workflow:
    return agent::body(compiled_workflow());
  }
  return error(errc::internal, "unknown class of agents");
}

result<void> read_common_options(const field_reader& fields,
                                 const callback_registry& callbacks,
                                 agent::body& body) {
  auto description = fields.text("description");
  if (!description)
    return description.error();
  auto before
    = read_callbacks(fields, "before_agent_callbacks", callbacks.agent);
  if (!before)
    return before.error();
  auto after = read_callbacks(fields, "after_agent_callbacks", callbacks.agent);
  if (!after)
    return after.error();
  std::visit(
    [&](auto& options) {
      options.description = description->value_or("");
      options.before_agent = std::move(*before);
      options.after_agent = std::move(*after);
    },
    body);
  return {};
}

} // namespace troupe
