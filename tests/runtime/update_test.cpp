// Updates: changes of a key by a function, which lose nothing.

#include "troupe/runtime/runtime.hpp"

#include "../stores/temporary_folder.hpp"
#include "warned_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(updates_of_keys, *boost::unit_test::timeout(240))

// -- update of a context ----

namespace {

body updates(const std::string& key) {
  return [key](invocation_context& context) -> agent_run {
    co_await context.update(key, [](std::optional<json> now) {
      return now ? now->get<int>() + 1 : 1;
    });
  };
}

} // namespace

BOOST_DATA_TEST_CASE(updates_all_count,
                     data::make({"n", "user:n", "app:n"})
                       * data::make({false, true}),
                     key,
                     stored) {
  const temporary_folder folder;
  runtime_options options;
  if (stored)
    options.store = "sqlite:" + (folder.path() / "s.db").string();
  warned_fixture on(std::make_shared<std::vector<std::string>>(), options);
  BOOST_TEST(on.lost_in(side_by_side(updates(key))) == 0U);
  BOOST_TEST(value_in(on, key) == lanes);
  BOOST_TEST(on.warnings->empty());
}

BOOST_AUTO_TEST_CASE(updates_of_temp_keys_all_count) {
  warned_fixture on;
  const auto root
    = sequential("s", {side_by_side(updates("temp:n")), tells("t", "temp:n")});
  BOOST_TEST(on.perform(root) == "t=64 | ok");
}

BOOST_AUTO_TEST_CASE(an_update_keeps_what_was_recorded) {
  warned_fixture on;
  const auto root = custom("a", [](invocation_context& context) -> agent_run {
    context.state().set("other", 1);
    const auto now = co_await context.update(
      "n", [](std::optional<json>) { return json("new"); });
    co_await context.emit(text("{}", now.get<std::string>()));
    // A plain write of a value that the step knows.
    context.state().set("n", "newer");
    co_await context.update("gone", [](std::optional<json>) { return json(); });
  });
  BOOST_TEST(on.perform(root) == "a= a=new a= a= | ok");
  BOOST_TEST(on.events(on.key)[1]->actions.state_delta.to_json()
             == json({{"n", "new"}}));
  BOOST_TEST(on.state_now() == json({{"n", "newer"}, {"other", 1}}));
  BOOST_TEST(on.warnings->empty());
}

BOOST_AUTO_TEST_CASE(an_update_that_always_conflicts_ends) {
  warned_fixture on;
  int calls = 0;
  const auto root = custom("a", [&](invocation_context& context) -> agent_run {
    co_await context.update("n", [&](std::optional<json>) {
      // Sent before the event of the update.
      on.sessions().state(on.key).set("n", ++calls).then({});
      return json("mine");
    });
  });
  BOOST_TEST(on.perform(root, {.update_retries_max = 3}) == "| conflict");
  BOOST_TEST(calls == 4);
  BOOST_TEST(value_in(on, "n") == 4);
}

BOOST_AUTO_TEST_CASE(an_update_whose_function_throws_writes_nothing) {
  warned_fixture on;
  bool is_passed_on = false;
  const auto root = custom("a", [&](invocation_context& context) -> agent_run {
    try {
      co_await context.update(
        "n", [](std::optional<json>) -> json { throw std::logic_error("no"); });
    } catch (const std::logic_error&) {
      is_passed_on = true;
    }
  });
  BOOST_TEST(on.perform(root) == "| ok");
  BOOST_TEST(is_passed_on);
  BOOST_TEST(on.events(on.key).size() == 1U);
}

// -- update of a handle ----

namespace {

json next_of(const std::optional<json>& now) {
  return now ? now->get<int>() + 1 : 1;
}

} // namespace

BOOST_DATA_TEST_CASE(updates_of_handles_all_count,
                     data::make({false, true}),
                     stored) {
  const temporary_folder folder;
  runtime_options options;
  if (stored)
    options.store = "sqlite:" + (folder.path() / "s.db").string();
  runtime_fixture on(options);
  const auto key = on.open();
  const auto state = on.sessions().state(key);
  const auto app = on.sessions().state_of_app("press");
  answers<event_ptr> changed;
  answers<shared_write> written;
  on_threads(4, [&](std::size_t) {
    for (int count = 0; count < 8; ++count) {
      state.update("n", next_of).value();
      app.update("app:n", next_of).value();
    }
  });
  for (int count = 0; count < 8; ++count) {
    state.update("n", next_of).then(changed.next());
    app.update("app:n", next_of).then(written.next());
  }
  for (const auto& each : changed.await())
    BOOST_TEST(code_of(each) == "ok");
  for (const auto& each : written.await())
    BOOST_TEST(code_of(each) == "ok");
  BOOST_TEST(state.get<int>("n").value() == 40);
  BOOST_TEST(app.get<int>("app:n").value() == 40);
  BOOST_TEST(app.update("app:n", [](auto&&...) { return json(); })
               .value()
               .value->is_null());
}

BOOST_AUTO_TEST_CASE(a_handle_gives_up_and_passes_failures_on) {
  runtime_fixture on;
  const auto key = on.open();
  const auto state = on.sessions().state(key);
  int calls = 0;
  const auto interrupted = [&](std::optional<json>) {
    on.append(key, {{"n", ++calls}});
    return json("mine");
  };
  BOOST_TEST(code_of(state.update("n", interrupted, 2).get()) == "conflict");
  BOOST_TEST(calls == 3);
  const auto broken
    = [](std::optional<json>) -> json { throw std::runtime_error("no"); };
  const auto failed = state.update("n", broken).get();
  BOOST_TEST(code_of(failed) == "callback_failed");
  BOOST_TEST(reason_of(failed) == "the update of 'n': no");
  const auto refused
    = [](std::optional<json>) -> json { throw error(errc::not_found, "none"); };
  BOOST_TEST(code_of(state.update("n", refused).get()) == "not_found");
  BOOST_TEST(code_of(state.update("temp:n", next_of).get())
             == "invalid_argument");
  answers<event_ptr> later;
  state.update("n", broken).then(later.next());
  BOOST_TEST(code_of(later.await().at(0)) == "callback_failed");
  BOOST_TEST(on.state(key)["n"] == 3);
}

BOOST_AUTO_TEST_CASE(a_coroutine_awaits_an_update) {
  agent_fixture on;
  const auto counts = tool_of(
    "count", [&](const json&, tool_context& context) -> task<json> {
      auto done
        = co_await on.sessions().state(context.session()).update("n", next_of);
      done.value();
      co_return json("done");
    });
  BOOST_TEST(
    on.perform(asks(
      "a", scripted({{"a", {calling("count"), {.text = "ok"}}}}), {counts}))
    == "a= a= a=ok | ok");
  BOOST_TEST(value_in(on, "n") == 1);
}

BOOST_AUTO_TEST_SUITE_END()
