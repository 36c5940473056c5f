// Opens the databases that a file of rules names, as one store.

#pragma once

#include "troupe/stores/store.hpp"
#include "troupe/stores/store_options.hpp"

#include <memory>
#include <string>

namespace troupe {

/// Reads the rules in `file` (stores/routed/rules.hpp) and opens all databases
/// that they name, each with `options`. A path in the rules starts at the
/// working folder of the process. Fails with `errc::invalid_argument` for a
/// wrong rule, `errc::not_found` if there is no such file, `errc::store_failed`
/// if it cannot be read, and otherwise like `open_store`; the error then names
/// the database.
result<std::unique_ptr<store>> open_routed_store(const std::string& file,
                                                 const store_options& options);

} // namespace troupe
