#include "troupe/cli/options/model_option.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <utility>

namespace troupe::cli {

void model_option::add_to(CLI::App& command) {
  command
    .add_option("--model",
                names,
                "Model in place of every agent's own: openai:NAME, "
                "openai-responses:NAME, gemini-..., claude-..., scripted:FILE. "
                "Given again, the next model is "
                "asked when the one before it is down or over its limit")
    ->type_name("M")
    ->allow_extra_args(false);
}

result<void> model_option::apply(agent_file_options& options) const {
  open_model_options usual;
  usual.allowed_variables = options.allowed_variables;
  usual.allowed_commands = options.allowed_commands;
  usual.dotenv = options.dotenv;
  std::vector<model_ptr> opened;
  for (const auto& name : names) {
    auto model = options.open({.name = name}, usual);
    if (!model)
      return model.error();
    opened.push_back(std::move(*model));
  }
  if (opened.size() == 1)
    options.model = std::move(opened.front());
  else if (!opened.empty())
    options.model = std::make_shared<fallback_model>(
      std::move(opened), fallback_options{.on_fallback = options.on_fallback});
  return {};
}

} // namespace troupe::cli
