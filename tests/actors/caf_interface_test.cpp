// The interface for CAF users: requests to the owners, failures that keep their
// code, and an answer to every request, also at shutdown.

#include "troupe/actors/engine/caf_error.hpp"
#include "troupe/actors/engine/scheduler.hpp"
#include "troupe/runtime/actors.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <atomic>
#include <memory>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(caf_interface, *boost::unit_test::timeout(100))

namespace {

event_ptr change(json state_delta, const std::string& id = {}) {
  auto said = std::make_shared<event>();
  said->id = id;
  said->author = "user";
  said->actions.state_delta = delta::from_json(state_delta).value();
  return said;
}

// A runtime on an actor system of the test, and an actor that sends requests.
class visitor {
public:
  visitor() : config_(make()), system(*config_) {
    runtime.emplace(open_runtime(system).value());
    self.emplace(system);
  }

  ~visitor() {
    self.reset();
    runtime.reset();
  }

  app_handle app() { return app_actor_of(*runtime, "press").value(); }

  session_handle session() { return session_actor_of(*runtime, key).value(); }

  /// Returns the code of the answer to a request.
  template <class Answer, class Handle, class... Words>
  std::string ask(const Handle& whom, const Words&... words) {
    std::string code = "nothing";
    (*self)
      ->request(whom, caf::infinite, words...)
      .receive([&](const Answer&) { code = "ok"; },
               [&](const caf::error& failure) {
                 code = to_string(to_error(failure).code());
                 reason = to_error(failure).message();
               });
    return code;
  }

  std::string create(json state = json::object()) {
    return ask<session_ptr>(app(), create_atom::value, key, state);
  }

private:
  static std::unique_ptr<caf::actor_system_config> make() {
    auto config = std::make_unique<caf::actor_system_config>();
    use_fair_scheduler(*config, 2);
    return config;
  }

  std::unique_ptr<caf::actor_system_config> config_;

public:
  const session_key key{"press", "ann", "s"};
  std::string reason;
  caf::actor_system system;
  std::optional<troupe::runtime> runtime;
  std::optional<caf::scoped_actor> self;
};

constexpr int requests = 40;

// Appends, removes the session in between, and ends when every request was
// answered.
template <class Handle>
void asking(caf::event_based_actor* self,
            const app_handle& app,
            const Handle& whom,
            const session_key& key,
            std::atomic<int>* answered) {
  const auto done = [answered] { ++*answered; };
  const auto stored = [done](const event_ptr&) { done(); };
  const auto removed = [done](bool) { done(); };
  const auto refused = [done](const caf::error&) { done(); };
  for (int count = 0; count < requests; ++count) {
    if constexpr (std::is_same_v<Handle, session_handle>)
      self->request(whom, caf::infinite, append_atom::value, change({{"k", 1}}))
        .then(stored, refused);
    else
      self
        ->request(
          whom, caf::infinite, append_atom::value, key, change({{"k", 1}}))
        .then(stored, refused);
    if (count == requests / 2)
      self->request(app, caf::infinite, remove_atom::value, key)
        .then(removed, refused);
  }
}

// Spawns the actor above with the handle of the session or of the app, and
// monitors it.
void start_asking(visitor& on, bool by_session, std::atomic<int>& answered) {
  const auto app = on.app();
  if (by_session)
    (*on.self)->spawn<caf::monitored>(
      asking<session_handle>, app, on.session(), on.key, &answered);
  else
    (*on.self)->spawn<caf::monitored>(
      asking<app_handle>, app, app, on.key, &answered);
}

} // namespace

BOOST_AUTO_TEST_CASE(an_app_creates_reads_appends_and_removes) {
  visitor on;
  const auto app = on.app();
  BOOST_TEST(on.create({{"k", 1}, {"app:k", 2}}) == "ok");
  BOOST_TEST(
    on.ask<event_ptr>(app, append_atom::value, on.key, change({{"k", 3}}))
    == "ok");
  BOOST_TEST(on.ask<session_ptr>(app, get_atom::value, on.key) == "ok");
  BOOST_TEST(on.runtime->sessions().get(on.key).value().state().all()
             == json({{"k", 3}, {"app:k", 2}}));
  BOOST_TEST(on.ask<bool>(app, remove_atom::value, on.key) == "ok");
  BOOST_TEST(on.ask<session_ptr>(app, get_atom::value, on.key) == "not_found");
}

