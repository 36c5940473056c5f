// The page of ADK: files of a folder, and nothing outside of it.

#include "../stores/temporary_folder.hpp"
#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(page_of_adk)

namespace {

struct fixture {
  fixture() : on({}, options()) {}

  server_options options() const {
    const auto ui = folder.path() / "ui";
    std::filesystem::create_directories(ui / "assets");
    std::ofstream(folder.path() / "secret.txt") << "secret";
    std::ofstream(ui / "index.html") << "<html>page</html>";
    std::ofstream(ui / "main.js") << "run()";
    std::filesystem::create_symlink("../secret.txt", ui / "link.txt");
    server_options made;
    made.ui_folder = ui.string();
    return made;
  }

  temporary_folder folder;
  server_fixture on;
};

} // namespace

BOOST_AUTO_TEST_CASE(the_page_and_its_files_are_served_with_their_types) {
  fixture of;
  auto& client = of.on.client;
  const auto moved = client.get("/");
  BOOST_TEST(moved.status == 307);
  BOOST_TEST(moved.header("location") == "/dev-ui/");
  const auto page = client.get("/dev-ui/?app=press");
  BOOST_TEST(page.body == "<html>page</html>");
  BOOST_TEST(page.header("content-type") == "text/html; charset=utf-8");
  BOOST_TEST(page.header("content-security-policy")
             == "frame-ancestors 'none'");
  BOOST_TEST(client.get("/dev-ui/main.js").header("content-type")
             == "text/javascript; charset=utf-8");
  BOOST_TEST(
    client.get("/dev-ui/assets/config/runtime-config.json").data()["backendUrl"]
    == "");
  BOOST_TEST(client.get("/config/telemetry").data()
             == json({{"telemetry", false}}));
  BOOST_TEST(client.get("/dev/apps/press/debug/trace/session/s1").data()
             == json::array());
}

BOOST_AUTO_TEST_CASE(a_trace_has_the_run_its_agents_and_the_steps_of_events) {
  fixture of;
  auto& client = of.on.client;
  of.on.create();
  client.post(one_path + "/events",
              {{"id", "e1"},
               {"author", "desk"},
               {"invocationId", "i1"},
               {"timestamp", 1'700'000'003},
               {"content", {{"parts", {{{"text", "Done."}}}}}},
               {"usageMetadata", {{"promptTokenCount", 7}}},
               {"customMetadata",
                {{"troupe",
                  {{"steps",
                    {{{"kind", "model"},
                      {"name", "m"},
                      {"began", 1'700'000'001'000'000},
                      {"ended", 1'700'000'002'500'000}}}}}}}}});
  const auto spans
    = client.get("/dev/apps/press/debug/trace/session/s1").data();
  BOOST_REQUIRE(spans.size() == 3U);
  BOOST_TEST(spans[0]["name"] == "invocation");
  BOOST_TEST(spans[0]["parent_span_id"] == json());
  BOOST_TEST(spans[0]["start_time"] == 1'700'000'001'000'000'000);
  BOOST_TEST(spans[0]["end_time"] == 1'700'000'003'000'000'000);
  BOOST_TEST(spans[1]["name"] == "invoke_agent desk");
  BOOST_TEST(spans[1]["attributes"]["gen_ai.conversation.id"] == "s1");
  BOOST_TEST(spans[2]["name"] == "call_llm");
  BOOST_TEST(spans[2]["parent_span_id"] == spans[1]["span_id"]);
  BOOST_TEST(spans[2]["end_time"] == 1'700'000'002'500'000'000);
  const auto& told = spans[2]["attributes"];
  BOOST_TEST(told["gcp.vertex.agent.event_id"] == "e1");
  BOOST_TEST(told["gcp.vertex.agent.invocation_id"] == "i1");
  BOOST_TEST(told["gen_ai.usage.input_tokens"] == 7);
}

BOOST_AUTO_TEST_CASE(a_trace_is_that_of_a_session_which_the_caller_may_see) {
  fixture of;
  of.on.create();
  server_options options;
  options.ui_folder = (of.folder.path() / "ui").string();
  options.tokens = "ben-0123456789abcdef ben user\n";
  const auto shut
    = server::start(of.on.runtime, {}, std::move(options)).value();
  of.on.client.post(one_path + "/events",
                    {{"author", "desk"}, {"invocationId", "i1"}});
  http_client ben(shut.port());
  ben.headers = {"authorization: Bearer ben-0123456789abcdef"};
  const auto answer = ben.get("/dev/apps/press/debug/trace/session/s1");
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.data() == json::array());
}

BOOST_AUTO_TEST_CASE(no_path_leads_out_of_the_folder) {
  fixture of;
  for (const auto* path : {"../secret.txt",
                           "%2e%2e/secret.txt",
                           "..%2fsecret.txt",
                           "assets/../../secret.txt",
                           "assets/%2e%2e/%2e%2e/secret.txt",
                           "link.txt",
                           "assets",
                           "assets/",
                           "none.js",
                           "//etc/passwd",
                           "%2fetc%2fpasswd"}) {
    const auto answer = of.on.client.get(std::string("/dev-ui/") + path);
    BOOST_TEST(answer.status == 404, path);
    BOOST_TEST(answer.body.find("secret\"") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(without_a_folder_there_is_no_page_of_adk) {
  server_fixture on;
  BOOST_TEST(on.client.get("/dev-ui/").status == 404);
  BOOST_TEST(on.client.get("/").status == 200);
}

BOOST_AUTO_TEST_SUITE_END()
