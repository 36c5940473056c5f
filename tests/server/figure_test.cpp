// Numbers about the server.

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(figures)

BOOST_AUTO_TEST_CASE(commits_and_requests_are_counted) {
  const auto commits = std::make_shared<commit_counts>();
  runtime_options counted;
  counted.on_commit = [commits](std::size_t changes) { commits->add(changes); };
  server_options options;
  options.commits = commits;
  server_fixture on(runtime::open(std::move(counted)).value(), {}, options);
  const auto before = on.client.get("/figures").data();
  on.create();
  const auto after = on.client.get("/figures").data();
  BOOST_TEST(before["store"] == json({{"commits", 0}, {"changes", 0}}));
  BOOST_TEST(after["store"] == json({{"commits", 1}, {"changes", 1}}));
  BOOST_TEST(after["requests"] == before["requests"].get<int>() + 2);
  BOOST_TEST(after["connections"] == 1);
}

BOOST_AUTO_TEST_CASE(a_run_that_cannot_start_counts_as_failed) {
  server_fixture on({{"press", asks("root", std::make_shared<held_model>())}});
  on.client.post("/run",
                 {{"appName", "press"},
                  {"userId", "ann"},
                  {"sessionId", "none"},
                  {"newMessage", {{"parts", {{{"text", "Hi"}}}}}}});
  const auto told = on.client.get("/figures").data();
  BOOST_TEST(told["runs"]
             == json({{"active", 0}, {"started", 1}, {"failed", 1}}));
  BOOST_TEST(!told.contains("store"));
}

BOOST_AUTO_TEST_CASE(metrics_have_the_form_of_prometheus) {
  server_fixture on({{"press", asks("root", std::make_shared<held_model>())}});
  on.create();
  const auto answer = on.client.get("/metrics");
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.header("content-type")
             == "text/plain; version=0.0.4; charset=utf-8");
  BOOST_TEST(answer.body.find("# TYPE troupe_http_requests_total counter\n"
                              "troupe_http_requests_total 2\n")
             != std::string::npos);
  BOOST_TEST(answer.body.find("# TYPE troupe_runs_active gauge\n"
                              "troupe_runs_active 0\n")
             != std::string::npos);
  BOOST_TEST(answer.body.find("troupe_store_commits_total")
             == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_server_is_ready_when_its_store_answers) {
  server_fixture on({{"press", asks("root", std::make_shared<held_model>())}});
  BOOST_TEST(on.client.get("/ready").data() == json({{"status", "ready"}}));
}

BOOST_AUTO_TEST_SUITE_END()
