// Tool parameters as a struct: makes the JSON Schema of the struct, and fills
// the struct from arguments.
//
//   struct forecast_query {
//     std::string city;
//     std::optional<int> days;
//
//     static constexpr auto parameters = std::tuple(
//       troupe::parameter("city", &forecast_query::city, "Name of the city"),
//       troupe::parameter("days", &forecast_query::days, "How far ahead"));
//   };
//
// Fields are strings, `bool`, integers, floating numbers, `json` (anything),
// structs of the same kind, and `std::vector` and `std::optional` of those.
// Without `std::optional` a field is required.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <fmt/format.h>

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// One field. `name` and `description` are shown to the model.
template <class Struct, class Field>
struct parameter {
  /// Describes one field. The texts are not copied; literals live long enough.
  constexpr parameter(std::string_view name_,
                      Field Struct::*field_,
                      std::string_view description_ = {})
    : name(name_),
      field(field_),
      description(description_) {}

  /// Key of the argument in the JSON object.
  std::string_view name;
  /// Member that receives the argument.
  Field Struct::*field;
  /// Text for the model. An empty one is left out of the schema.
  std::string_view description;
};

/// A struct that lists its parameters.
template <class T>
concept parameter_struct = requires {
  std::tuple_size<std::remove_cvref_t<decltype(T::parameters)>>::value;
};

namespace detail {

template <class T>
struct parameter_type {
  static constexpr bool is_optional = false;
  using held = T;
};

template <class T>
struct parameter_type<std::optional<T>> {
  static constexpr bool is_optional = true;
  using held = T;
};

template <class T>
inline constexpr bool is_vector = false;

template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

} // namespace detail

/// The JSON Schema of a field or of a parameter struct.
template <class T>
json schema_of() {
  using held = typename detail::parameter_type<T>::held;
  if constexpr (parameter_struct<held>) {
    auto properties = json::object();
    auto required = json::array();
    std::apply(
      [&](const auto&... each) {
        const auto add = [&]<class S, class F>(const parameter<S, F>& one) {
          auto schema = schema_of<F>();
          if (!one.description.empty())
            schema["description"] = std::string(one.description);
          properties[std::string(one.name)] = std::move(schema);
          if (!detail::parameter_type<F>::is_optional)
            required.push_back(std::string(one.name));
        };
        (add(each), ...);
      },
      held::parameters);
    json schema{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty())
      schema["required"] = std::move(required);
    return schema;
  } else if constexpr (std::is_same_v<held, json>) {
    return json::object();
  } else if constexpr (detail::is_vector<held>) {
    return {{"type", "array"},
            {"items", schema_of<typename held::value_type>()}};
  } else if constexpr (std::is_same_v<held, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (std::is_same_v<held, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::integral<held>) {
    return {{"type", "integer"}};
  } else {
    static_assert(std::floating_point<held>,
                  "no parameter is of this type: see parameters.hpp");
    return {{"type", "number"}};
  }
}

/// Makes a field or a parameter struct from JSON arguments that fit its schema.
/// Throws `errc::invalid_argument` for a number that the field cannot hold, and
/// for arguments that do not fit.
template <class T>
T from_arguments(const json& data) {
  using held = typename detail::parameter_type<T>::held;
  try {
    if constexpr (parameter_struct<held>) {
      held made{};
      std::apply(
        [&](const auto&... each) {
          const auto fill = [&]<class S, class F>(const parameter<S, F>& one) {
            const auto found = data.find(one.name);
            if (detail::parameter_type<F>::is_optional
                && (found == data.end() || found->is_null()))
              return;
            if (found == data.end())
              throw error(errc::invalid_argument,
                          fmt::format("'{}' is missing", one.name));
            made.*one.field = from_arguments<F>(*found);
          };
          (fill(each), ...);
        },
        held::parameters);
      return made;
    } else if constexpr (std::is_same_v<held, json>) {
      return data;
    } else if constexpr (detail::is_vector<held>) {
      held made;
      for (const auto& element : data)
        made.push_back(from_arguments<typename held::value_type>(element));
      return made;
    } else if constexpr (std::integral<held> && !std::is_same_v<held, bool>) {
      const bool fits
        = data.is_number_unsigned()
            ? std::in_range<held>(data.get<std::uint64_t>())
          : data.is_number_integer()
            ? std::in_range<held>(data.get<std::int64_t>())
            // JSON Schema counts 2.0 as an integer.
            : data.is_number_float()
                && data.get<double>()
                     >= static_cast<double>(std::numeric_limits<held>::min())
                && data.get<double>() < 0x1p53 && data.get<double>() > -0x1p53
                && data.get<double>()
                     <= static_cast<double>(std::numeric_limits<held>::max());
      if (!fits)
        throw error(errc::invalid_argument,
                    fmt::format("{} is not an integer from {} to {}",
                                data.dump(),
                                std::numeric_limits<held>::min(),
                                std::numeric_limits<held>::max()));
      return data.get<held>();
    } else {
      return data.get<held>();
    }
  } catch (const json::exception& failure) {
    throw error(errc::invalid_argument, failure.what());
  }
}

} // namespace troupe