BOOST_AUTO_TEST_CASE(a_session_takes_events_and_shows_itself) {
  visitor on;
  on.create();
  const auto session = on.session();
  BOOST_TEST(on.ask<event_ptr>(session, append_atom::value, change({{"k", 1}}))
             == "ok");
  int seen = 0;
  (*on.self)
    ->request(session, caf::infinite, get_atom::value)
    .receive([&](const session_ptr& now) { seen = now->state().get<int>("k"); },
             [](const caf::error&) {});
  BOOST_TEST(seen == 1);
}

BOOST_AUTO_TEST_CASE(failures_keep_their_code_and_reason) {
  visitor on;
  const auto app = on.app();
  BOOST_TEST(on.ask<session_ptr>(app, get_atom::value, on.key) == "not_found");
  BOOST_TEST(on.reason.find("press/ann/s") != std::string::npos);
  on.create({{"app:text", "t"}});
  BOOST_TEST(on.create() == "already_exists");
  const auto other = session_key{"other", "ann", "s"};
  BOOST_TEST(on.ask<session_ptr>(app, create_atom::value, other, json::object())
             == "invalid_argument");
  BOOST_TEST(
    on.ask<session_ptr>(app, create_atom::value, on.key, json({{"__x", 1}}))
    == "invalid_argument");
  auto adds = std::make_shared<event>();
  adds->actions.state_delta.record("app:text", operation_kind::add, json(1))
    .value();
  BOOST_TEST(on.ask<event_ptr>(app, append_atom::value, on.key, event_ptr(adds))
             == "type_error");
  BOOST_TEST(on.ask<event_ptr>(on.session(), append_atom::value, event_ptr())
             == "invalid_argument");
  BOOST_TEST(on.ask<event_ptr>(
               on.session(), append_atom::value, change({{"a", 1}}, "id"))
             == "ok");
  BOOST_TEST(on.ask<event_ptr>(
               on.session(), append_atom::value, change({{"a", 2}}, "id"))
             == "conflict");
}

BOOST_AUTO_TEST_CASE(an_app_touches_no_session_of_another_app) {
  visitor on;
  const auto app = on.app();
  on.create();
  auto& sessions = on.runtime->sessions();
  const auto other = sessions.create({"other", "ann", "s"}).value().key();
  const std::string refused = "invalid_argument";
  BOOST_TEST(on.ask<session_ptr>(app, get_atom::value, other) == refused);
  BOOST_TEST(
    on.ask<event_ptr>(app, append_atom::value, other, change({{"k", 1}}))
    == refused);
  BOOST_TEST(on.ask<bool>(app, remove_atom::value, other) == refused);
  BOOST_TEST(sessions.get(other).value().revision() == 0U);
  // Not the session of the same user and id in this app either.
  BOOST_TEST(sessions.get(on.key).value().revision() == 0U);
  const session_key here("", "ann", "s");
  BOOST_TEST(on.ask<session_ptr>(app, get_atom::value, here) == "ok");
  BOOST_TEST(on.ask<bool>(app, remove_atom::value, here) == "ok");
}

BOOST_AUTO_TEST_CASE(every_code_goes_through_caf_and_back) {
  for (unsigned code = 0; code <= static_cast<unsigned>(errc::internal);
       ++code) {
    const error failure(static_cast<errc>(code), "why " + std::to_string(code));
    BOOST_TEST((to_error(to_caf(failure)) == failure));
    BOOST_TEST(static_cast<bool>(to_caf(failure)));
  }
  BOOST_TEST((to_error(caf::make_error(caf::sec::request_timeout)).code()
              == errc::internal));
}

