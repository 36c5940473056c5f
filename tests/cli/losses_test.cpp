// The line about the lost updates of a run.

#include "troupe/cli/talk/losses.hpp"

#include "troupe/runtime/runtime.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(losses_line)

BOOST_AUTO_TEST_CASE(counts_losses_and_names_each_key_once) {
  auto owners
    = runtime::open({.on_warning = [](const std::string&) {}}).value();
  const session_key key{"press", "ann", "s1"};
  const auto state = owners.sessions().state(key);
  owners.sessions().create(key).value();
  const std::vector<std::string> names{"user:n", "n", "n"};
  const auto root
    = custom("a", [state, &names](invocation_context& context) -> agent_run {
        for (const auto& name : names) {
          static_cast<void>(context.state().get(name, 0));
          auto other = state.add(name, 1);
          (co_await std::move(other)).value();
          context.state().set(name, 7);
          event said;
          co_await context.emit(std::move(said));
        }
      });
  auto run = owners.run(root, key, "go");
  run.wait().value();
  BOOST_TEST(cli::losses_of(run) == "lost updates: 3 (user:n, n)");

  auto quiet = owners.run(
    custom("b", [](invocation_context&) -> agent_run { co_return; }),
    key,
    "go");
  quiet.wait().value();
  BOOST_TEST(cli::losses_of(quiet).empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
