#include "stored_sessions.hpp"
#include <boost/test/unit_test.hpp>

#include <string>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(state_command)

namespace {

struct stored_state : stored_sessions {
  ended state(const words& options) const {
    return run_program(
      joined(joined({"state"}, options), {"--store", store()}));
  }

  // The JSON object that the command prints.
  json told(const words& options) const {
    return parse_json(state(options).output).value();
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_state_is_written_and_read, stored_state) {
  BOOST_TEST(told({"get", "--app", "press"})
             == json({{"revision", 0}, {"state", json::object()}}));
  BOOST_TEST(told({"set", "app:theme", "\"dark\"", "--app", "press"})
             == json({{"revision", 1}, {"value", "dark"}}));
  BOOST_TEST(told({"add", "app:n", "2", "--app", "press"})
             == json({{"revision", 2}, {"value", 2}}));
  BOOST_TEST(told({"erase", "app:theme", "--app", "press"})
             == json({{"revision", 3}, {"value", nullptr}}));
  BOOST_TEST(told({"get", "--app", "press"})
             == json({{"revision", 3}, {"state", {{"app:n", 2}}}}));
  BOOST_TEST(
    told({"set", "user:name", "\"Ann\"", "--app", "press", "--user", "ann"})
    == json({{"revision", 1}, {"value", "Ann"}}));
  BOOST_TEST(told({"get", "--app", "press", "--user", "ann"})
             == json({{"revision", 1}, {"state", {{"user:name", "Ann"}}}}));
  const auto session = show("create", s1);
  BOOST_TEST(session["state"] == json({{"app:n", 2}, {"user:name", "Ann"}}));
  const auto checked = run_program({"store", "check", "--store", store()});
  BOOST_TEST(checked.code == 0, checked.errors);
}

BOOST_FIXTURE_TEST_CASE(a_write_with_an_id_takes_effect_once, stored_state) {
  const words once{"add", "app:n", "1", "--app", "press", "--id", "w"};
  for (int count = 0; count < 2; ++count)
    BOOST_TEST(told(once) == json({{"revision", 1}, {"value", 1}}));
  const auto other
    = state({"add", "app:n", "2", "--app", "press", "--id", "w"});
  BOOST_TEST(other.code == 1);
  BOOST_TEST(other.errors.starts_with("error: conflict: "), other.errors);
  const auto late = state(
    {"set", "app:n", "5", "--app", "press", "--expected-revision", "0"});
  BOOST_TEST(late.errors.starts_with("error: conflict: "), late.errors);
  // The id is stored, and not shown.
  show("create", s1);
  const auto exported = run("export", {"--app", "press"});
  BOOST_TEST(!contains(exported.output, "__write"), exported.output);
  BOOST_TEST(contains(exported.output, R"("app:n":1)"), exported.output);
}

BOOST_FIXTURE_TEST_CASE(bad_writes_are_refused, stored_state) {
  BOOST_TEST(state({}).code == 2);
  BOOST_TEST(state({"set", "app:n", "--app", "press"}).code == 2);
  BOOST_TEST(state({"set", "app:n", "1"}).code == 2);
  const auto word = state({"set", "app:n", "dark", "--app", "press"});
  BOOST_TEST(word.code == 2);
  BOOST_TEST(contains(word.errors, "text needs quotes"), word.errors);
  for (const auto* bad : {"topic", "user:x", "temp:x", "app:user:x"}) {
    const auto refused = state({"set", bad, "1", "--app", "press"});
    BOOST_TEST(refused.code == 1);
    BOOST_TEST(refused.errors.starts_with("error: invalid_argument: "),
               refused.errors);
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
