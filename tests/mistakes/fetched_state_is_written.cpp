// A write to a fetched session.
// first error: this state is a copy for reading: write with

#include "troupe/runtime/runtime.hpp"

void use(troupe::runtime& runtime, const troupe::session_key& key) {
  auto session = runtime.sessions().get(key).value();
  session.state().set("topic", "owls");
}
