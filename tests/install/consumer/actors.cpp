// The opt-in header for CAF users compiles and links from the installed
// package.

#include "troupe/runtime/actors.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

int main() {
  caf::actor_system_config config;
  const caf::actor_system system(config);
}
