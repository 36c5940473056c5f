// One connection: reads requests one after another, and writes their answers.

#pragma once

#include "troupe/server/http/io.hpp"
#include "troupe/server/http/io_threads.hpp"
#include "troupe/server/http/reply.hpp"
#include "troupe/server/http/request.hpp"
#include "troupe/server/http/router.hpp"
#include "troupe/server/server_options.hpp"

#include <functional>
#include <memory>
#include <variant>

namespace boost::asio::ssl {
class context;
} // namespace boost::asio::ssl

namespace troupe::serving {

/// Decides on a request by its head, before a byte of its body is read. Returns
/// the answer to one that does not get in. Called on a thread that reads and
/// writes, so it must not block.
using head_check
  = std::function<std::variant<admission, response>(const request& head)>;

/// Answers a request that got in, now or later. Called on the same threads.
using request_handler
  = std::function<void(request asked, admission admitted, reply to)>;

/// The parts that all connections of a server share.
struct connection_settings {
  std::shared_ptr<io_threads> threads;
  server_limits limits;
  head_check admit;
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
