// Sessions over HTTP, as the clients of ADK use them.

#include "troupe/stores/memory_service.hpp"

#include "../stores/temporary_folder.hpp"
#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(sessions)

namespace {

std::vector<std::string> keys_of(const json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, data] : object.items())
    keys.push_back(key);
  return keys;
}

// The data of the first problem of a refused body.
json first_problem(const http_answer& answer) {
  BOOST_TEST_REQUIRE(answer.status == 422);
  return answer.data()["detail"][0];
}

} // namespace

BOOST_AUTO_TEST_CASE(a_new_session_has_the_keys_of_adk_and_no_others) {
  server_fixture on;
  const auto made = on.create(
    {{"topic", "owls"}, {"app:x", 1}, {"user:name", "Ann"}, {"temp:t", 1}});
  BOOST_TEST(made.status == 200);
  BOOST_TEST(made.header("content-type") == "application/json");
  BOOST_TEST(made.header("etag") == "\"0\"");
  const auto session = made.data();
  BOOST_TEST(
    keys_of(session)
      == std::vector<std::string>(
        {"appName", "events", "id", "lastUpdateTime", "state", "userId"}),
    boost::test_tools::per_element());
  BOOST_TEST(session["id"] == "s1");
  BOOST_TEST(session["appName"] == "press");
  BOOST_TEST(session["userId"] == "ann");
  BOOST_TEST(session["events"] == json::array());
  BOOST_TEST(session["lastUpdateTime"].is_number_float());
  BOOST_TEST(session["state"]
             == json({{"topic", "owls"}, {"app:x", 1}, {"user:name", "Ann"}}));
  BOOST_TEST(on.client.get(one_path).data() == session);
}

BOOST_AUTO_TEST_CASE(a_session_is_created_without_a_body_and_gets_an_id) {
  server_fixture on;
  const auto made = on.client.ask("POST", all_path).data();
  BOOST_TEST(made["id"].get<std::string>().size() == 36U);
  BOOST_TEST(made["state"] == json::object());
}

BOOST_AUTO_TEST_CASE(fields_of_a_body_may_be_in_snake_case) {
  server_fixture on;
  const auto made
    = on.client.post(all_path, {{"session_id", "s1"}, {"unknown", 1}});
  BOOST_TEST(made.data()["id"] == "s1");
  const auto changed
    = on.client.patch(one_path, {{"state_delta", {{"topic", "owls"}}}});
  BOOST_TEST(changed.data()["state"]["topic"] == "owls");
}

BOOST_AUTO_TEST_CASE(the_older_form_takes_the_id_from_the_path) {
  server_fixture on;
  const auto made = on.client.post(one_path, {{"topic", "owls"}});
  BOOST_TEST(made.data()["id"] == "s1");
  BOOST_TEST(made.data()["state"] == json({{"topic", "owls"}}));
  BOOST_TEST(on.client.post(one_path, json::object()).status == 409);
}

BOOST_AUTO_TEST_CASE(a_second_session_of_a_key_is_a_conflict) {
  server_fixture on;
  on.create();
  const auto again = on.create();
  BOOST_TEST(again.status == 409);
  BOOST_TEST(again.data() == json({{"detail", "Session already exists: s1"}}));
  BOOST_TEST(again.header("troupe-error") == "already_exists");
}

BOOST_AUTO_TEST_CASE(a_missing_session_is_not_found) {
  server_fixture on;
  const json body{{"detail", "Session not found"}};
  const auto read = on.client.get(one_path);
  BOOST_TEST(read.status == 404);
  BOOST_TEST(read.data() == body);
  const auto changed = on.client.patch(one_path, {{"stateDelta", {{"a", 1}}}});
  BOOST_TEST(changed.status == 404);
  BOOST_TEST(changed.data() == body);
}

BOOST_AUTO_TEST_CASE(a_deletion_answers_null_whether_there_was_a_session) {
  server_fixture on;
  on.create();
  for (int round = 0; round < 2; ++round) {
    const auto gone = on.client.erase(one_path);
    BOOST_TEST(gone.status == 200);
    BOOST_TEST(gone.body == "null");
  }
  BOOST_TEST(on.client.get(one_path).status == 404);
}

