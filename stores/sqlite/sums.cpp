#include "troupe/stores/sqlite/sums.hpp"

#include "troupe/stores/sqlite/database.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe {

namespace {

class checksum {
public:
  void add(char kind, std::uint64_t number) {
    std::array<unsigned char, 9> bytes{static_cast<unsigned char>(kind)};
    for (std::size_t index = 1; index < bytes.size(); ++index) {
      bytes[index] = static_cast<unsigned char>(number & 0xFFU);
      number >>= 8U;
    }
    add(bytes.data(), bytes.size());
  }

  void add(const void* bytes, std::size_t size) {
    // zlib restarts the checksum if it gets no bytes.
    if (size > 0)
      sum_ = crc32_z(sum_, static_cast<const unsigned char*>(bytes), size);
  }

  std::int64_t value() const { return static_cast<std::int64_t>(sum_); }

private:
  unsigned long sum_ = 0;
};

void row_sum(sqlite3_context* context, int count, sqlite3_value** values) {
  checksum sum;
  for (int index = 0; index < count; ++index) {
    auto* given = values[index];
    switch (sqlite3_value_type(given)) {
    case SQLITE_NULL:
      sum.add('n', 0);
      break;
    case SQLITE_INTEGER:
      sum.add('i', static_cast<std::uint64_t>(sqlite3_value_int64(given)));
      break;
    default: {
      // A text that damage has turned into a number or a blob must get another
      // sum.
      const char kind = sqlite3_value_type(given) == SQLITE_TEXT ? 't' : 'o';
      const void* bytes = sqlite3_value_blob(given);
      const auto size = static_cast<std::size_t>(sqlite3_value_bytes(given));
      sum.add(kind, size);
      sum.add(bytes, size);
    }
    }
  }
  sqlite3_result_int64(context, sum.value());
}

} // namespace

std::string is_sound(std::string_view column, std::string_view sum) {
  return fmt::format("{} IS {}", column, sum);
}

void add_row_sum(sqlite3* connection) {
  if (sqlite3_create_function_v2(connection,
                                 "row_sum",
                                 -1,
                                 SQLITE_UTF8 | SQLITE_DETERMINISTIC
                                   | SQLITE_DIRECTONLY,
                                 nullptr,
                                 &row_sum,
                                 nullptr,
                                 nullptr,
                                 nullptr)
      != SQLITE_OK)
    throw sqlite_failure(connection, "open");
}

} // namespace troupe
