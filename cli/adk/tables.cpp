#include "troupe/cli/adk/tables.hpp"

#include <fmt/format.h>

namespace troupe::cli {

error in_row(std::string_view table, std::string_view row, const error& why) {
  return {why.code(),
          fmt::format("table {}, row {}: {}", table, row, why.message())};
}

} // namespace troupe::cli
