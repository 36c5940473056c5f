#include "troupe/agents/files/model_reader.hpp"

#include "troupe/models/http/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 13> known_fields{"name",
                                                        "base_url",
                                                        "key_env",
                                                        "vertex",
                                                        "headers",
                                                        "stream",
                                                        "connect_timeout",
                                                        "first_byte_timeout",
                                                        "between_timeout",
                                                        "total_timeout",
                                                        "attempts",
                                                        "requests_per_minute",
                                                        "tokens_per_minute"};

result<void> check_names(const field_reader& fields) {
  for (const auto& each : fields.node().fields) {
    const file_place at{&fields.file(), each.line};
    if (each.name == "key" || each.name == "api_key")
      return fail_at(at,
                     fmt::format("'{}': keys are not allowed in files; name an "
                                 "environment variable with key_env",
                                 each.name));
    if (std::ranges::find(known_fields, each.name) == known_fields.end())
      return fail_at(at,
                     fmt::format("a model has no field '{}'; it has {}",
                                 each.name,
                                 fmt::join(known_fields, ", ")));
  }
  return {};
}

result<void> read_headers(const field_reader& fields, http_headers& into) {
  const auto read = fields.object("headers");
  if (!read)
    return read.error();
  if (!*read)
    return {};
  for (const auto& [name, field] : (*read)->items()) {
    if (may_hold_key(name))
      return fail_at(fields.at("headers"),
                     fmt::format("'{}': keys are not allowed in files; name an "
                                 "environment variable with key_env",
                                 name));
    if (!field.is_string() || !is_header_name(name)
        || !is_ascii_header_value(field.get_ref<const std::string&>()))
      return fail_at(
        fields.at("headers"),
        fmt::format("'{}' is not a header with a text value", name));
    into.emplace_back(name, field.get<std::string>());
  }
  return {};
}

result<void> read_time(const field_reader& fields,
                       std::string_view name,
                       std::chrono::milliseconds& into) {
  auto read = fields.seconds(name);
  if (!read)
    return read.error();
  into = read->value_or(into);
  return {};
}

result<void> read_rate(const field_reader& fields,
                       std::string_view name,
                       std::optional<double>& into) {
  const auto* found = fields.find(name);
  if (found == nullptr)
    return {};
  const auto read = to_json(*found);
  if (!read.is_number() || !(read.get<double>() > 0)
      || !std::isfinite(read.get<double>()))
    return fail_at(fields.at(name),
                   fmt::format("'{}' must be a number above 0", name));
  into = read.get<double>();
  return {};
}

// Reads the program of a token. A path starts at the file's folder.
result<std::vector<std::string>> read_command(const field_reader& fields,
                                              std::string_view name) {
  auto items = fields.list(name);
  if (!items)
    return items.error();
  std::vector<std::string> command;
  for (const auto& item : *items) {
    if (item->kind != yaml_node::form::scalar || item->text.empty())
      return fail_at({&fields.file(), item->line},
                     fmt::format("'{}' must be a list of texts: a program and "
                                 "its arguments",
                                 name));
    command.push_back(item->text);
  }
  if (command.empty() && fields.find(name) != nullptr)
    return fail_at(fields.at(name),
                   fmt::format("'{}' is a list without a program", name));
  if (!command.empty() && command.front().find('/') != std::string::npos) {
    std::error_code failed;
    const auto place = std::filesystem::weakly_canonical(
      std::filesystem::absolute(fields.file()).parent_path() / command.front(),
      failed);
    if (failed)
      return fail_at(
        fields.at(name),
        fmt::format("'{}': {}", command.front(), failed.message()));
    command.front() = place.string();
  }
  return command;
}

