// One connection: reads requests one after another, and writes their answers.

#pragma once

#include "troupe/server/http/io.hpp"
#include "troupe/server/http/io_threads.hpp"
#include "troupe/server/http/reply.hpp"
#include "troupe/server/http/request.hpp"
#include "troupe/server/server_options.hpp"

#include <functional>
#include <memory>

namespace boost::asio::ssl {
class context;
} // namespace boost::asio::ssl

namespace troupe::serving {

/// Answers a request, now or later. Called on a thread that reads and writes,
/// so it must not block.
using request_handler = std::function<void(request asked, reply to)>;

/// The parts that all connections of a server share.
struct connection_settings {
  std::shared_ptr<io_threads> threads;
  server_limits limits;
  request_handler handle;
};

/// Serves an accepted connection until its end.
void serve_plain(tcp::socket accepted,
                 std::shared_ptr<const connection_settings> settings);

/// The same with TLS. `keys` must outlive the connection.
void serve_encrypted(tcp::socket accepted,
                     net::ssl::context& keys,
                     std::shared_ptr<const connection_settings> settings);

} // namespace troupe::serving
