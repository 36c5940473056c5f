// Four prefixes, four owners: shows the state that two sessions of two users
// share, and the state that they do not share.

#include "troupe/runtime/runtime.hpp"

#include <exception>
#include <iostream>

namespace {

troupe::agent_run remember(troupe::invocation_context& ctx) {
  ctx.state().set("temp:step", 1);         // Dropped after the invocation.
  ctx.state().set("topic", "owls");        // For this session.
  ctx.state().set("user:language", "en");  // For all sessions of this user.
  ctx.state().add("app:conversations", 1); // For all users of the app.
  co_await ctx.emit(troupe::text("noted in step {}", //
                                 ctx.state().get<int>("temp:step")));
}

} // namespace

int main() {
  try {
    auto runtime = troupe::runtime::open().value();
    auto& sessions = runtime.sessions();
    const auto agent = troupe::custom("memory", remember);

    const auto ann = sessions.create({"demo", "ann"}).value();
    const auto ben = sessions.create({"demo", "ben"}).value();
    for (const auto& key : {ann.key(), ben.key()})
      for (const auto& event : runtime.run(agent, key, "Remember!"))
        std::cout << event->author << ": " << event->text() << '\n';
    const auto second = sessions.create({"demo", "ann"}).value();

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
