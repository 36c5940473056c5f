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

template <class Returned, class Arguments, class... Context>

requires(parameter_struct<std::remove_cvref_t<
           Arguments>> && (std::is_same_v<Context, tool_context&> && ...)
         && sizeof...(Context) <= 1) tool
  make_function_tool(tool_options options,
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
  return detail::make_function_tool(std::move(options),
                                    std::function(std::move(called)));
}

} // namespace troupe
