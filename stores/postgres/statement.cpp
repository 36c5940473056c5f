#include "troupe/stores/postgres/statement.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace troupe {

namespace {

// Type numbers of PostgreSQL; they never change.
constexpr std::int32_t type_int8 = 20;
constexpr std::int32_t type_text = 25;

template <class Number>
void append_big_endian(std::string& target, Number number) {
  for (auto shift = 8 * static_cast<int>(sizeof(Number)); shift > 0;) {
    shift -= 8;
    target.push_back(static_cast<char>((number >> shift) & 0xff));
  }
}

void append_array_head(std::string& target,
                       std::int32_t type,
                       std::size_t size) {
  using namespace postgres_binary;
  append_int32(target, size == 0 ? 0 : 1); // dimensions
  append_int32(target, 0);                 // no nulls
  append_int32(target, type);
  if (size == 0)
    return;
  append_int32(target, static_cast<std::int32_t>(size));
  append_int32(target, 1); // index of the first
}

} // namespace

namespace postgres_binary {

void append_int16(std::string& target, std::int16_t number) {
  append_big_endian(target, number);
}

void append_int32(std::string& target, std::int32_t number) {
  append_big_endian(target, number);
}

void append_int64(std::string& target, std::int64_t number) {
  append_big_endian(target, number);
}

} // namespace postgres_binary

// -- parameters ----

postgres_parameters& postgres_parameters::add(std::int64_t number) {
  postgres_binary::append_int64(values_.emplace_back(), number);
  return *this;
}

postgres_parameters& postgres_parameters::add(std::string_view text) {
  values_.emplace_back(text);
  return *this;
}

postgres_parameters&
postgres_parameters::add(std::span<const std::int64_t> numbers) {
  auto& value = values_.emplace_back();
  append_array_head(value, type_int8, numbers.size());
  for (const auto number : numbers) {
    postgres_binary::append_int32(value, 8);
    postgres_binary::append_int64(value, number);
  }
  return *this;
}

postgres_parameters&
postgres_parameters::add(std::span<const std::string_view> texts) {
  auto& value = values_.emplace_back();
  append_array_head(value, type_text, texts.size());
  for (const auto text : texts) {
    postgres_binary::append_int32(value,
                                  static_cast<std::int32_t>(text.size()));
    value.append(text);
  }
  return *this;
}

postgres_parameters& postgres_parameters::add_limit(std::size_t count) {
  constexpr std::size_t count_max = std::numeric_limits<std::int32_t>::max();
  return add(static_cast<std::int64_t>(std::min(count, count_max)));
}

// -- rows ----

void postgres_rows::closer::operator()(PGresult* answer) const noexcept {
  PQclear(answer);
}

int postgres_rows::size() const noexcept {
  return PQntuples(answer_.get());
}

int postgres_rows::columns() const noexcept {
  return PQnfields(answer_.get());
}

bool postgres_rows::is_null(int row, int column) const noexcept {
  return PQgetisnull(answer_.get(), row, column) != 0;
}

std::string_view postgres_rows::text(int row, int column) const noexcept {
  return {PQgetvalue(answer_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(answer_.get(), row, column))};
}

std::int64_t postgres_rows::number(int row, int column) const noexcept {
  const auto digits = text(row, column);
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

timestamp postgres_rows::time(int row, int column) const noexcept {
  return timestamp(std::chrono::microseconds(number(row, column)));
}

} // namespace troupe
