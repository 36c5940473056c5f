// The description of the requests: it has the routes of the server, and no
// others.

#include "troupe/server/adk/served.hpp"
#include "troupe/server/page/page.hpp"

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(openapi)

namespace {

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char each) {
    return static_cast<char>(std::toupper(each));
  });
  return text;
}

std::set<std::string> described(const json& document) {
  std::set<std::string> found;
  for (const auto& [path, methods] : document["paths"].items())
    for (const auto& [method, request] : methods.items())
      if (method != "parameters")
        found.insert(upper(method) + " " + path);
  return found;
}

// All routes but the files of the page, which are for browsers.
std::set<std::string> routed(const serving::router& routes) {
  std::set<std::string> found;
  for (const auto& each : routes.routes())
    found.insert(each.method + " " + each.pattern);
  for (const auto& file : serving::page_files())
    found.erase("GET " + std::string(file.path));
  return found;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_document_describes_each_route) {
  server_fixture on;
  const auto answer = on.client.get("/openapi.json");
  BOOST_TEST(answer.status == 200);
  const std::shared_ptr<serving::served> parts(
    new serving::served{on.runtime, {}, {}, nullptr, {}, {}, {}});
  const auto document = answer.data();
  BOOST_TEST(document["openapi"] == "3.1.0");
  BOOST_TEST(described(document) == routed(serving::make_routes(parts)),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
