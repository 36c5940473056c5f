// Artifacts over HTTP, as the clients of ADK use them.

#include "troupe/stores/shared/memory_store.hpp"

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(artifacts)

namespace {

const std::string files_path = one_path + "/artifacts";

json text_file(const std::string& name, const std::string& words) {
  return {{"filename", name}, {"artifact", {{"text", words}}}};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_file_is_saved_with_versions_and_read_back) {
  server_fixture on;
  on.create();
  const auto saved = on.client.post(files_path, text_file("a.txt", "one"));
  BOOST_TEST(saved.status == 200);
  BOOST_TEST(saved.data()["version"] == 0);
  BOOST_TEST(saved.data()["mimeType"] == "text/plain");
  BOOST_TEST(saved.data()["createTime"].is_number());
  on.client.post(files_path, text_file("a.txt", "two"));
  const auto one = files_path + "/a.txt";
  BOOST_TEST(on.client.get(one).data() == json({{"text", "two"}}));
  BOOST_TEST(on.client.get(one + "?version=0").data()
             == json({{"text", "one"}}));
  BOOST_TEST(on.client.get(one + "/versions").data() == json({0, 1}));
  BOOST_TEST(on.client.get(one + "/versions/0").data()
             == json({{"text", "one"}}));
  BOOST_TEST(on.client.get(one + "/versions/latest").data()
             == json({{"text", "two"}}));
  BOOST_TEST(on.client.get(one + "/versions/metadata").data().size() == 2U);
  BOOST_TEST(on.client.get(one + "/versions/latest/metadata").data()["version"]
             == 1);
  BOOST_TEST(on.client.get(files_path).data() == json({"a.txt"}));
}

BOOST_AUTO_TEST_CASE(a_rewind_takes_files_back) {
  const auto saves
    = custom("root", [](invocation_context& context) -> agent_run {
        const std::string name = "a.txt";
        const part file(context.user_content().text());
        (co_await context.artifacts().save(name, file)).value();
        co_await context.emit(text("saved"));
      });
  server_fixture on({{"press", saves}});
  on.create();
  for (const auto* words : {"one", "two"}) {
    json wanted{{"appName", "press"}, {"userId", "ann"}, {"sessionId", "s1"}};
    wanted["newMessage"]
      = {{"role", "user"}, {"parts", json::array({{{"text", words}}})}};
    BOOST_TEST(on.client.post("/run", wanted).status == 200);
  }
  const auto events = on.client.get(one_path).data()["events"];
  const auto path = one_path + "/rewind";
  const auto id = events[events.size() / 2]["invocationId"];
  on.client.post(path, {{"beforeInvocationId", id}});
  const auto one = files_path + "/a.txt";
  BOOST_TEST(on.client.get(one).data() == json({{"text", "one"}}));
  BOOST_TEST(on.client.get(one + "/versions/latest/metadata").data()["version"]
             == 0);
  BOOST_TEST(on.client.get(one + "/versions/1").data()
             == json({{"text", "two"}}));
  on.client.post(path, {{"to", 0}});
  BOOST_TEST(on.client.get(one).status == 404);
  BOOST_TEST(on.client.get(files_path).data() == json::array());
  // A removed file begins anew.
  BOOST_TEST(on.client.erase(one).status == 200);
  on.client.post(files_path, text_file("a.txt", "three"));
  BOOST_TEST(on.client.get(one).data() == json({{"text", "three"}}));
}

BOOST_AUTO_TEST_CASE(bytes_are_read_in_the_url_safe_alphabet) {
  server_fixture on;
  on.create();
  const auto saved = on.client.post(
    files_path,
    {{"filename", "user:b.png"},
     {"artifact",
      {{"inlineData", {{"data", "AAEC+/8="}, {"mimeType", "image/png"}}}}}});
  BOOST_TEST(saved.data()["mimeType"] == "image/png");
  BOOST_TEST(on.client.get(files_path + "/user%3Ab.png").data()
             == json({{"inlineData",
                       {{"data", "AAEC-_8="}, {"mimeType", "image/png"}}}}));
}

BOOST_AUTO_TEST_CASE(missing_files_and_bad_versions_are_told) {
  server_fixture on;
  on.create();
  const auto missing = on.client.get(files_path + "/none");
  BOOST_TEST(missing.status == 404);
  BOOST_TEST(missing.data() == json({{"detail", "Artifact not found"}}));
  BOOST_TEST(on.client.get(files_path + "/none/versions").data()
             == json::array());
  BOOST_TEST(on.client.get(files_path + "/none/versions/latest/metadata").status
             == 404);
  BOOST_TEST(on.client.get(files_path + "/none/versions/x").status == 422);
  BOOST_TEST(on.client.get(files_path + "/..").status == 400);
  BOOST_TEST(on.client.erase(files_path + "/none").body == "null");
  BOOST_TEST(on.client.post(files_path, {{"filename", "a"}}).status == 422);
}

BOOST_AUTO_TEST_CASE(a_server_without_artifacts_says_so) {
  runtime_options options;
  options.store = std::shared_ptr<store>(make_memory_store());
  auto opened = runtime::open(std::move(options)).value();
  server_fixture on(std::move(opened), {});
  BOOST_TEST(on.client.get(files_path).status == 400);
}

BOOST_AUTO_TEST_SUITE_END()
