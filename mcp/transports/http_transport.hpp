// A server behind an address: streamable HTTP.
//
// Each message is a POST; its answer is one message, or a stream of messages
// that ends with the answer. A stream that breaks off before is continued from
// its last event, if the server numbers them. Redirects are not followed.

#pragma once

#include "troupe/core/processes/io_thread.hpp"
#include "troupe/mcp/transports/transport.hpp"
#include "troupe/models/http_options.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::mcp {

using processes::io_thread;

struct http_place {
  std::string url;
  /// Sent with each request.
  http_headers headers;
  std::size_t message_bytes_max;
};

/// The address without its query, which may hold a key, for messages. Other
/// characters than printable ASCII become `_`.
std::string shown_url(std::string_view url);

/// Connects with the first message.
std::shared_ptr<transport> make_http_transport(
  std::shared_ptr<io_thread> thread, http_place place, transport_events events);

} // namespace troupe::mcp
