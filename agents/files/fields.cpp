#include "troupe/agents/files/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace troupe {

namespace {

bool is_true(std::string_view text) {
  return text == "true" || text == "True" || text == "TRUE";
}

bool is_false(std::string_view text) {
  return text == "false" || text == "False" || text == "FALSE";
}

json scalar_to_json(const yaml_node& node) {
  if (node.quoted)
    return node.text;
  if (is_true(node.text))
    return true;
  if (is_false(node.text))
    return false;
  auto number = json::parse(node.text, nullptr, false);
  return number.is_number() ? number : json(node.text);
}

} // namespace

std::string to_string(const file_place& at) {
  return fmt::format("{}:{}", at.file->string(), at.line);
}

error fail_at(const file_place& at, std::string_view why) {
  return {errc::invalid_argument, fmt::format("{}: {}", to_string(at), why)};
}

json to_json(const yaml_node& node) {
  switch (node.kind) {
  case yaml_node::form::null:
    return nullptr;
  case yaml_node::form::scalar:
    return scalar_to_json(node);
  case yaml_node::form::list: {
    auto made = json::array();
    for (const auto& item : node.items)
      made.push_back(to_json(*item));
    return made;
  }
  case yaml_node::form::map: {
    auto made = json::object();
    for (const auto& field : node.fields)
      made[field.name] = to_json(*field.value);
    return made;
  }
  }
  return nullptr;
}

yaml_node_ptr to_yaml(const json& data, int line) {
  auto made = std::make_shared<yaml_node>();
  made->line = line;
  if (data.is_object()) {
    made->kind = yaml_node::form::map;
    for (const auto& [name, held] : data.items())
      made->fields.push_back({name, line, 0, to_yaml(held, line)});
  } else if (data.is_array()) {
    made->kind = yaml_node::form::list;
    for (const auto& held : data)
      made->items.push_back(to_yaml(held, line));
  } else if (!data.is_null()) {
    made->kind = yaml_node::form::scalar;
    made->quoted = data.is_string();
    made->text = data.is_string() ? data.get<std::string>() : data.dump();
  }
  return made;
}

file_place field_reader::at(std::string_view name) const {
  const auto* found = node_->find(name);
  return {file_, found != nullptr ? found->line : node_->line};
}

const yaml_node* field_reader::find(std::string_view name) const {
  const auto* found = node_->find(name);
  return found == nullptr || found->value->kind == yaml_node::form::null
           ? nullptr
           : found->value.get();
}

result<std::optional<std::string>>
field_reader::text(std::string_view name) const {
  const auto* found = find(name);
  if (found == nullptr)
    return std::optional<std::string>();
  if (found->kind != yaml_node::form::scalar)
    return expected(name, "text", *found);
  return std::optional(found->text);
}

result<std::optional<std::uint64_t>>
field_reader::count(std::string_view name) const {
  const auto* found = find(name);
  if (found == nullptr)
    return std::optional<std::uint64_t>();
  std::uint64_t read = 0;
  const auto* const last = found->text.data() + found->text.size();
  const auto [end, failed] = std::from_chars(found->text.data(), last, read);
  if (found->kind != yaml_node::form::scalar || found->quoted || end != last
      || failed != std::errc() || read == 0)
    return fail_at(at(name),
                   fmt::format("'{}' must be a whole number of at least 1; "
                               "leave it out for no limit",
                               name));
  return std::optional(read);
}

result<bool> field_reader::flag(std::string_view name) const {
  const auto* found = find(name);
  if (found == nullptr)
    return false;
  if (found->kind == yaml_node::form::scalar && !found->quoted) {
    if (is_true(found->text))
      return true;
    if (is_false(found->text))
      return false;
  }
  return fail_at(at(name), fmt::format("'{}' must be true or false", name));
}

result<std::optional<std::chrono::milliseconds>>
field_reader::seconds(std::string_view name) const {
  const auto* found = find(name);
  if (found == nullptr)
    return std::optional<std::chrono::milliseconds>();
  constexpr double seconds_max = 1e9;
  const auto read
    = found->kind == yaml_node::form::scalar ? scalar_to_json(*found) : json();
  const auto seconds = read.is_number() ? read.get<double>() : 0;
  if (!(seconds >= 0.001 && seconds <= seconds_max))
    return fail_at(at(name),
                   fmt::format("'{}' must be a number of seconds from 0.001 to "
                               "1e9",
                               name));
  return std::optional(std::chrono::round<std::chrono::milliseconds>(
    std::chrono::duration<double>(seconds)));
}

result<std::optional<std::size_t>>
field_reader::choice(std::string_view name,
                     std::span<const std::string_view> choices) const {
  auto given = text(name);
  if (!given)
    return given.error();
  if (!*given)
    return std::optional<std::size_t>();
  const auto found = std::ranges::find(choices, **given);
  if (found == choices.end())
    return fail_at(
      at(name),
      fmt::format("unknown {} '{}'; expected one of {}",
                  name,
                  **given,
                  list_names(choices, [](const auto& each) { return each; })));
  return std::optional(static_cast<std::size_t>(found - choices.begin()));
}

result<std::optional<json>> field_reader::object(std::string_view name) const {
  const auto* found = find(name);
  if (found == nullptr)
    return std::optional<json>();
  if (found->kind != yaml_node::form::map)
    return expected(name, "a mapping", *found);
  return std::optional(to_json(*found));
}

result<std::vector<yaml_node_ptr>>
field_reader::list(std::string_view name) const {
  const auto* found = find(name);
  if (found == nullptr)
    return std::vector<yaml_node_ptr>();
  if (found->kind != yaml_node::form::list)
    return expected(name, "a list", *found);
  return found->items;
}

error field_reader::expected(std::string_view name,
                             std::string_view what,
                             const yaml_node& found) const {
  return fail_at(
    at(name),
    fmt::format("'{}' must be {}, not {}", name, what, to_string(found.kind)));
}

} // namespace troupe