BOOST_AUTO_TEST_CASE(a_list_has_all_sessions_oldest_update_first) {
  server_fixture on;
  for (const auto* id : {"a", "b", "c"})
    on.client.post(all_path, {{"sessionId", id}});
  on.client.patch(all_path + "/a", {{"stateDelta", {{"n", 1}}}});
  const auto list = on.client.get(all_path).data();
  BOOST_TEST_REQUIRE(list.size() == 3U);
  BOOST_TEST(list[0]["id"] == "b");
  BOOST_TEST(list[2]["id"] == "a");
  BOOST_TEST(list[2]["state"] == json({{"n", 1}}));
  BOOST_TEST(list[2]["events"] == json::array());
  BOOST_TEST(on.client.get("/apps/press/users/bob/sessions").data()
             == json::array());
}

BOOST_AUTO_TEST_CASE(a_list_is_read_in_pages) {
  server_fixture on;
  for (const auto* id : {"a", "b", "c"})
    on.client.post(all_path, {{"sessionId", id}});
  std::vector<std::string> ids;
  std::string cursor;
  do {
    const auto page = on.client.get(all_path + "?limit=2&cursor=" + cursor);
    for (const auto& each : page.data())
      ids.push_back(each["id"]);
    cursor = page.header("troupe-next-cursor");
  } while (!cursor.empty());
  BOOST_TEST(ids == std::vector<std::string>({"c", "b", "a"}),
             boost::test_tools::per_element());
  BOOST_TEST(on.client.get(all_path + "?limit=x").status == 400);
  BOOST_TEST(on.client.get(all_path + "?limit=0").status == 400);
}

BOOST_AUTO_TEST_CASE(a_patch_appends_an_event_of_the_user) {
  server_fixture on;
  on.create({{"n", 1}});
  const auto changed = on.client.patch(
    one_path, {{"stateDelta", {{"topic", "owls"}, {"n", nullptr}}}});
  BOOST_TEST(changed.header("etag") == "\"1\"");
  const auto session = changed.data();
  BOOST_TEST(session["state"] == json({{"topic", "owls"}}));
  BOOST_TEST_REQUIRE(session["events"].size() == 1U);
  const auto& said = session["events"][0];
  BOOST_TEST(said["author"] == "user");
  BOOST_TEST(said["invocationId"].get<std::string>().starts_with("p-"));
  BOOST_TEST(said["actions"]
             == json({{"stateDelta", {{"topic", "owls"}, {"n", nullptr}}},
                      {"artifactDelta", json::object()},
                      {"requestedAuthConfigs", json::object()},
                      {"requestedToolConfirmations", json::object()}}));
}

BOOST_AUTO_TEST_CASE(a_patch_may_hold_typed_operations) {
  server_fixture on;
  on.create({{"n", 1}, {"text", "x"}});
  const auto add = [](const char* key) {
    return json{
      {"stateOps", json::array({{{"op", "add"}, {"key", key}, {"value", 2}}})}};
  };
  BOOST_TEST(on.client.patch(one_path, add("n")).data()["state"]["n"] == 3);
  const auto refused = on.client.patch(one_path, add("text"));
  BOOST_TEST(refused.status == 409);
  BOOST_TEST(refused.header("troupe-error") == "type_error");
}

BOOST_AUTO_TEST_CASE(a_patch_with_the_whole_state_overwrites_no_counter) {
  server_fixture on;
  on.create({{"title", "old"}, {"app:visits", 1}});
  auto whole = on.client.get(one_path).data()["state"];
  whole["title"] = "new";
  whole["__session_metadata__"] = {{"displayName", "Owls"}};
  const auto changed
    = on.client.patch(one_path, {{"stateDelta", whole}}).data();
  BOOST_TEST(changed["events"][0]["actions"]["stateDelta"]
             == json({{"title", "new"},
                      {"__session_metadata__", {{"displayName", "Owls"}}}}));
  const auto again
    = on.client.patch(one_path, {{"stateDelta", changed["state"]}});
  BOOST_TEST(again.header("etag") == "\"1\"");
}

