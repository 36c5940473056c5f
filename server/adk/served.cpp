#include "troupe/server/adk/served.hpp"

namespace troupe::serving {

session_key key_in(const path_values& path) {
  return {path["app"], path["user"], path["session"]};
}

} // namespace troupe::serving
