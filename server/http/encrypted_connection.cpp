#include "troupe/server/http/any_connection.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

namespace troupe::serving {

void serve_encrypted(tcp::socket accepted,
                     net::ssl::context& keys,
                     std::shared_ptr<const connection_settings> settings) {
  using stream = net::ssl::stream<tcp::socket>;
  std::make_shared<any_connection<stream>>(stream(std::move(accepted), keys),
                                           std::move(settings))
    ->start();
}

} // namespace troupe::serving