BOOST_AUTO_TEST_CASE(
  the_metadata_of_adks_page_is_kept_and_no_other_reserved_key) {
  server_fixture on;
  const json named{{"__session_metadata__", {{"displayName", "Hello"}}}};
  BOOST_TEST(on.create(named).data()["state"] == named);
  BOOST_TEST(on.client.get(all_path).data()[0]["state"] == named);
  const auto refused
    = on.client.patch(one_path, {{"stateDelta", {{"__other__", 1}}}});
  BOOST_TEST(refused.status == 400);
}

BOOST_AUTO_TEST_CASE(a_patch_without_a_delta_is_refused_as_adk_does) {
  server_fixture on;
  on.create();
  const auto missing = first_problem(on.client.patch(one_path, {{"other", 1}}));
  BOOST_TEST(missing["type"] == "missing");
  BOOST_TEST(missing["loc"] == json::array({"body", "stateDelta"}));
  BOOST_TEST(missing["msg"] == "Field required");
  const auto wrong
    = first_problem(on.client.patch(one_path, {{"stateDelta", "text"}}));
  BOOST_TEST(wrong["type"] == "dict_type");
  BOOST_TEST(wrong["input"] == "text");
  const auto broken = first_problem(on.client.ask("PATCH", one_path, "{\"a\""));
  BOOST_TEST(broken["type"] == "json_invalid");
}

BOOST_AUTO_TEST_CASE(a_write_with_an_old_etag_is_refused) {
  server_fixture on;
  const auto etag = on.create().header("etag");
  on.client.headers = {"if-match: " + etag};
  const json change{{"stateDelta", {{"a", 1}}}};
  BOOST_TEST(on.client.patch(one_path, change).status == 200);
  const auto late = on.client.patch(one_path, {{"stateDelta", {{"a", 2}}}});
  BOOST_TEST(late.status == 412);
  BOOST_TEST(late.header("troupe-error") == "conflict");
  on.client.headers = {"if-match: seven"};
  BOOST_TEST(on.client.patch(one_path, change).status == 400);
}

BOOST_AUTO_TEST_CASE(a_deletion_with_an_old_etag_is_refused) {
  server_fixture on;
  const auto etag = on.create().header("etag");
  on.client.patch(one_path, {{"stateDelta", {{"a", 1}}}});
  on.client.headers = {"if-match: seven"};
  BOOST_TEST(on.client.erase(one_path).status == 400);
  on.client.headers = {"if-match: " + etag};
  const auto late = on.client.erase(one_path);
  BOOST_TEST(late.status == 412);
  BOOST_TEST(late.header("troupe-error") == "conflict");
  on.client.headers = {"if-match: \"1\""};
  BOOST_TEST(on.client.erase(one_path).status == 200);
  BOOST_TEST(on.client.erase(one_path).status == 412); // It is gone.
  on.client.headers = {};
  BOOST_TEST(on.client.erase(one_path).status == 200);
  BOOST_TEST(on.client.get(one_path).status == 404);
}

BOOST_AUTO_TEST_CASE(a_session_is_read_at_an_earlier_revision) {
  server_fixture on;
  on.create({{"n", 0}});
  for (int n = 1; n <= 3; ++n)
    on.client.patch(one_path, {{"stateDelta", {{"n", n}}}});
  const auto earlier = on.client.get(one_path + "?at=2");
  BOOST_TEST(earlier.header("etag") == "\"2\"");
  BOOST_TEST(earlier.data()["state"] == json({{"n", 2}}));
  BOOST_TEST(earlier.data()["events"].size() == 2U);
  BOOST_TEST(earlier.data()["sharedStateIsOfNow"] == true); // In memory.
  BOOST_TEST(!on.client.get(one_path).data().contains("sharedStateIsOfNow"));
  BOOST_TEST(on.client.get(one_path + "?at=9").status == 404);
  BOOST_TEST(on.client.get(one_path + "?events=1").data()["events"].size()
             == 1U);
}

