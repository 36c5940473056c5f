// The fields of a mapping in an agent file, read as what they have to be.
//
// Every failure is `errc::invalid_argument`, and names file and line.

#pragma once

#include "troupe/agents/yaml_tree.hpp"
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

/// A line of a file, which outlives this.
struct file_place {
  const std::filesystem::path* file;
  int line;
};

/// `"FILE:LINE"`.
std::string to_string(const file_place& at);

error fail_at(const file_place& at, std::string_view why);

/// `"a, b, c"` of the names in a range.
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

/// Reads one mapping; a field that is null counts as left out.
class field_reader {
public:
  field_reader(const std::filesystem::path& file, const yaml_node& node)
    : file_(&file),
      node_(&node) {}

  const std::filesystem::path& file() const noexcept { return *file_; }

  const yaml_node& node() const noexcept { return *node_; }

  file_place at() const { return {file_, node_->line}; }

  /// The place of a field, or of the whole where it is left out.
  file_place at(std::string_view name) const;

  /// Null if it is left out.
  const yaml_node* find(std::string_view name) const;

  result<std::optional<std::string>> text(std::string_view name) const;

  /// A whole number of at least 1.
  result<std::optional<std::uint64_t>> count(std::string_view name) const;

  /// True or false; false if it is left out.
  result<bool> flag(std::string_view name) const;

  /// Seconds above 0.
  result<std::optional<std::chrono::milliseconds>>
  seconds(std::string_view name) const;

  /// One of `choices`, and its place among them.
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

/// A node as the JSON that it stands for, by YAML's core schema.
json to_json(const yaml_node& node);

/// The reverse, as if it stood on `line`.
yaml_node_ptr to_yaml(const json& data, int line);

} // namespace troupe
