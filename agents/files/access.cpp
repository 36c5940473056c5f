#include "troupe/agents/files/access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace troupe {

namespace fs = std::filesystem;

namespace {

bool is_variable_name(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9')
         && std::ranges::all_of(name, [](char c) {
              return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                     || (c >= '0' && c <= '9') || c == '_';
            });
}

std::optional<std::string> process_variable(const std::string& name) {
  // Safe as long as no thread changes the environment.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* held = std::getenv(name.c_str());
  return held != nullptr ? std::optional<std::string>(held) : std::nullopt;
}

} // namespace

// A path of the file is compared with the paths that the user allows, which
// start at the working folder.
result<std::string> file_access::program(const file_place& at,
                                         const std::string& command) const {
  const bool is_path = command.find('/') != std::string::npos;
  const auto folder = fs::absolute(*at.file).parent_path();
  // The folder without links. A program that is a link keeps its name: a Python
  // in a virtual environment finds its packages by it, and other programs do
  // something else under each name. Empty for a path that cannot be resolved,
  // such as a circle of links.
  const auto place = [](const fs::path& path) {
    std::error_code failed;
    const auto parent = fs::weakly_canonical(path.parent_path(), failed);
    return failed ? std::string() : (parent / path.filename()).string();
  };
  auto found = is_path ? place(folder / command) : command;
  const auto allows = [&](const std::string& allowed) {
    return is_path ? allowed.find('/') != std::string::npos && !found.empty()
                       && place(fs::absolute(allowed)) == found
                   : allowed == found;
  };
  if (only_shown_ || std::ranges::any_of(commands_, allows))
    return found;
  return fail_at(
    at,
    fmt::format("the file wants to start the program '{}'; allow it with "
                "--allow-command {} (in C++: "
                "agent_file_options::allowed_commands), or remove the tool",
                found,
                found));
}

bool file_access::is_allowed(const std::string& name) const {
  return std::ranges::find(variables_, name) != variables_.end();
}

result<void> file_access::check_allowed(const file_place& at,
                                        const std::string& name) const {
  if (only_shown_ || is_allowed(name))
    return {};
  return fail_at(at,
                 fmt::format("the file wants to use the environment variable "
                             "{}; allow it with --allow-env {} (in C++: "
                             "agent_file_options::allowed_variables)",
                             name,
                             name));
}

result<std::optional<std::string>>
file_access::dotenv_value(const file_place& at, const std::string& name) const {
  if (only_shown_)
    return std::optional<std::string>();
  const auto found = dotenv_.values.find(name);
  const bool is_there = found != dotenv_.values.end();
  const bool is_set = process_variable(name).has_value();
  // A `.env` that repeats the name of a secret must not give the secret.
  if (!is_there || !dotenv_.is_beside_agent || is_set)
    if (auto allowed = check_allowed(at, name); !allowed)
      return allowed.error();
  return is_there && !is_set ? std::optional(found->second) : std::nullopt;
}

result<std::string> file_access::expand(const file_place& at,
                                        const std::string& text) const {
  std::string made;
  for (std::size_t done = 0; done < text.size();) {
    const auto begin = text.find('$', done);
    made.append(text, done, begin - done);
    if (begin == std::string::npos)
      break;
    if (text.compare(begin, 3, "$${") == 0) {
      made += "${";
      done = begin + 3;
      continue;
    }
    const auto end = text.find('}', begin);
    if (text.compare(begin, 2, "${") != 0) {
      made += '$';
      done = begin + 1;
      continue;
    }
    const auto name = end == std::string::npos
                        ? std::string()
                        : text.substr(begin + 2, end - begin - 2);
    if (!is_variable_name(name))
      return fail_at(at,
                     fmt::format("'{}' is not ${{NAME}}, the place of an "
                                 "environment variable; $${{ stands for that "
                                 "text",
                                 text.substr(begin, end - begin)));
    if (only_shown_) {
      made.append(text, begin, end + 1 - begin);
      done = end + 1;
      continue;
    }
    auto held = dotenv_value(at, name);
    if (!held)
      return held.error();
    if (!*held)
      *held = process_variable(name);
    if (!*held)
      return fail_at(
        at, fmt::format("the environment variable {} is not set", name));
    made += **held;
    done = end + 1;
  }
  return made;
}

result<void>
file_access::read_environment(const field_reader& fields,
                              std::map<std::string, std::string>& env,
                              std::vector<std::string>& passed) const {
  auto texts = read_text_map(fields, "env");
  if (!texts)
    return texts.error();
  for (const auto& [name, text] : *texts) {
    const auto at = fields.at("env");
    if (auto allowed = check_allowed(at, name); !allowed)
      return allowed;
    auto expanded = expand(at, text);
    if (!expanded)
      return expanded.error();
    env.insert_or_assign(name, std::move(*expanded));
  }
  auto names = read_texts(fields, "pass_env");
  if (!names)
    return names.error();
  for (auto& name : *names) {
    const auto at = fields.at("pass_env");
    if (auto allowed = check_allowed(at, name); !allowed)
      return allowed;
    auto held = dotenv_value(at, name);
    if (!held)
      return held.error();
    if (*held)
      env.emplace(name, std::move(**held));
    else
      passed.push_back(std::move(name));
  }
  return {};
}

fs::path folder_of(const field_reader& fields) {
  return fs::absolute(fields.file()).parent_path();
}

result<std::vector<std::string>> read_texts(const field_reader& fields,
                                            std::string_view name) {
  auto items = fields.list(name);
  if (!items)
    return items.error();
  std::vector<std::string> texts;
  for (const auto& item : *items) {
    if (item->kind != yaml_node::form::scalar)
      return fail_at({&fields.file(), item->line},
                     fmt::format("'{}' must be a list of texts", name));
    texts.push_back(item->text);
  }
  return texts;
}

result<std::map<std::string, std::string>>
read_text_map(const field_reader& fields, std::string_view name) {
  std::map<std::string, std::string> texts;
  const auto* found = fields.find(name);
  if (found == nullptr)
    return texts;
  if (found->kind != yaml_node::form::map)
    return fail_at(fields.at(name),
                   fmt::format("'{}' must be a mapping of texts", name));
  for (const auto& field : found->fields) {
    if (field.value->kind != yaml_node::form::scalar)
      return fail_at({&fields.file(), field.line},
                     fmt::format("'{}' must be a text", field.name));
    texts[field.name] = field.value->text;
  }
  return texts;
}

result<void> check_known(const field_reader& fields,
                         std::string_view what,
                         std::span<const std::string_view> known) {
  const auto& node = fields.node();
  if (node.kind != yaml_node::form::map)
    return fail_at(
      fields.at(),
      fmt::format("{} must be a mapping, not {}", what, to_string(node.kind)));
  for (const auto& field : node.fields)
    if (std::ranges::find(known, field.name) == known.end())
      return fail_at(
        {&fields.file(), field.line},
        fmt::format("unknown field '{}'; {} has {}",
                    field.name,
                    what,
                    list_names(known, [](const auto& name) { return name; })));
  return {};
}

} // namespace troupe