BOOST_AUTO_TEST_CASE(a_session_is_created_with_its_past) {
  server_fixture on;
  const json said{
    {"author", "user"},
    {"content", {{"role", "user"}, {"parts", {{{"text", "Hi"}}}}}}};
  const auto made = on.client.post(
    all_path, {{"sessionId", "s1"}, {"events", json::array({said})}});
  BOOST_TEST(made.data()["events"][0]["content"] == said["content"]);
  auto acting = said;
  acting["actions"] = {{"stateDelta", {{"a", 1}}}};
  BOOST_TEST(
    on.client.post(all_path, {{"events", json::array({acting})}}).status
    == 400);
}

BOOST_AUTO_TEST_CASE(bytes_of_an_event_are_in_the_url_safe_alphabet) {
  server_fixture on;
  const json said{
    {"author", "user"},
    {"content",
     {{"role", "user"},
      {"parts",
       {{{"inlineData",
          {{"mimeType", "image/png"}, {"data", "AAEC+/8="}}}}}}}}};
  const auto made
    = on.client.post(all_path, {{"events", json::array({said})}}).data();
  BOOST_TEST(made["events"][0]["content"]["parts"][0]["inlineData"]["data"]
             == "AAEC-_8=");
}

BOOST_AUTO_TEST_CASE(ids_in_a_path_are_percent_encoded_segments) {
  server_fixture on;
  on.client.post("/apps/press/users/an%20na/sessions",
                 {{"sessionId", "a/b ü"}});
  const auto read
    = on.client.get("/apps/press/users/an%20na/sessions/a%2Fb%20%C3%BC");
  BOOST_TEST(read.status == 200);
  BOOST_TEST(read.data()["userId"] == "an na");
  BOOST_TEST(on.client.get("/apps/press/users/a%FF/sessions").status == 400);
}

BOOST_AUTO_TEST_CASE(a_long_session_is_read_whole) {
  server_fixture on;
  on.create();
  for (int count = 0; count < 300; ++count)
    on.runtime.sessions()
      .append_event({"press", "ann", "s1"}, event(user_text("Hi")))
      .value();
  BOOST_TEST(on.client.get(one_path).data()["events"].size() == 300U);
}

BOOST_AUTO_TEST_CASE(a_session_is_added_to_memory) {
  server_fixture on(troupe::runtime::open({.memory = "memory:"}).value(), {});
  on.create();
  const std::string path = "/apps/press/users/ann/memory";
  event said(user_text("My dog is Rex"));
  said.author = "user";
  on.runtime.sessions().append_event({"press", "ann", "s1"}, said).value();
  const auto added = on.client.patch(path, {{"sessionId", "s1"}});
  BOOST_TEST(added.status == 200);
  BOOST_TEST(added.body == "null");
  const auto found = on.runtime.memory()->search("press", "ann", "rex").value();
  BOOST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found.front().session == "s1");
  const auto unknown = on.client.patch(path, {{"session_id", "s2"}});
  BOOST_TEST(unknown.status == 404);
  BOOST_TEST(unknown.data()["detail"] == "Session not found");
  BOOST_TEST(on.client.patch(path, json::object()).status == 422);
  BOOST_TEST(on.client.patch(path, {{"sessionId", 1}}).status == 422);
  BOOST_TEST(on.client.patch(path, {{"sessionId", ""}}).status == 400);
}

BOOST_AUTO_TEST_CASE(without_a_memory_service_none_is_added) {
  const temporary_folder folder;
  server_fixture on(troupe::runtime::open(
                      {.store = "sqlite:" + (folder.path() / "s.db").string()})
                      .value(),
                    {});
  on.create();
  const auto refused
    = on.client.patch("/apps/press/users/ann/memory", {{"sessionId", "s1"}});
  BOOST_TEST(refused.status == 400);
  BOOST_TEST(refused.data()["detail"] == "Memory service is not configured.");
}

BOOST_AUTO_TEST_SUITE_END()
