// Uses the owners as CAF actors: an app's actor creates a session and takes
// events, and an actor of the program counts in it.
//
// Link `troupe::actors` for this. The headers of `troupe::troupe` alone include
// no CAF.

#include "troupe/runtime/actors.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <cstdlib>
#include <iostream>

namespace {

using troupe::session_key;

// Sends ten events, each of which adds one, and ends when all are stored.
caf::behavior counter(caf::event_based_actor* self,
                      const troupe::actors::app_handle& app,
                      const session_key& key) {
  auto left = std::make_shared<int>(10);
  for (int count = *left; count > 0; --count) {
    auto said = std::make_shared<troupe::event>(troupe::text("one more"));
    said->author = "counter";
    said->actions.state_delta
      .record("app:count", troupe::operation_kind::add, troupe::json(1))
      .value();
    self
      ->request(app,
                caf::infinite,
                troupe::actors::append_atom::value,
                key,
                troupe::event_ptr(std::move(said)))
      .then(
        [self, left](const troupe::event_ptr&) {
          if (--*left == 0)
            self->quit();
        },
        [self](const caf::error& failure) {
          std::cerr << to_string(troupe::to_error(failure)) << '\n';
          self->quit(failure);
        });
  }
  return {[](caf::unit_t) {}};
}

int run() {
  caf::actor_system_config config;
  troupe::use_fair_scheduler(config, 2);
  caf::actor_system system(config);
  auto runtime = troupe::open_runtime(system).value();
  const session_key key{"press", "ann", "counting"};
  {
    const auto app = troupe::app_actor_of(runtime, key.app).value();
    caf::scoped_actor self(system);
    self
      ->request(app,
                caf::infinite,
                troupe::actors::create_atom::value,
                key,
                troupe::json::object())
      .receive(
        [](const troupe::actors::session_ptr&) {},
        [](const caf::error& failure) { throw troupe::to_error(failure); });
    const auto first = self->spawn<caf::monitored>(counter, app, key);
    const auto second = self->spawn<caf::monitored>(counter, app, key);
    for (int ended = 0; ended < 2; ++ended)
      self->receive([](const caf::down_msg&) {});
  }
  const auto count
    = runtime.sessions().get(key).value().state().get<int>("app:count");
  std::cout << "two actors counted to " << count << '\n';
  return count == 20 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int main() {
  try {
    return run();
  } catch (const troupe::error& failure) {
    std::cerr << "error: " << to_string(failure) << '\n';
    return EXIT_FAILURE;
  }
}
