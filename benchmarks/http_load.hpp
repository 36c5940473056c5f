// A client that sends requests over many connections, on the calling thread.

#pragma once

#include "measure.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// The end of a request's latency.
enum class latency_end : std::uint8_t {
  first_byte, ///< The first byte of the body has come.
  last_byte,
};

struct load_result {
  /// CPU time is that of this process.
  round_result round;
  /// Requests that were answered with another status than 200.
  std::size_t refused = 0;
};

/// Sends all requests to a server on loopback. Each connection stays open and
/// sends its next request when it has the whole answer to the former one. The
/// connections are made before the time starts.
load_result send_requests(std::uint16_t port,
                          std::size_t connections,
                          const std::vector<std::string>& requests,
                          latency_end until = latency_end::last_byte);

/// Returns the bytes of a request with a JSON body; without one if `body` is
/// empty.
std::string http_request(const std::string& method,
                         const std::string& path,
                         const std::string& body = {});

} // namespace bench
