// Lists of sessions: their order, their pages, and the state that they show.

#include "troupe/runtime/runtime.hpp"

#include "runtime_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(session_lists, *boost::unit_test::timeout(120))

namespace {

std::vector<std::string> ids_of(const session_page& page) {
  std::vector<std::string> ids;
  for (const auto& row : page.sessions)
    ids.push_back(row.key().id);
  return ids;
}

} // namespace

BOOST_AUTO_TEST_CASE(list_gives_newest_first_with_merged_state_and_no_events) {
  const auto time = std::make_shared<simulated_environment>(1);
  runtime_fixture on(runtime_fixture::in(time));
  for (const std::string id : {"a", "b", "c"}) {
    on.open(id, {{"own", id}, {"app:n", id}});
    time->advance(std::chrono::seconds(1));
  }
  on.append({"press", "ann", "a"}, {{"user:k", 1}});
  const auto page = on.sessions().list({"press"}).value();
  BOOST_TEST(ids_of(page) == std::vector<std::string>({"a", "c", "b"}),
             boost::test_tools::per_element());
  for (const auto& row : page.sessions) {
    BOOST_TEST(row.events().empty());
    BOOST_TEST(row.state().all()
               == json({{"own", row.key().id}, {"app:n", "c"}, {"user:k", 1}}));
  }
  BOOST_TEST(page.next_cursor.empty());
  for (const auto& user :
       {std::optional<std::string>(), std::optional<std::string>("ann")}) {
    const auto first = on.sessions().list({"press", user, 1}).value();
    BOOST_TEST(ids_of(first) == std::vector<std::string>({"a"}),
               boost::test_tools::per_element());
  }
}

BOOST_DATA_TEST_CASE(pages_show_every_session_once,
                     data::make({1U, 2U, 7U, 56U, 57U, 100U}),
                     limit) {
  runtime_fixture on(
    runtime_fixture::in(std::make_shared<simulated_environment>(2)));
  for (int count = 0; count < 57; ++count) // Many at the same moment.
    on.open("s" + std::to_string(count),
            json::object(),
            "u" + std::to_string(count % 5));
  std::set<session_key> seen;
  std::size_t rows = 0;
  list_request request{"press", {}, limit};
  do {
    const auto page = on.sessions().list(request).value();
    BOOST_TEST(page.sessions.size() <= limit);
    for (const auto& row : page.sessions)
      seen.insert(row.key());
    rows += page.sessions.size();
    request.cursor = page.next_cursor;
  } while (!request.cursor.empty());
  BOOST_TEST(seen.size() == 57U);
  BOOST_TEST(rows == 57U);
  BOOST_TEST(on.sessions().list({"press", "u0", 100}).value().sessions.size()
             == 12U);
}

BOOST_AUTO_TEST_CASE(foreign_cursors_and_empty_pages_are_refused) {
  runtime_fixture on;
  on.open();
  for (const std::string bad : {"x",
                                "{}",
                                "[]",
                                "[1,2,3]",
                                "[1.5,\"a\",\"b\"]",
                                "[1,\"a\",\"b\",4]",
                                "\xff"})
    BOOST_TEST(code_of(on.sessions().list({"press", {}, 100, bad}).get())
               == "invalid_argument");
  BOOST_TEST(code_of(on.sessions().list({"press", {}, 0}).get())
             == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
