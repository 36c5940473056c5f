// The files of the page.

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(page)

namespace {

server_options with_tokens() {
  server_options options;
  options.tokens = "ann-0123456789abcdef ann user\n";
  return options;
}

} // namespace

BOOST_AUTO_TEST_CASE(its_files_are_served_with_their_types) {
  server_fixture on;
  BOOST_TEST(on.client.get("/").header("content-type")
             == "text/html; charset=utf-8");
  BOOST_TEST(on.client.get("/page.css").header("content-type")
             == "text/css; charset=utf-8");
  for (const auto* path : {"/page.js", "/charts.js"})
    BOOST_TEST(on.client.get(path).header("content-type")
               == "text/javascript; charset=utf-8");
}

BOOST_AUTO_TEST_CASE(no_file_may_run_or_load_anything_else) {
  server_fixture on;
  for (const auto* path : {"/", "/page.css", "/page.js", "/charts.js"}) {
    const auto answer = on.client.get(path);
    BOOST_TEST(answer.header("content-security-policy")
                 .starts_with("default-src 'none'; script-src 'self'; "
                              "style-src 'self'; connect-src 'self'; "
                              "img-src 'self' data:;"));
    BOOST_TEST(answer.header("x-content-type-options") == "nosniff");
  }
}

BOOST_AUTO_TEST_CASE(the_page_needs_no_token_and_its_requests_do) {
  server_fixture on({}, with_tokens());
  for (const auto* path : {"/", "/?x", "/page.css", "/page.js", "/charts.js"})
    BOOST_TEST(on.client.get(path).status == 200, path);
  for (const auto* path : {"/list-apps", "//", "/page.css/", "/openapi.json"})
    BOOST_TEST(on.client.get(path).status == 401, path);
  BOOST_TEST(on.client.post("/", json::object()).status == 401);
}

BOOST_AUTO_TEST_SUITE_END()
