// The drawings of an app, as the page of ADK asks for them.

#include "troupe/agents/drawing.hpp"
#include "troupe/models/scripted_model.hpp"

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <map>
#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(graphs)

namespace {

agent writer_of(const std::string& name) {
  return llm({.name = name, .model = scripted({{"*", {{.text = "ok"}}}})});
}

agent press_desk() {
  return llm(
    {.name = "desk",
     .description = "The desk.",
     .model = scripted({{"*", {{.text = "ok"}}}}),
     .instruction = "Route."},
    {sequential("reviews", {writer_of("writer"), writer_of("critic")})});
}

std::map<std::string, agent> one_app() {
  return {{"press", press_desk()}};
}

const std::string graph_path = "/dev/apps/press/build_graph";

} // namespace

BOOST_AUTO_TEST_CASE(the_graph_of_an_app_is_its_tree_of_agents) {
  server_fixture on(one_app());
  const auto answer = on.client.get(graph_path);
  BOOST_TEST(answer.status == 200);
  const auto shown = answer.data();
  BOOST_TEST(shown["name"] == "press");
  const auto& root = shown["root_agent"];
  BOOST_TEST(root["name"] == "desk");
  BOOST_TEST(root["model"] == "scripted");
  BOOST_TEST(root["instruction"] == "Route.");
  BOOST_TEST(root["tools"] == json::array());
  BOOST_TEST(root["sub_agents"][0]["name"] == "reviews");
  BOOST_TEST(root["sub_agents"][0]["sub_agents"][1]["name"] == "critic");
}

BOOST_AUTO_TEST_CASE(images_are_graphs_in_light_and_dark_colours) {
  server_fixture on(one_app());
  const auto image = [&on](const std::string& query) {
    const auto answer = on.client.get(graph_path + "_image" + query);
    BOOST_TEST(answer.status == 200, query);
    const auto images = answer.data();
    BOOST_TEST_REQUIRE(images.size() == 1U);
    return images[""]["dotSrc"].get<std::string>();
  };
  BOOST_TEST(image("") == to_dot(press_desk()));
  BOOST_TEST(image("?dark_mode=false") == to_dot(press_desk()));
  BOOST_TEST(image("?dark_mode=True") == to_dot(press_desk(), {.dark = true}));
}

BOOST_AUTO_TEST_CASE(an_image_may_be_of_an_agent_below) {
  server_fixture on(one_app());
  const auto images
    = on.client.get(graph_path + "_image?node=reviews%2Fwriter").data();
  BOOST_TEST_REQUIRE(images.size() == 1U);
  const auto graph = images["reviews/writer"]["dotSrc"].get<std::string>();
  BOOST_TEST(graph.starts_with("digraph \"writer\" {"));
  BOOST_TEST(graph.find("critic") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(unknown_apps_nodes_and_flags_are_refused) {
  server_fixture on(one_app());
  for (const auto* path :
       {"/dev/apps/none/build_graph", "/dev/apps/none/build_graph_image"}) {
    const auto answer = on.client.get(path);
    BOOST_TEST(answer.status == 404, path);
    BOOST_TEST(answer.data()["detail"] == "App not found: none");
    BOOST_TEST(answer.header("troupe-error") == "not_found");
  }
  const auto node = on.client.get(graph_path + "_image?node=none");
  BOOST_TEST(node.status == 404);
  BOOST_TEST(node.data()["detail"] == "Node not found: none");
  const auto flag = on.client.get(graph_path + "_image?dark_mode=maybe");
  BOOST_TEST(flag.status == 400);
  BOOST_TEST(flag.data()["detail"]
             == "'dark_mode' in the query is neither true nor false");
  BOOST_TEST(on.client.post(graph_path, json::object()).status == 405);
}

BOOST_AUTO_TEST_CASE(callers_need_a_token_and_each_role_may_read) {
  server_options options;
  options.tokens = "ann-0123456789abcdef ann reader\n";
  server_fixture on(one_app(), std::move(options));
  BOOST_TEST(on.client.get(graph_path).status == 401);
  on.client.headers = {"authorization: Bearer ann-0123456789abcdef"};
  BOOST_TEST(on.client.get(graph_path).status == 200);
  BOOST_TEST(on.client.get(graph_path + "_image").status == 200);
}

BOOST_AUTO_TEST_SUITE_END()
