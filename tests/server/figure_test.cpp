// Numbers about the server.

#include "troupe/stores/shared/memory_store.hpp"

#include "../forwarding_store.hpp"
#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(figures)

namespace {

/// A store whose lists fail as long as a flag is set.
class failing_store final : public forwarding_store {
public:
  failing_store(std::unique_ptr<store> kept,
                std::shared_ptr<const std::atomic<bool>> fails)
    : forwarding_store(std::move(kept)),
      fails_(std::move(fails)) {}

  result<std::vector<session_row>> list(const row_query& query) override {
    if (*fails_)
      return error(errc::store_failed, "the disk is away");
    return forwarding_store::list(query);
  }

private:
  const std::shared_ptr<const std::atomic<bool>> fails_;
};

} // namespace

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

BOOST_AUTO_TEST_CASE(a_server_whose_store_fails_is_not_ready) {
  const auto fails = std::make_shared<std::atomic<bool>>(false);
  runtime_options chosen;
  chosen.store = std::shared_ptr<store>(std::make_shared<failing_store>(
    make_memory_store(make_memory_data()), fails));
  server_fixture on(runtime::open(std::move(chosen)).value(),
                    {{"press", asks("root", std::make_shared<held_model>())}});
  BOOST_TEST(on.client.get("/ready").status == 200);
  *fails = true;
  const auto refused = on.client.get("/ready");
  BOOST_TEST(refused.status == 503);
  BOOST_TEST(refused.body.find("the disk is away") != std::string::npos);
  // The process is alive, so it is not to be restarted.
  BOOST_TEST(on.client.get("/health").status == 200);
  *fails = false;
  BOOST_TEST(on.client.get("/ready").status == 200);
}

BOOST_AUTO_TEST_SUITE_END()
