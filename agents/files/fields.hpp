// Reads the fields of a mapping in an agent file, with their types checked.
// Every failure is `errc::invalid_argument` and names file and line.

#pragma once

#include "troupe/agents/files/yaml_tree.hpp"
#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A line of a file; the path outlives this object.
struct file_place {
  const std::filesystem::path* file;
  int line;
};

/// `"FILE:LINE"`.
std::string to_string(const file_place& at);

/// An `errc::invalid_argument` whose message starts with `"FILE:LINE: "`.
error fail_at(const file_place& at, std::string_view why);

/// The names in a range as one text: `"a, b, c"`.
template <class Range, class Name>
std::string list_names(const Range& range, Name name) {
  std::string listed;
  for (const auto& element : range) {
    if (!listed.empty())
      listed += ", ";
    listed += name(element);
  }
  return listed;
}

/// Reads one mapping. A field that is null counts as left out.
class field_reader {
public:
  field_reader(const std::filesystem::path& file, const yaml_node& node)
    : file_(&file),
      node_(&node) {}

  const std::filesystem::path& file() const noexcept { return *file_; }

  const yaml_node& node() const noexcept { return *node_; }

  file_place at() const { return {file_, node_->line}; }

  /// The line of a field, or of the mapping if the field is left out.
  file_place at(std::string_view name) const;

  /// The field's value; null if it is left out.
  const yaml_node* find(std::string_view name) const;

  result<std::optional<std::string>> text(std::string_view name) const;

  /// A whole number of at least 1.
  result<std::optional<std::uint64_t>> count(std::string_view name) const;

  /// True or false; false if it is left out.
  result<bool> flag(std::string_view name) const;

  /// A number of seconds, from 0.001 to 1e9.
  result<std::optional<std::chrono::milliseconds>>
  seconds(std::string_view name) const;

  /// The index in `choices` of the field's text.
  result<std::optional<std::size_t>>
  choice(std::string_view name,
         std::span<const std::string_view> choices) const;

  /// A mapping, as JSON.
  result<std::optional<json>> object(std::string_view name) const;

  result<std::vector<yaml_node_ptr>> list(std::string_view name) const;

private:
  error expected(std::string_view name,
                 std::string_view what,
                 const yaml_node& found) const;

  const std::filesystem::path* file_;
  const yaml_node* node_;
};

/// Converts a node to JSON, by YAML's core schema.
json to_json(const yaml_node& node);

/// Converts JSON to a node; all nodes get the line `line`.
yaml_node_ptr to_yaml(const json& data, int line);

} // namespace troupe
