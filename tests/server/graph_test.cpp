// The drawings of an app, as the page of ADK asks for them, and the progress of
// workflows.

#include "troupe/agents/drawing.hpp"
#include "troupe/agents/workflow.hpp"
#include "troupe/models/scripted_model.hpp"

#include "server_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

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

// -- workflows of a session ----

namespace {

agent checks() {
  return workflow(
    {.name = "checks",
     .nodes
     = {{.name = "read",
         .work
         = [](node_context&) { return node_output(1, {std::string("good")}); }},
        {.name = "send", .work = [](node_context&) { return json(2); }},
        {.name = "mend", .work = [](node_context&) { return json(3); }}},
     .edges = {{"START", "read"},
               {"read", "send", {"good"}},
               {"read", "mend", {"bad"}}}});
}

/// A server with the session s1 of ann, which has one run.
struct workflow_fixture : server_fixture {
  explicit workflow_fixture(server_options options = {})
    : server_fixture({{"press", checks()}}, std::move(options)) {
    const session_key key{"press", "ann", "s1"};
    runtime.sessions().create(key).value();
    runtime.run(checks(), key, user_text("go")).wait().value();
    for (const auto& each : runtime.sessions().get(key).value().events())
      ids.push_back(each->id);
  }

  /// The path of the drawing for an event.
  std::string drawing_of(std::string id) const {
    for (std::size_t at = 0; (at = id.find('/', at)) != std::string::npos;)
      id.replace(at, 1, "%2F");
    return one_path + "/events/" + id + "/graph";
  }

  std::vector<std::string> ids;
};

} // namespace

BOOST_AUTO_TEST_CASE(the_progress_of_workflows_is_told) {
  workflow_fixture on;
  const auto answer = on.client.get(one_path + "/workflows");
  BOOST_TEST(answer.status == 200);
  const auto told = answer.data();
  BOOST_TEST(told["revision"] == on.ids.size());
  BOOST_TEST_REQUIRE(told["workflows"].size() == 1U);
  const auto& shown = told["workflows"][0];
  BOOST_TEST(shown["path"] == "checks@1");
  BOOST_TEST(shown["state"] == "done");
  BOOST_TEST(shown["nodes"][1]["state"] == "done");
  BOOST_TEST(shown["nodes"][2]["state"] == "skipped");
  BOOST_TEST(shown["visits"][0]["routes"] == json::array({"good"}));
  BOOST_TEST(shown["failure"].is_null());
  // An earlier revision: the first event of the workflow.
  const auto before = on.client.get(one_path + "/workflows?at=2").data();
  BOOST_TEST(before["revision"] == 2);
  BOOST_TEST(before["workflows"][0]["state"] == "running");
  BOOST_TEST(before["workflows"][0]["nodes"][0]["state"] == "running");
  const auto run = shown["run"].get<std::string>();
  BOOST_TEST(on.client.get(one_path + "/workflows?invocation=" + run)
               .data()["workflows"]
               .size()
             == 1U);
  BOOST_TEST(on.client.get(one_path + "/workflows?invocation=none")
               .data()["workflows"]
               .empty());
}

BOOST_AUTO_TEST_CASE(a_changed_workflow_is_told_as_a_conflict) {
  workflow_fixture on;
  server_fixture other(
    {{"press",
      workflow({.name = "checks",
                .nodes = {{.name = "read",
                           .work = [](node_context&) { return json(1); }}},
                .edges = {{"START", "read"}}})}});
  const session_key key{"press", "ann", "s1"};
  other.create();
  for (const auto& each : on.runtime.sessions().get(key).value().events())
    other.runtime.sessions().append_event(key, *each).value();
  const auto shown
    = other.client.get(one_path + "/workflows").data()["workflows"][0];
  BOOST_TEST(shown["state"] == "done");
  BOOST_TEST(shown["nodes"].size() == 3U);
  BOOST_TEST(shown["conflict"].get<std::string>().starts_with(
    "conflict: workflow 'checks' is not the one"));
}

BOOST_AUTO_TEST_CASE(a_drawing_points_at_an_event) {
  workflow_fixture on;
  const auto read = on.client.get(on.drawing_of(on.ids[2]));
  BOOST_TEST(read.status == 200);
  const auto graph = read.data()["dotSrc"].get<std::string>();
  BOOST_TEST(
    graph.find("\"read\" [shape=box, label=\"read\\nfunction\\ndone\", "
               "tooltip=\"read\", fillcolor=\"#d3f0d6\", penwidth=3]")
      != std::string::npos,
    graph);
  // The states are those after the event.
  BOOST_TEST(graph.find("label=\"send\\nfunction\\nrunning\"")
               != std::string::npos,
             graph);
  BOOST_TEST(on.client.get("/dev" + on.drawing_of(on.ids[2])).data()
             == read.data());
  BOOST_TEST(on.client.get(on.drawing_of(on.ids[2]) + "?dark_mode=true").data()
             != read.data());
  BOOST_TEST(on.client.get(on.drawing_of("none")).data() == json::object());
}

BOOST_AUTO_TEST_CASE(workflows_and_drawings_of_unknown_sessions_are_refused) {
  workflow_fixture on;
  BOOST_TEST(on.client.get(all_path + "/none/workflows").status == 404);
  BOOST_TEST(on.client.get(all_path + "/none/events/e/graph").status == 404);
  BOOST_TEST(
    on.client.get("/apps/none/users/ann/sessions/s1/events/e/graph").status
    == 404);
  BOOST_TEST(on.client.get(one_path + "/workflows?at=x").status == 400);
  BOOST_TEST(on.client.get(one_path + "/workflows?at=99").status == 404);
  BOOST_TEST(on.client.get(on.drawing_of(on.ids[2]) + "?dark_mode=x").status
             == 400);
}

BOOST_AUTO_TEST_CASE(a_token_sees_the_workflows_of_its_user) {
  server_options options;
  options.tokens = "ann-0123456789abcdef ann reader\n"
                   "bob-0123456789abcdef bob user\n";
  workflow_fixture on(std::move(options));
  for (const auto& [name, status] :
       std::map<std::string, int>{{"ann", 200}, {"bob", 403}}) {
    on.client.headers = {"authorization: Bearer " + name + "-0123456789abcdef"};
    BOOST_TEST(on.client.get(one_path + "/workflows").status == status);
    BOOST_TEST(on.client.get(on.drawing_of(on.ids[2])).status == status);
    BOOST_TEST(on.client.get("/dev" + on.drawing_of(on.ids[2])).status
               == status);
  }
}

BOOST_AUTO_TEST_SUITE_END()
