// Owns libpq's list of the settings of a connection.

#pragma once

#include <libpq-fe.h>

#include <memory>

namespace troupe {

struct conninfo_closer {
  void operator()(PQconninfoOption* options) const noexcept {
    PQconninfoFree(options);
  }
};

/// The list ends with an option without a keyword.
using conninfo = std::unique_ptr<PQconninfoOption, conninfo_closer>;

} // namespace troupe
