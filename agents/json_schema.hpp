// A JSON Schema that data is held against: what tools are called with, what
// models answer.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <memory>

namespace troupe {

/// An immutable value; copies share it. Thread-safe.
class json_schema {
public:
  /// Draft 7. Throws `errc::invalid_argument` on what is none, and on
  /// references to other documents.
  explicit json_schema(json text);

  const json& text() const noexcept;

  /// Fails with `errc::invalid_argument`, and names every place that does not
  /// fit, as a JSON pointer, with the reason.
  result<void> check(const json& data) const;

private:
  struct compiled;

  std::shared_ptr<const compiled> compiled_;
};

} // namespace troupe
