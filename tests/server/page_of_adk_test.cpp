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
