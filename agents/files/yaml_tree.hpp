// A YAML or JSON text as a tree of nodes that know their lines. Stricter than
// yaml-cpp: text that it would silently misread is an error.
//
// A mapping with the merge key of YAML 1.1, `<<: *base` or `<<: [*a, *b]`, has
// the fields of the named mappings, too. Its own fields win, and then those of
// the mapping that is named first. A quoted `"<<"` is a field like others, so
// JSON has no merge key.

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

/// One node. An alias shares the node of its anchor. A reader that copies the
/// tree copies that node once per alias; `yaml_rules` limits the sum.
struct yaml_node {
  struct field {
    std::string name;
    int line;   ///< Where it is written; for a merged field, in its mapping.
    int column; ///< From 0; -1 for an alias.
    yaml_node_ptr value;
    bool is_quoted = false; ///< The name is in quotes.
  };

  enum class form : std::uint8_t { null, scalar, list, map };

  form kind = form::null;
  int line = 1;
  int column = 0; ///< From 0; scalars only.
  std::string text;
  bool quoted = false;
  std::vector<yaml_node_ptr> items;
  std::vector<field> fields;

  /// The field of that name, or null.
  const field* find(std::string_view name) const;
};

/// Words for messages: "a single value", "a list".
std::string_view to_string(yaml_node::form kind);

/// Reason and line (from 1) of a refused text.
struct yaml_failure {
  int line;
  std::string why;
};

struct yaml_rules {
  /// Levels of lists and mappings; aliases count as their targets.
  std::size_t depth_max;
  /// Number of nodes, and bytes of text in them; an alias counts as its target.
  std::size_t nodes_max;
  std::size_t bytes_max;
  /// Refuses YAML that is not JSON.
  bool json_only = false;
};

/// The tree of the one document in `text`; null if the text is empty.
tl::expected<yaml_node_ptr, yaml_failure> parse_yaml(const std::string& text,
                                                     const yaml_rules& rules);

} // namespace troupe