result<std::optional<vertex_place>> read_vertex(const field_reader& of) {
  constexpr std::array<std::string_view, 4> known{
    "project", "location", "token_env", "token_command"};
  const auto* found = of.find("vertex");
  if (found == nullptr)
    return std::optional<vertex_place>();
  if (found->kind != yaml_node::form::map)
    return fail_at(of.at("vertex"),
                   fmt::format("'vertex' must be a mapping with {}, which may "
                               "all be left out",
                               fmt::join(known, ", ")));
  const field_reader fields(of.file(), *found);
  for (const auto& each : found->fields)
    if (std::ranges::find(known, each.name) == known.end())
      return fail_at({&of.file(), each.line},
                     fmt::format("'vertex' has no field '{}'; it has {}",
                                 each.name,
                                 fmt::join(known, ", ")));
  vertex_place place;
  for (const auto& [name, target] :
       {std::pair("project", &place.project),
        std::pair("location", &place.location),
        std::pair("token_env", &place.token_variable)}) {
    auto text = fields.text(name);
    if (!text)
      return text.error();
    *target = text->value_or("");
  }
  auto command = read_command(fields, "token_command");
  if (!command)
    return command.error();
  place.token_command = std::move(*command);
  return std::optional(std::move(place));
}

result<model_source> read_mapping(const field_reader& fields) {
  if (auto fit = check_names(fields); !fit)
    return fit.error();
  model_source source;
  for (const auto& [name, target] :
       {std::pair("name", &source.name),
        std::pair("base_url", &source.base_url),
        std::pair("key_env", &source.key_variable)}) {
    auto text = fields.text(name);
    if (!text)
      return text.error();
    *target = text->value_or("");
  }
  if (source.name.empty())
    return fail_at(fields.at(),
                   "expected a field 'name', such as gemini-2.5-pro");
  auto vertex = read_vertex(fields);
  if (!vertex)
    return vertex.error();
  source.vertex = std::move(*vertex);
  if (auto read = read_headers(fields, source.headers); !read)
    return read.error();
  auto streams = fields.flag("stream");
  if (!streams)
    return streams.error();
  source.streams = *streams;
  for (const auto& [name, target] :
       {std::pair("connect_timeout", &source.timeouts.connect),
        std::pair("first_byte_timeout", &source.timeouts.first_byte),
        std::pair("between_timeout", &source.timeouts.between),
        std::pair("total_timeout", &source.timeouts.total)})
    if (auto read = read_time(fields, name, *target); !read)
      return read.error();
  auto attempts = fields.count("attempts");
  if (!attempts)
    return attempts.error();
  source.retries.attempts_max
    = static_cast<std::size_t>(attempts->value_or(source.retries.attempts_max));
  for (const auto& [name, target] :
       {std::pair("requests_per_minute", &source.limit.requests_per_minute),
        std::pair("tokens_per_minute", &source.limit.tokens_per_minute)})
    if (auto read = read_rate(fields, name, *target); !read)
      return read.error();
  return source;
}

result<named_source> read_source(const std::filesystem::path& file,
                                 const yaml_node& node,
                                 int line) {
  if (node.kind == yaml_node::form::map) {
    auto source = read_mapping(field_reader(file, node));
    if (!source)
      return source.error();
    return named_source{std::move(*source), line};
  }
  if (node.kind != yaml_node::form::scalar)
    return fail_at({&file, line},
                   fmt::format("'model' must be a name, a mapping with 'name', "
                               "or a list of them, not {}",
                               to_string(node.kind)));
  named_source made;
  made.source.name = node.text;
  made.line = line;
  return made;
}

} // namespace

// Header names are compared without case.
bool may_hold_key(std::string_view header) {
  constexpr std::array<std::string_view, 5> names = {"authorization",
                                                     "proxy-authorization",
                                                     "x-api-key",
                                                     "x-goog-api-key",
                                                     "api-key"};
  return std::ranges::any_of(names, [header](std::string_view known) {
    return std::ranges::equal(header, known, [](char left, char right) {
      return (left >= 'A' && left <= 'Z' ? left - 'A' + 'a' : left) == right;
    });
  });
}

result<std::vector<named_source>> read_model_sources(const field_reader& of) {
  std::vector<named_source> sources;
  const auto* found = of.find("model");
  if (found == nullptr)
    return sources;
  if (found->kind != yaml_node::form::list) {
    auto source = read_source(of.file(), *found, of.at("model").line);
    if (!source)
      return source.error();
    sources.push_back(std::move(*source));
    return sources;
  }
  if (found->items.empty())
    return fail_at(of.at("model"), "'model' is a list without a model");
  for (const auto& item : found->items) {
    auto source = read_source(of.file(), *item, item->line);
    if (!source)
      return source.error();
    sources.push_back(std::move(*source));
  }
  return sources;
}

} // namespace troupe
