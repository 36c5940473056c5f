// Names of Python code in agent files: classes and functions of ADK that troupe
// has, too, and code that it cannot run.
//
// Every error about code that cannot be run is made here, with the way to reach
// the same without Python.

#pragma once

#include "troupe/agents/files/fields.hpp"

#include <cstdint>
#include <string_view>

namespace troupe {

/// A class or function of ADK. It has the names `name`, `PACKAGE.name` and
/// `PACKAGE.module.name`.
struct adk_name {
  std::string_view name;
  std::string_view module; ///< Empty: ADK has no such thing; only `name`.
};

/// Returns true if `written` is one of the names that `known` has in the
/// package, such as `google.adk.agents`.
bool is_name_of(const adk_name& known,
                std::string_view package,
                std::string_view written);

/// Returns true for a name with dots, such as `shop.tools.search`.
bool is_python_name(std::string_view name);

/// Kinds of things that files of ADK name as Python code.
enum class python_code : std::uint8_t { agent, callback, schema, tool };

/// The way to reach the same without Python, for errors: "name a tool of the
/// program (C++), …".
std::string_view way_without_python(python_code kind);

/// The error for the name of Python code, with the way out.
error fail_on_python(const file_place& at,
                     std::string_view name,
                     std::string_view way);

/// The same with the usual way for this kind.
error fail_on_python(const file_place& at,
                     std::string_view name,
                     python_code kind);

} // namespace troupe
