// Converts events between the wire form and the form in which ADK stores them.
//
// ADK stores the names of its fields in snake_case, at every depth. Names that
// users choose (arguments, results, state keys, metadata) are no names of
// fields, and stay as they are.

#pragma once

#include "troupe/core/event.hpp"

namespace troupe::cli {

/// Returns the wire form, in camelCase. `stored` is an object.
json to_wire_form(const json& stored);

/// Returns the stored form. Actions that ADK does not know are left out: it
/// refuses to read a session that has one.
json to_stored_form(const event& said);

} // namespace troupe::cli
