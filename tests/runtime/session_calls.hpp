// All calls that take the key of a session.

#pragma once

#include "runtime_fixture.hpp"

#include <string>
#include <vector>

namespace troupe::testing {

/// Returns the codes of all calls with one key.
inline std::vector<std::string> codes_of_all_calls(runtime_fixture& on,
                                                   const session_key& key) {
  auto& sessions = on.sessions();
  return {
    code_of(sessions.get(key).get()),
    code_of(sessions.append_event(key, change({{"k", 1}})).get()),
    code_of(sessions.state(key).snapshot().get()),
    code_of(sessions.state(key).get("k").get()),
    code_of(sessions.state(key).set("k", 1).get()),
    code_of(sessions.state(key).erase("k").get()),
    code_of(on.runtime
              .run(custom("nobody",
                          [](invocation_context&) -> agent_run { co_return; }),
                   key,
                   "hi")
              .wait()
              .get())};
}

} // namespace troupe::testing
