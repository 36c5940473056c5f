// The answer of a call that was not asked for.
// first error: this call is made when its answer is asked for: .value\(\) waits

#include "troupe/runtime/runtime.hpp"

auto use(troupe::runtime& runtime, const troupe::session_key& key) {
  return runtime.sessions().get(key)->revision();
}
