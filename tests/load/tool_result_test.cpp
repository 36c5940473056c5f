// Variants of an experiment that answer in place of tools.

#include "troupe/load/experiment_report.hpp"

#include "../outcome.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;

BOOST_AUTO_TEST_SUITE(tool_results)

namespace {

// An agent with the tool `count`, which counts its calls and asks the user
// first, and with a callback that would answer in place of the tool.
struct tool_user {
  tool_user() {
    tool_options counted;
    counted.name = "count";
    counted.run = [this](const json&, tool_context&) {
      ++calls;
      return json{{"n", 1}};
    };
    counted.require_confirmation = true;
    more.tools = make_registry({tool(std::move(counted))});
    more.callbacks.before_tool.emplace(
      "own", [](const tool&, json&, tool_context&) -> std::optional<json> {
        return json{{"n", "of the file"}};
      });
    write("replies.json",
          R"({"a": [{"function_calls": [{"name": "count", "args": {}}]},
                    "done"]})");
    write("agents.yaml",
          "{name: a, model: 'scripted:replies.json', tools: [count], "
          "before_tool_callbacks: [own]}\n");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder.path() / name, std::ios::binary) << text;
  }

  result<experiment> read(const std::string& variants) const {
    write("x.yaml",
          "agent: agents.yaml\ninputs: [go]\nrepeats: 1\nvariants:\n"
            + variants);
    return read_experiment(folder.path() / "x.yaml");
  }

  std::string store() const {
    return "sqlite:" + (folder.path() / "x.db").string();
  }

  // The results of tools in the session of a run.
  json results(const session_key& key) const {
    auto on = runtime::open({.store = store()}).value();
    const auto held = on.sessions().get(key).value();
    auto found = json::array();
    for (const auto& said : held.events())
      for (const auto& part : said->content.parts)
        if (const auto* given = part.response())
          found.push_back(given->response.data());
    return found;
  }

  temporary_folder folder;
  std::atomic<int> calls{0};
  agent_file_options more;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_variant_answers_in_place_of_a_tool, tool_user) {
  const auto planned = read("  many: {tool_results: {count: {n: 1000}}}\n"
                            "  text: {tool_results: {count: none}}\n")
                         .value();
  const auto made
    = run_experiment(planned, {.store = store()}, more, {}, {}).value();
  for (const auto& each : made.runs) {
    BOOST_TEST(each.error == "", each.reason);
    BOOST_TEST(each.output == "done");
    BOOST_TEST(each.line.tool_calls == 1U);
  }
  BOOST_TEST(results(made.runs.at(0).session) == json::array({{{"n", 1'000}}}));
  BOOST_TEST(results(made.runs.at(1).session)
             == json::array({{{"result", "none"}}}));
  BOOST_TEST(to_json(made).at("variants").at(0).at("changes")
             == json({R"(result of count: {"n":1000})"}));
  BOOST_TEST(calls == 0);
}

BOOST_FIXTURE_TEST_CASE(a_result_has_to_find_its_tool, tool_user) {
  const auto planned = read("  x: {tool_results: {search: 1}}\n").value();
  BOOST_TEST(reason_of(run_experiment(planned, {}, more, {}, {}))
             == "variant 'x': a result names tool 'search', which no agent "
                "has; the tools are count");
}

BOOST_FIXTURE_TEST_CASE(results_are_a_mapping, tool_user) {
  const auto failed = read("  x: {tool_results: [1]}\n");
  BOOST_TEST(
    reason_of(failed).find("x.yaml:5: 'tool_results' must be a mapping")
      != std::string::npos,
    reason_of(failed));
}

BOOST_AUTO_TEST_SUITE_END()
