// Boost.Asio, for the few sources that use it.
//
// With g++ 12, headers of Boost.Asio 1.74 use `std::exchange` without its
// header, so <utility> stands before them.

#pragma once

#include <utility>

// Not sorted into the other headers: see above.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

namespace troupe::serving {

namespace net = boost::asio;
using tcp = net::ip::tcp;

} // namespace troupe::serving
