// A text in YAML or JSON as a tree whose nodes know their lines.
//
// Stricter than the parser below it: what that would misread in silence is an
// error.

#pragma once

#include <tl/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct yaml_node;
using yaml_node_ptr = std::shared_ptr<const yaml_node>;

/// An alias shares the node of its anchor. A reader that copies the tree copies
/// that node once per alias; `yaml_rules` bounds the sum.
struct yaml_node {
  struct field {
    std::string name;
    int line;
    int column; ///< From 0; -1 for an alias.
    yaml_node_ptr value;
  };

  enum class form : std::uint8_t { null, scalar, list, map };

  form kind = form::null;
  int line = 1;
  int column = 0; ///< From 0; of scalars alone.
  std::string text;
  bool quoted = false;
  std::vector<yaml_node_ptr> items;
  std::vector<field> fields;

  /// The field of that name, or null.
  const field* find(std::string_view name) const;
};

/// "a single value", "a list".
std::string_view to_string(yaml_node::form kind);

/// Why a text is refused, and where, lines counted from 1.
struct yaml_failure {
  int line;
  std::string why;
};

struct yaml_rules {
  /// Levels of lists and mappings, counted through aliases.
  std::size_t depth_max;
  /// Values, and bytes of text in them; an alias counts as its target.
  std::size_t nodes_max;
  std::size_t bytes_max;
  /// Refuses what is YAML and not JSON.
  bool json_only = false;
};

/// The tree of the one document in `text`; null if there is none.
tl::expected<yaml_node_ptr, yaml_failure> parse_yaml(const std::string& text,
                                                     const yaml_rules& rules);

} // namespace troupe