BOOST_AUTO_TEST_CASE(unknown_messages_are_refused_and_harm_nobody) {
  visitor on;
  on.create();
  const auto session = caf::actor_cast<caf::actor>(on.session());
  const auto app = caf::actor_cast<caf::actor>(on.app());
  for (const auto& whom : {session, app}) {
    BOOST_TEST(on.ask<int>(whom, std::string("hello")) == "internal");
    caf::anon_send(whom, 17);
  }
  BOOST_TEST(
    on.ask<event_ptr>(on.session(), append_atom::value, change({{"k", 1}}))
    == "ok");
}

BOOST_AUTO_TEST_CASE(handles_of_what_does_not_exist_are_refused) {
  visitor on;
  BOOST_TEST(code_of(session_actor_of(*on.runtime, on.key)) == "not_found");
  BOOST_TEST(code_of(session_actor_of(*on.runtime, {"", "ann", "s"}))
             == "invalid_argument");
  BOOST_TEST(code_of(app_actor_of(*on.runtime, " ")) == "invalid_argument");
  on.runtime->shut_down().value();
  BOOST_TEST(code_of(app_actor_of(*on.runtime, "press")) == "cancelled");
}

BOOST_AUTO_TEST_CASE(a_handle_kept_past_the_end_finds_the_actor_gone) {
  visitor on;
  on.create();
  const auto app = on.app();
  const auto session = on.session();
  on.runtime->shut_down().value();
  BOOST_TEST(on.ask<session_ptr>(app, get_atom::value, on.key) == "cancelled");
  BOOST_TEST(on.ask<session_ptr>(session, get_atom::value) == "cancelled");
}

BOOST_AUTO_TEST_CASE(nobody_outside_can_end_an_owner) {
  visitor on;
  on.create();
  for (const auto& whom : {caf::actor_cast<caf::actor>(on.session()),
                           caf::actor_cast<caf::actor>(on.app())}) {
    caf::anon_send_exit(whom, caf::exit_reason::kill);
    caf::anon_send_exit(whom, caf::exit_reason::user_shutdown);
    caf::anon_send(whom, caf::make_error(caf::sec::runtime_error));
    (*on.self)->link_to(whom);
    (*on.self)->unlink_from(whom);
    auto ending = on.system.spawn(
      [](caf::event_based_actor* self, const caf::actor& linked) {
        self->link_to(linked);
        self->quit(caf::exit_reason::user_shutdown);
      },
      whom);
    (*on.self)->wait_for(ending);
  }
  BOOST_TEST(
    on.ask<event_ptr>(on.session(), append_atom::value, change({{"k", 1}}))
    == "ok");
  BOOST_TEST(on.ask<session_ptr>(on.app(), get_atom::value, on.key) == "ok");
  BOOST_TEST(on.ask<bool>(on.app(), remove_atom::value, on.key) == "ok");
  BOOST_TEST(on.create() == "ok");
}

BOOST_DATA_TEST_CASE(every_request_around_a_removal_is_answered,
                     data::make({false, true}),
                     by_session) {
  visitor on;
  for (int round = 0; round < 150; ++round) {
    on.create();
    std::atomic<int> answered = 0;
    start_asking(on, by_session, answered);
    (*on.self)->receive([](const caf::down_msg&) {});
    BOOST_TEST(answered == requests + 1);
  }
}

BOOST_DATA_TEST_CASE(every_request_around_the_end_is_answered,
                     data::make({false, true}),
                     by_session) {
  for (int round = 0; round < 150; ++round) {
    visitor on;
    on.create();
    std::atomic<int> answered = 0;
    start_asking(on, by_session, answered);
    on.runtime->shut_down().value();
    bool ended = false;
    (*on.self)->receive([&](const caf::down_msg&) { ended = true; },
                        caf::after(std::chrono::seconds(20)) >> [] {});
    BOOST_REQUIRE(ended);
    BOOST_TEST(answered == requests + 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
