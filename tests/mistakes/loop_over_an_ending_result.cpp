// A loop over a result that has ended when the loop begins.
// first error: this result ends with the statement: keep it in a variable

#include "troupe/runtime/runtime.hpp"

void use(troupe::runtime& runtime, const troupe::session_key& key) {
  for (const auto& said : runtime.sessions().get(key).get()->events())
    static_cast<void>(said->text());
}
