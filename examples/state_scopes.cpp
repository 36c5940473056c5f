// Four prefixes, four owners: what two sessions of two users share, and what
// they do not.

#include "troupe/runtime/runtime.hpp"

#include <exception>
#include <iostream>

namespace {

troupe::agent_run remember(troupe::invocation_context& ctx) {
  ctx.state().set("temp:step", 1);         // Gone with the invocation.
  ctx.state().set("topic", "owls");        // Of this session.
  ctx.state().set("user:language", "en");  // Of all sessions of this user.
  ctx.state().add("app:conversations", 1); // Of everybody.
  co_await ctx.emit(troupe::text("noted in step {}", //
                                 ctx.state().get<int>("temp:step")));
}

} // namespace

int main() {
  try {
    auto runtime = troupe::runtime::open().value();
    auto& sessions = runtime.sessions();
    const auto agent = troupe::custom("memory", remember);

    const auto ann = sessions.create({.app = "demo", .user = "ann"}).value();
    const auto ben = sessions.create({.app = "demo", .user = "ben"}).value();
    for (const auto& key : {ann.key(), ben.key()})
      for (const auto& event : runtime.run(agent, key, "Remember!"))
        std::cout << event.author << ": " << event.text() << '\n';
    const auto second = sessions.create({.app = "demo", .user = "ann"}).value();

    const auto state = second.state().all();
    std::cout << "Ann's second session sees " << state << '\n';
    return state
               == troupe::json{{"user:language", "en"},
                               {"app:conversations", 2}}
             ? 0
             : 1;
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 1;
  }
}
