// Eight invocations at the same time, each adds one to the same counter: it
// ends at eight.
//
// Nobody reads, adds and writes back: the event says "add 1", and the one owner
// of the key evaluates it. Where every invocation works on a copy of the state
// instead, such a counter ends at one.

#include "troupe/runtime/runtime.hpp"

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

troupe::agent_run count(troupe::invocation_context& ctx) {
  ctx.state().add("counter", 1);
  // All eight have recorded their addition before the first of them commits it.
  co_await ctx.sleep(std::chrono::milliseconds(50));
  co_await ctx.emit(troupe::text("counted"));
}

} // namespace

int main() {
  try {
    auto runtime = troupe::runtime::open().value();
    const auto session
      = runtime.sessions().create({.app = "demo", .user = "ann"}).value();
    const auto agent = troupe::custom("counter", count);

    std::vector<troupe::run> runs;
    runs.reserve(8);
    for (int index = 0; index < 8; ++index)
      runs.push_back(runtime.run(agent,
                                 session.key(),
                                 "Count!",
                                 {.policy = troupe::run_policy::interleave}));
    for (auto& run : runs)
      run.wait().value();

    const auto fetched = runtime.sessions().get(session.key()).value();
    const auto counter = fetched.state().get<int>("counter");
    std::cout << "eight invocations, counter: " << counter << '\n';
    return counter == 8 ? 0 : 1;
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 1;
  }
}
