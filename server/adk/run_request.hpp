// The body of `/run` and `/run_sse`, and the span in their headers.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/key.hpp"
#include "troupe/models/trace_context.hpp"
#include "troupe/server/adk/served.hpp"

#include <optional>
#include <string>
#include <variant>

namespace troupe::serving {

struct run_request {
  session_key key;
  content message;
  /// Changes of state that come with the message.
  json state_delta = json::object();
  /// True if the client wants the pieces of a text as they come.
  bool streams = false;
  /// True if the message answers a call, by the event that holds the call.
  bool names_call = false;
  /// True if the run is cancelled when its client leaves.
  bool ends_with_client = false;
  /// The span of the client; empty if the request names none.
  trace_context trace;
};

/// Reads and checks a request. Returns the answer to a bad one. As W3C says, an
/// invalid `traceparent` is ignored with its `tracestate`, and so is an invalid
/// `tracestate`.
std::variant<run_request, response>
read_run_request(const served& on, const caller& who, const request& asked);

} // namespace troupe::serving
