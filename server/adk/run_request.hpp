// The body of `/run` and `/run_sse`.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/key.hpp"
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
};

/// Reads and checks a body. Returns the answer to a bad one.
std::variant<run_request, response>
read_run_request(const served& on, const caller& who, const std::string& text);

} // namespace troupe::serving
