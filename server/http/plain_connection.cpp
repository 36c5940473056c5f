#include "troupe/server/http/any_connection.hpp"

namespace troupe::serving {

void serve_plain(tcp::socket accepted,
                 std::shared_ptr<const connection_settings> settings) {
  std::make_shared<any_connection<tcp::socket>>(std::move(accepted),
                                                std::move(settings))
    ->start();
}

} // namespace troupe::serving
