// A C++ function as a tool, with its schema from its parameter struct.
//
//   auto forecast = troupe::function_tool(
//     {.name = "forecast", .description = "Tells the weather."},
//     [](const forecast_query& query, troupe::tool_context& context) {
//       return look_up(query.city, query.days.value_or(1));
//     });

#pragma once

#include "troupe/agents/parameters.hpp"
#include "troupe/agents/tool.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace troupe {

namespace detail {

template <class T>
struct awaited {
  static constexpr bool is_task = false;
  using type = T;
};

template <class T>
struct awaited<task<T>> {
  static constexpr bool is_task = true;
  using type = T;
};

// Checks one rule after the other, so that the compiler reports only the first
// broken one.
template <class Function>
struct tool_shape;

template <class Returned, class... Arguments>
struct tool_shape<std::function<Returned(Arguments...)>> {
  using answer = typename awaited<Returned>::type;
  using first = std::remove_cvref_t<
    std::tuple_element_t<0, std::tuple<Arguments..., void>>>;

  static constexpr bool has_value
    = std::is_class_v<
        first> && !std::is_same_v<first, std::string> && !std::is_same_v<first, std::string_view> && !is_vector<first>;
  static constexpr bool has_struct = parameter_struct<first>;

  static constexpr bool has_context() {
    if constexpr (sizeof...(Arguments) == 2)
      return std::is_same_v<std::tuple_element_t<1, std::tuple<Arguments...>>,
                            tool_context&>;
    else
      return sizeof...(Arguments) < 2;
  }

  static constexpr bool has_answer
    = std::is_void_v<answer> || std::is_constructible_v<json, answer>;

  static consteval bool check() {
    if constexpr (!has_value)
      static_assert(
        has_value,
        "the first parameter of a tool is a struct that lists its fields, not "
        "a plain value: struct query { std::string city; static constexpr auto "
        "parameters = std::tuple(troupe::parameter(\"city\", &query::city)); "
        "};");
    else if constexpr (!has_struct)
      static_assert(
        has_struct,
        "the parameter struct of this tool does not list its fields: add "
        "'static constexpr auto parameters = "
        "std::tuple(troupe::parameter(\"city\", &query::city));' to the "
        "struct, and see agents/parameters.hpp");
    else if constexpr (!has_context())
      static_assert(
        has_context(),
        "a tool has at most two parameters: its parameter struct and "
        "'troupe::tool_context& context'");
    else if constexpr (!has_answer)
      static_assert(
        has_answer,
        "the result of a tool becomes JSON: return text, a number, "
        "troupe::json or a struct with a to_json function, or nothing");
    return has_value && has_struct && has_context() && has_answer;
  }
};

template <class Returned, class Arguments, class... Context>
tool make_function_tool(tool_options options,
                        std::function<Returned(Arguments, Context...)> called) {
  using held = std::remove_cvref_t<Arguments>;
  options.parameters = schema_of<held>();
  const auto call
    = [called = std::move(called)](held& made, tool_context& context) {
        if constexpr (sizeof...(Context) == 1)
          return called(made, context);
        else
          return called(made);
      };
  if constexpr (awaited<Returned>::is_task)
    options.run
      = [call](const json& args, tool_context& context) -> task<json> {
      auto made = from_arguments<held>(args);
      if constexpr (std::is_void_v<typename awaited<Returned>::type>) {
        co_await call(made, context);
        co_return json();
      } else {
        co_return json(co_await call(made, context));
      }
    };
  else
    options.run = [call](const json& args, tool_context& context) {
      auto made = from_arguments<held>(args);
      if constexpr (std::is_void_v<Returned>) {
        call(made, context);
        return json();
      } else {
        return json(call(made, context));
      }
    };
  return tool(std::move(options));
}

} // namespace detail

/// Makes a tool of a function or coroutine. Its first parameter is a parameter
/// struct (see parameters.hpp), its optional second one a `tool_context&`; it
/// returns a type that converts to JSON, or nothing. Replaces `parameters` and
/// the function in `options`. Throws like the constructor of `tool`, also if
/// `as_agent` is set.
template <class Function>
tool function_tool(tool_options options, Function called) {
  if constexpr (has_signature<Function>) {
    using shape
      = detail::tool_shape<decltype(std::function(std::move(called)))>;
    if constexpr (shape::check())
      return detail::make_function_tool(std::move(options),
                                        std::function(std::move(called)));
  } else {
    static_assert(has_signature<Function>,
                  "a tool is a function or a lambda without 'auto' "
                  "parameters: [](const query& asked, troupe::tool_context& "
                  "context) { ... }");
  }
}

} // namespace troupe
