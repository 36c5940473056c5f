// Promises to clients: an answered append is durable, and the end of a
// connection takes nothing back.

#include "../runtime/staged_store.hpp"
#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(promises)

namespace {

const std::string log_path = one_path + "/events";

json text_event(const std::string& words) {
  return {{"author", "user"}, {"content", {{"parts", {{{"text", words}}}}}}};
}

std::vector<std::string> texts_of(http_client& client) {
  std::vector<std::string> texts;
  const auto page = client.get(log_path).data();
  for (const auto& each : page["events"])
    texts.push_back(each["content"]["parts"][0]["text"]);
  return texts;
}

} // namespace

BOOST_AUTO_TEST_CASE(no_answer_comes_before_its_append_is_durable) {
  const staged_place place;
  server_fixture on(runtime::open(place.options()).value(), {});
  on.create();
  // The creation is in the store, even if answers come too early.
  on.client.get(one_path);
  place.script->hold();
  auto writer = on.connect();
  writer.send_request("POST", log_path, to_text(text_event("1")));
  place.script->arrived.await(2);
  auto changer = on.connect();
  changer.send_request("PATCH", one_path, R"({"stateDelta": {"a": 1}})");
  auto reader = on.connect();
  reader.send_request("GET", one_path);
  // Long enough for an answer that does not wait for the store.
  BOOST_TEST(!writer.has_answer_within(100ms));
  BOOST_TEST(!changer.has_answer_within(100ms));
  BOOST_TEST(!reader.has_answer_within(100ms));
  place.script->release();
  for (auto* each : {&writer, &changer, &reader})
    BOOST_TEST(each->read().status == 200);
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_takes_nothing_back) {
  const auto model = std::make_shared<held_model>();
  server_options options;
  options.limits.connections_max = 2;
  server_fixture on(
    {{"press", sequential("all", {says("a", "1"), asks("b", model)})}},
    options);
  on.create();
  auto client = on.connect();
  client.send_request("POST",
                      "/run_sse",
                      R"({"appName": "press", "userId": "ann", )"
                      R"("sessionId": "s1", "newMessage": )"
                      R"({"parts": [{"text": "go"}]}})");
  client.read_head();
  client.next_event();
  model->asked.await(1);
  client.close();
  // The server has seen that, once it has room for another connection.
  while (on.connect().is_closed_within(100ms))
    continue;
  model->answer("2");
  while (!on.client.get(one_path + "/runs").data()["runs"].empty())
    std::this_thread::yield();
  BOOST_TEST(texts_of(on.client) == std::vector<std::string>({"go", "1", "2"}),
             boost::test_tools::per_element());
}

// The append is stored although its answer has no reader.
BOOST_AUTO_TEST_CASE(an_append_without_its_client_is_stored_or_refused) {
  const staged_place place;
  server_fixture on(runtime::open(place.options()).value(), {});
  on.create();
  on.client.get(one_path);
  place.script->hold();
  auto event = text_event("1");
  event["id"] = "e1";
  {
    auto writer = on.connect();
    writer.send_request("POST", log_path, to_text(event));
    place.script->arrived.await(2);
  }
  place.script->release();
  // A retry gets the stored event.
  BOOST_TEST(on.client.post(log_path, event).status == 200);
  BOOST_TEST(on.client.get(one_path).header("etag") == "\"1\"");
}

BOOST_AUTO_TEST_SUITE_END()
