// JSON that a vendor sends, read field by field without being copied.
//
// Absent and null are the same. A field of another type than the reader expects
// counts as absent, and is remembered: `check` tells it. Internal; not
// installed.

#pragma once

#include "troupe/core/json.hpp"

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

class wire_document;

/// One value in a document, or nothing. Valid until the document parses again.
class wire_node {
public:
  wire_node() = default;

  explicit operator bool() const { return document_ != nullptr; }

  /// Nothing if this is nothing, or has no such field.
  wire_node operator[](std::string_view field) const;

  /// Empty if this is nothing.
  std::string_view text() const;
  bool flag() const;
  /// Nothing for all but integers from 0 on; these alone are no misfit, as no
  /// answer is worth less for an odd count of tokens.
  std::optional<std::int64_t> count() const;
  std::optional<double> number() const;
  /// The first element of a list.
  wire_node first() const;

  bool is_text() const { return document_ != nullptr && at_.is_string(); }

  bool is_object() const { return document_ != nullptr && at_.is_object(); }

  bool is_list() const { return document_ != nullptr && at_.is_array(); }

  /// Of a list; each element is given as a node that may be nothing.
  template <class Visit>
  void for_each(Visit visit) const {
    simdjson::dom::array elements;
    if (!expect(document_ == nullptr || at_.get(elements) == 0, "list")
        || document_ == nullptr)
      return;
    for (const auto element : elements)
      visit(wire_node(element, document_, name_));
  }

  /// As JSON that may enter content: no key twice in one object, not deeper
  /// than `json_depth_max`. Fails with `errc::invalid_argument`.
  result<json> copy() const;

  /// As compact JSON text; empty if this is nothing.
  std::string to_text() const;

private:
  friend class wire_document;

  wire_node(simdjson::dom::element at,
            wire_document* document,
            std::string_view name)
    : at_(at),
      document_(at.is_null() ? nullptr : document),
      name_(name) {}

  // Remembers a misfit; gives what holds.
  bool expect(bool holds, std::string_view type) const;

  simdjson::dom::element at_;
  wire_document* document_ = nullptr; // Outlives the node.
  std::string_view name_;             // A literal.
};

/// Parses one text after another with the same memory. For one thread at a
/// time; does not move.
class wire_document {
public:
  wire_document() = default;
  wire_document(const wire_document&) = delete;
  wire_document& operator=(const wire_document&) = delete;

  /// Fails with `errc::model_failed` on what is no JSON object.
  result<wire_node> parse(std::string_view text);

  /// Fails with `errc::model_failed` if a field since the last `parse` was of a
  /// wrong type.
  result<void> check() const;

private:
  friend class wire_node;

  simdjson::dom::parser parser_;
  std::string_view misfit_; // The name of a field; a literal.
  std::string_view expected_;
};

} // namespace troupe
