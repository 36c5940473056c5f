// A named value of a span, a histogram, a log record or a program.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::telemetry {

/// A value that OpenTelemetry has.
using attribute_value = std::
  variant<std::string, bool, std::int64_t, double, std::vector<std::string>>;

/// A named value.
struct attribute {
  attribute() = default;

  attribute(std::string named, std::string text)
    : key(std::move(named)),
      value(std::move(text)) {}

  attribute(std::string named, const char* text)
    : key(std::move(named)),
      value(std::string(text)) {}

  attribute(std::string named, bool truth)
    : key(std::move(named)),
      value(truth) {}

  attribute(std::string named, std::int64_t number)
    : key(std::move(named)),
      value(number) {}

  attribute(std::string named, double number)
    : key(std::move(named)),
      value(number) {}

  attribute(std::string named, std::vector<std::string> list)
    : key(std::move(named)),
      value(std::move(list)) {}

  std::string key;
  attribute_value value;

  friend bool operator==(const attribute&, const attribute&) = default;
  friend auto operator<=>(const attribute&, const attribute&) = default;
};

/// Attributes in the order in which they are sent; each key at most once.
using attributes = std::vector<attribute>;

/// Adds a text that is not empty.
inline void add_if(attributes& to, const char* key, const std::string& text) {
  if (!text.empty())
    to.emplace_back(key, text);
}

} // namespace troupe::telemetry
