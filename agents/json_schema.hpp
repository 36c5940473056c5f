// A JSON Schema that checks arguments of tools and answers of models.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <memory>

namespace troupe {

/// An immutable value; copies share the schema. Thread-safe.
class json_schema {
public:
  /// Compiles a schema of draft 7. Throws `errc::invalid_argument` for an
  /// invalid schema, for references to other documents, and for references that
  /// lead back to their schema without a step into the data.
  explicit json_schema(json text);

  /// Schema as given to the constructor.
  const json& text() const noexcept;

  /// Fails with `errc::invalid_argument`. The message names each violation (the
  /// first eight) as a path with the reason; the path of the whole is `/`, and
  /// names in it are not escaped. If the schema has a pattern, text of more
  /// than 4,096 bytes anywhere in `data` does not fit.
  result<void> check(const json& data) const;

private:
  struct compiled;

  std::shared_ptr<const compiled> compiled_;
};

} // namespace troupe
