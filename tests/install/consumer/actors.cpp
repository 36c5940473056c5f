// The opt-in door of the installed package compiles and links, CAF included.

#include "troupe/runtime/actors.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

int main() {
  caf::actor_system_config config;
  const caf::actor_system system(config);
}
