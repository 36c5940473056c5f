// A long session over a staged store, and agents that tell which of its events
// they see.

#pragma once

#include "counting.hpp"
#include "pause_fixture.hpp"
#include "staged_store.hpp"
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// The events that an agent sees at its start.
struct sight {
  std::size_t count = 0;
  std::uint64_t first = 0;
  std::uint64_t revision = 0;
  std::vector<std::string> texts;
};

inline sight look(const invocation_context& context) {
  sight seen{
    context.events().size(), context.first_revision(), context.revision(), {}};
  for (const auto& said : context.events())
    seen.texts.push_back(said->text());
  return seen;
}

inline agent looks(const std::string& name, history_extent reads, sight& seen) {
  return custom({.name = name,
                 .run = [&seen](invocation_context& context) -> agent_run {
                   seen = look(context);
                   co_await context.emit(text("done"));
                 },
                 .reads = reads});
}

/// A model that keeps the texts of its newest request, and answers "ok".
struct witness {
  std::shared_ptr<std::vector<std::string>> heard
    = std::make_shared<std::vector<std::string>>();

  model_ptr model() const {
    return std::make_shared<made_model>(
      [kept = heard](const model_request& request, const model_reply& reply) {
        kept->clear();
        for (const auto& each : request.contents)
          kept->push_back(each->text());
        reply(model_response(content("model", {part("ok")})));
      });
  }
};

inline event numbered(std::size_t number) {
  event said(text("{}", number));
  said.author = number % 2 == 0 ? "writer" : "user";
  said.content.role = number % 2 == 0 ? "model" : "user";
  said.id = "e" + std::to_string(number);
  return said;
}

/// A session of events "1", "2", …, by the user and a writer in turns.
struct long_session {
  explicit long_session(std::size_t events = 2'000) {
    runtime_fixture on(place.beside());
    on.open();
    add(on, 1, events);
  }

  static void add(runtime_fixture& on, std::size_t first, std::size_t last) {
    answers<event_ptr> appended;
    for (auto number = first; number <= last; ++number)
      on.sessions().append_event(here, numbered(number)).then(appended.next());
    for (const auto& each : appended.await())
      BOOST_TEST_REQUIRE(code_of(each) == "ok");
  }

  runtime_options options() const {
    auto few = place.options();
    few.events_kept = 4;
    return few;
  }

  std::size_t read() const { return place.script->events_read; }

  /// Another program removes the session and creates it again with so many
  /// events.
  static void make_anew(runtime_fixture& other, std::size_t events) {
    BOOST_TEST_REQUIRE(other.sessions().remove(here).get().has_value());
    other.open();
    add(other, 1, events);
  }

  const staged_place place;
};

inline std::string
run_on(runtime_fixture& on, const agent& root, content message) {
  return agent_fixture::show(on.runtime.run(root, here, std::move(message)));
}

inline std::string run_on(runtime_fixture& on, const agent& root) {
  return run_on(on, root, user_text("go"));
}

} // namespace troupe::testing
