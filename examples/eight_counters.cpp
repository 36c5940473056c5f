// Eight concurrent invocations add one to the same counter, which ends at
// eight.
//
// No invocation reads, adds and writes back. Each event says "add 1", and the
// owner of the key evaluates it. If every invocation worked on a copy of the
// state, the counter would end at one.

#include "troupe/runtime/runtime.hpp"

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

troupe::agent_run count(troupe::invocation_context& ctx) {
  ctx.state().add("counter", 1);
  // Waits until all eight have recorded their addition, before the first
  // commit.
  co_await ctx.sleep(std::chrono::milliseconds(50));
  co_await ctx.emit(troupe::text("counted"));
}

} // namespace

int main() {
  try {
    auto runtime = troupe::runtime::open().value();
    const auto session = runtime.sessions().create({"demo", "ann"}).value();
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
