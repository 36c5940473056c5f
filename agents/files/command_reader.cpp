#include "troupe/agents/files/command_reader.hpp"

#include "troupe/agents/command_tool.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 11> command_fields
  = {"name",
     "description",
     "parameters",
     "command",
     "cwd",
     "env",
     "pass_env",
     "timeout",
     "calls_max",
     "output_bytes_max",
     "require_confirmation"};

// A list of words, or the program alone.
result<std::vector<std::string>> read_command(const field_reader& item) {
  constexpr auto how = "'command' must be a list of the program and its "
                       "arguments, such as [./weather.py, --json]; no shell "
                       "splits a text";
  const auto* found = item.find("command");
  if (found == nullptr)
    return fail_at(item.at("command"), how);
  if (found->kind == yaml_node::form::scalar) {
    if (found->text.find_first_of(" \t\n") != std::string::npos)
      return fail_at(item.at("command"), how);
    return std::vector{found->text};
  }
  auto words = read_texts(item, "command");
  if (!words)
    return words;
  if (words->empty() || words->front().empty())
    return fail_at(item.at("command"), how);
  return words;
}

} // namespace

bool is_command_tool(const yaml_node& item) {
  return item.kind == yaml_node::form::map && item.find("command") != nullptr;
}

result<tool> read_command_tool(const field_reader& item,
                               const file_access& access) {
  if (auto checked = check_known(item, "a tool by command", command_fields);
      !checked)
    return checked.error();
  command_tool_options made;
  for (const auto& [field, target] :
       {std::pair("name", &made.name),
        std::pair("description", &made.description)}) {
    auto text = item.text(field);
    if (!text)
      return text.error();
    *target = text->value_or("");
  }
  if (made.name.empty())
    return fail_at(item.at(),
                   "expected a field 'name', by which the model "
                   "calls the program");
  auto command = read_command(item);
  if (!command)
    return command.error();
  made.command = std::move(*command);
  auto program = access.program(item.at("command"), made.command.front());
  if (!program)
    return program.error();
  made.command.front() = std::move(*program);
  auto parameters = item.object("parameters");
  if (!parameters)
    return parameters.error();
  if (*parameters)
    made.parameters = std::move(**parameters);
  if (auto read
      = access.read_environment(item, made.env, made.passed_variables);
      !read)
    return read.error();
  auto cwd = item.text("cwd");
  if (!cwd)
    return cwd.error();
  if (*cwd)
    made.folder = folder_of(item) / **cwd;
  auto timeout = item.seconds("timeout");
  if (!timeout)
    return timeout.error();
  made.timeout = *timeout;
  for (const auto& [field, target] :
       {std::pair("calls_max", &made.calls_max),
        std::pair("output_bytes_max", &made.output_bytes_max)}) {
    auto count = item.count(field);
    if (!count)
      return count.error();
    *target = static_cast<std::size_t>(count->value_or(*target));
  }
  try {
    return command_tool(std::move(made));
  } catch (const error& failure) {
    return fail_at(item.at(), failure.message());
  }
}

} // namespace troupe
