// Runs whose processes have ended, which a server recovers.

#include "troupe/stores/shared/memory_store.hpp"

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(server_recoveries)

namespace {

troupe::runtime on_place(const std::shared_ptr<memory_data>& place) {
  runtime_options chosen;
  chosen.store = std::shared_ptr<store>(make_memory_store(place));
  return troupe::runtime::open(std::move(chosen)).value();
}

agent saying(const std::string& name, const std::string& words) {
  return custom(name, [words](invocation_context& context) -> agent_run {
    content said("model", {part(words)});
    co_await context.emit(std::move(said));
  });
}

// Leaves an open run of an agent of this name, whose process ends in the
// middle.
session_key leave_run(const std::shared_ptr<memory_data>& place,
                      const std::string& name) {
  auto ended = on_place(place);
  const auto key
    = ended.sessions().create({"press", "ann", name}).value().key();
  const auto begun = std::make_shared<std::promise<void>>();
  const auto stuck
    = custom(name, [begun](invocation_context& context) -> agent_run {
        begun->set_value();
        co_await context.sleep(std::chrono::hours(1));
      });
  ended.run(stuck, key, "go").detach();
  begun->get_future().wait();
  return key;
}

std::string last_text(troupe::runtime& on, const session_key& key) {
  return on.sessions().get(key).value().events().back()->text();
}

} // namespace

// A run of another agent belongs to another program. It is the older one, so
// the server has seen it before the other.
BOOST_AUTO_TEST_CASE(open_runs_of_its_apps_are_recovered) {
  const auto place = make_memory_data();
  const auto others = leave_run(place, "other");
  const auto own = leave_run(place, "root");
  std::promise<std::string> told;
  server_options options;
  options.recovers_runs = true;
  options.on_recovery
    = [&told](const unfinished_run& left, const result<void>& ended) {
        told.set_value(left.agent + " "
                       + (ended ? "ok" : to_string(ended.error())));
      };
  server_fixture on(
    on_place(place), {{"press", saying("root", "back")}}, std::move(options));
  BOOST_TEST(told.get_future().get() == "root ok");
  BOOST_TEST(last_text(on.runtime, own) == "back");
  BOOST_TEST(last_text(on.runtime, others) == "go");
  const auto left = on.runtime.unfinished("press").value();
  BOOST_TEST_REQUIRE(left.size() == 1U);
  BOOST_TEST(left.front().agent == "other");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
