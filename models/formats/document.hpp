// Reads a vendor's JSON field by field, without copying it. Internal.
//
// A field that is absent and a field that is null are the same. A field of a
// wrong type counts as absent; `check` reports it.

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

  /// Returns a field; nothing if this is nothing or has no such field.
  wire_node operator[](std::string_view field) const;

  /// Empty if this is nothing.
  std::string_view text() const;
  bool flag() const;
  /// Returns an integer of at least 0; nothing for any other value. Other
  /// values are not reported as errors, because a wrong token count does not
  /// spoil an answer.
  std::optional<std::int64_t> count() const;
  std::optional<double> number() const;
  /// Returns the first element of a list.
  wire_node first() const;

  bool is_text() const { return document_ != nullptr && at_.is_string(); }

  bool is_object() const { return document_ != nullptr && at_.is_object(); }

  bool is_list() const { return document_ != nullptr && at_.is_array(); }

  /// Visits the elements of a list; each is a node that may be nothing.
  template <class Visit>
  void for_each(Visit visit) const {
    simdjson::dom::array elements;
    if (!expect(document_ == nullptr || at_.get(elements) == 0, "list")
        || document_ == nullptr)
      return;
    for (const auto element : elements)
      visit(wire_node(element, document_, name_));
  }

  /// Copies the value as JSON that may enter content: no repeated key in an
  /// object, not deeper than `json_depth_max`. Fails with
  /// `errc::invalid_argument`.
  result<json> copy() const;

  /// Returns compact JSON text; empty if this is nothing.
  std::string to_text() const;

private:
  friend class wire_document;

  wire_node(simdjson::dom::element at,
            wire_document* document,
            std::string_view name)
    : at_(at),
      document_(at.is_null() ? nullptr : document),
      name_(name) {}

  // Remembers a field of a wrong type; returns `holds`.
  bool expect(bool holds, std::string_view type) const;

  simdjson::dom::element at_;
  wire_document* document_ = nullptr; // Outlives the node.
  std::string_view name_;             // A literal.
};

/// Parses texts one after another and reuses the memory. Used by one thread at
/// a time; cannot be moved.
class wire_document {
public:
  wire_document() = default;
  wire_document(const wire_document&) = delete;
  wire_document& operator=(const wire_document&) = delete;

  /// Parses the text; half a surrogate pair is read as U+FFFD. Fails with
  /// `errc::model_failed` if the text is not a JSON object.
  result<wire_node> parse(std::string_view text);

  /// Fails with `errc::model_failed` if a field read since the last `parse` had
  /// a wrong type.
  result<void> check() const;

  /// Parses the text, passes the object to `take`, and checks the fields that
  /// it has read. Fails as these three do; `take` returns a `result<void>`.
  template <class Take>
  result<void> read(std::string_view text, Take take) {
    const auto root = parse(text);
    if (!root)
      return root.error();
    if (auto taken = take(*root); !taken)
      return taken;
    return check();
  }

private:
  friend class wire_node;

  simdjson::dom::parser parser_;
  std::string_view
    misfit_; // Name of the first field of a wrong type; a literal.
  std::string_view expected_;
};

} // namespace troupe
