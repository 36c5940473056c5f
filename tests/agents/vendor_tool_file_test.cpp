// Tools that vendors run, in agents and in agent files: their names, their
// settings, and models that do not have them.

#include "troupe/models/scripted_model.hpp"

#include "../outcome.hpp"
#include "agent_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

BOOST_AUTO_TEST_SUITE(vendor_tool_files)

namespace {

namespace data = boost::unit_test::data;

// A model whose vendor runs all tools but those of a list, and none beside
// functions.
class served_model : public model {
public:
  explicit served_model(std::string name, std::vector<std::string> missing = {})
    : name_(std::move(name)),
      missing_(std::move(missing)) {}

  std::string name() const override { return name_; }

  void generate(model_request, model_reply) override {}

  result<void> check_vendor_tools(const std::vector<vendor_tool>& wanted,
                                  bool beside_functions) const override {
    for (const auto& each : wanted) {
      if (std::ranges::find(missing_, each.name) != missing_.end())
        return error(errc::invalid_argument, name_ + " has no " + each.name);
      if (beside_functions)
        return error(errc::invalid_argument, name_ + " has functions");
    }
    return {};
  }

private:
  const std::string name_;
  const std::vector<std::string> missing_;
};

// Opens `served…` as such a model, `none…` as one without `google_search`.
struct served_folder : folder {
  served_folder() {
    options.open = [](const model_source& source,
                      const open_model_options& usual) -> result<model_ptr> {
      if (source.name.starts_with("served"))
        return model_ptr(std::make_shared<served_model>(source.name));
      if (source.name.starts_with("none"))
        return model_ptr(std::make_shared<served_model>(
          source.name, std::vector<std::string>{"google_search"}));
      return open_model(source, usual);
    };
  }

  // The tools of the root, with settings: `"google_search {…} url_context"`.
  std::string tools(const std::string& text) const {
    const auto loaded = load("name: a\nmodel: served\n" + text);
    if (!loaded)
      return without_folder(loaded.error().message());
    std::string named;
    for (const auto& each :
         std::get<llm_options>(loaded->kind()).vendor_tools) {
      named += (named.empty() ? "" : " ") + each.name;
      if (!each.settings.is_null())
        named += " " + to_text(each.settings.data());
    }
    return named;
  }
};

llm_options searcher(model_ptr model, std::string name = "searcher") {
  llm_options options;
  options.name = std::move(name);
  options.model = std::move(model);
  options.vendor_tools = {vendor_tool("google_search")};
  return options;
}

std::string refusal(const std::function<void()>& make) {
  try {
    make();
  } catch (const error& why) {
    return why.message();
  }
  return "";
}

const std::vector<std::pair<std::string, std::string>> spellings = {
  {"google_search", "google_search"},
  {"{name: google_search}", "google_search"},
  {"google.adk.tools.google_search", "google_search"},
  {"google.adk.tools.google_search_tool.google_search", "google_search"},
  {"GoogleSearchTool", "google_search"},
  {"google.adk.tools.google_search_tool.GoogleSearchTool", "google_search"},
  {"url_context", "url_context"},
  {"google.adk.tools.url_context", "url_context"},
  {"google_maps_grounding", "google_maps"},
  {"google_maps", "google_maps"},
  {"google.adk.tools.enterprise_web_search", "enterprise_web_search"},
  {"code_execution", "code_execution"},
  {"web_search", "web_search"},
  {"web_fetch", "web_fetch"},
  {"{name: web_search, args: {max_uses: 2}}", R"(web_search {"max_uses":2})"},
  {"{name: google_search, args: {}}", "google_search"},
  {"{name: GoogleSearchTool, args: {bypass_multi_tools_limit: false}}",
   "google_search"},
};

struct refused_tool {
  std::string text;
  std::string reason;
};

std::ostream& operator<<(std::ostream& to, const refused_tool& each) {
  return to << each.text;
}

const refused_tool refused_tools[] = {
  {"tools: [google_search, GoogleSearchTool]\n",
   "root_agent.yaml:3: the agent has the vendor tool 'google_search' twice"},
  {"tools: [code_execution]\ncode_executor: BuiltInCodeExecutor\n",
   "root_agent.yaml:4: the agent has the vendor tool 'code_execution' twice"},
  {"tools: [{name: google_search, require_confirmation: true}]\n",
   "root_agent.yaml:3: 'google_search' cannot be confirmed: the model's vendor "
   "runs it without asking"},
  {"tools: [{name: web_search, max_uses: 2}]\n",
   "root_agent.yaml:3: unknown field 'max_uses'; a tool that a vendor runs has "
   "name and args"},
  {"tools: [{name: web_search, args: [1]}]\n",
   "root_agent.yaml:3: 'args' must be a mapping"},
  {"tools: [{name: GoogleSearchTool, args: {bypass_multi_tools_limit: true}}]"
   "\n",
   "root_agent.yaml:3: 'bypass_multi_tools_limit' cannot be used: give "
   "google_search to an agent of its own, and make that agent a tool "
   "(AgentTool)"},
  {"tools: [{name: GoogleSearchTool, args: {model: gemini-2.5-pro}}]\n",
   "root_agent.yaml:3: 'model' cannot be set for the search alone"},
  {"tools: [{name: LongRunningFunctionTool, args: {func: google_search}}]\n",
   "root_agent.yaml:3: 'google_search' runs at the model's vendor and cannot "
   "be wrapped"},
  {"tools: [google.adk.tools.url_context_tool.google_search]\n",
   "root_agent.yaml:3: troupe does not have ADK's tool"},
  {"code_executor: UnsafeLocalCodeExecutor\n",
   "root_agent.yaml:3: 'code_executor' cannot be used: troupe does not run "
   "code of models; use BuiltInCodeExecutor"},
  {"code_executor: {name: BuiltInCodeExecutor, stateful: true}\n",
   "root_agent.yaml:3: BuiltInCodeExecutor takes no settings here"},
  {"code_executor_code: google.adk.code_executors.BuiltInCodeExecutor\n",
   "use 'code_executor' in its place"},
  // The model does not have it.
  {"tools:\n- count\n- google_search\n",
   "root_agent.yaml:5: agent 'a': served has functions"},
};

} // namespace

// -- agents ----

BOOST_AUTO_TEST_CASE(a_model_without_the_tool_is_refused) {
  const auto good = std::make_shared<served_model>("good");
  const auto bad = std::make_shared<served_model>(
    "bad", std::vector<std::string>{"google_search"});
  const auto tree = llm(searcher(good));
  BOOST_TEST(refusal([&] { llm(searcher(bad)); })
             == "agent 'searcher': bad has no google_search");
  BOOST_TEST(refusal([&] { tree.with_model(bad); })
             == "agent 'searcher': bad has no google_search");
  BOOST_TEST(refusal([&] { sequential("all", {tree}).with_model(bad); })
             == "agent 'searcher': bad has no google_search");
  // A script plays the answers of any model.
  BOOST_TEST(refusal([&] {
               tree.with_model(std::make_shared<scripted_model>(script()));
             })
             == "");
}

BOOST_AUTO_TEST_CASE(functions_beside_are_those_of_a_whole_tree) {
  const auto model = std::make_shared<served_model>("m");
  const std::string refused = "agent 'searcher': m has functions";
  auto both = searcher(model);
  both.tools = {make_tool("count")};
  BOOST_TEST(refusal([&] { llm(both); }) == refused);
  llm_options plain;
  plain.name = "plain";
  plain.model = model;
  // It may hand over to an agent below it, and an agent below to it.
  BOOST_TEST(refusal([&] { llm(searcher(model), {llm(plain)}); }) == refused);
  BOOST_TEST(refusal([&] { llm(plain, {llm(searcher(model))}); }) == refused);
  auto alone = searcher(model);
  alone.disallow_transfer_to_parent = true;
  BOOST_TEST(refusal([&] { llm(plain, {llm(alone)}); }) == "");
  auto other = plain;
  other.name = "other";
  BOOST_TEST(refusal([&] { llm(plain, {llm(alone), llm(other)}); }) == refused);
  alone.disallow_transfer_to_peers = true;
  BOOST_TEST(refusal([&] { llm(plain, {llm(alone), llm(other)}); }) == "");
  BOOST_TEST(refusal([&] { sequential("s", {llm(searcher(model))}); }) == "");
}

// A sub-agent in mode single_turn does not hand over. An agent in mode task has
// the function `finish_task`.
BOOST_AUTO_TEST_CASE(a_mode_decides_whether_an_agent_has_functions) {
  const auto model = std::make_shared<served_model>("m");
  const llm_options plain{.name = "plain", .model = model};
  auto called = searcher(model);
  called.mode = agent_mode::single_turn;
  BOOST_TEST(refusal([&] { llm(plain, {llm(called)}); }) == "");
  called.mode = agent_mode::task;
  BOOST_TEST(refusal([&] { llm(called); }) != "");
}

BOOST_AUTO_TEST_CASE(two_tools_of_one_name_are_refused_here_too) {
  const auto model = std::make_shared<served_model>("m");
  auto twice = searcher(model);
  twice.vendor_tools.push_back(twice.vendor_tools.front());
  BOOST_TEST(refusal([&] { llm(twice); })
             == "agent 'searcher' has 'google_search' twice in tools and "
                "vendor_tools; remove or rename one");
  auto own = searcher(model);
  own.tools = {make_tool("google_search")};
  BOOST_TEST(refusal([&] { llm(own); })
             == "agent 'searcher' has 'google_search' twice in tools and "
                "vendor_tools; remove or rename one");
}

// -- files ----

BOOST_FIXTURE_TEST_CASE(each_tool_has_its_names, served_folder) {
  for (const auto& [written, expected] : spellings)
    BOOST_TEST(tools("tools:\n- " + written + "\n") == expected, written);
  BOOST_TEST(tools("tools: [google_search, url_context, web_fetch]\n")
             == "google_search url_context web_fetch");
}

BOOST_FIXTURE_TEST_CASE(the_code_executor_of_adk_is_a_tool, served_folder) {
  const std::string package = "google.adk.code_executors.";
  for (const auto& name :
       {std::string("BuiltInCodeExecutor"),
        package + "BuiltInCodeExecutor",
        package + "built_in_code_executor.BuiltInCodeExecutor"}) {
    BOOST_TEST(tools("code_executor: " + name + "\n") == "code_execution");
    BOOST_TEST(tools("code_executor: {name: " + name + "}\n")
               == "code_execution");
  }
}

BOOST_DATA_TEST_CASE_F(served_folder,
                       what_a_vendor_cannot_run_is_refused,
                       data::make(refused_tools),
                       each) {
  const auto why = failure("name: a\nmodel: served\n" + each.text);
  BOOST_TEST(why.find(each.reason) != std::string::npos, why);
}

BOOST_FIXTURE_TEST_CASE(a_model_of_another_vendor_is_refused, served_folder) {
  const std::string tools = "tools:\n- google_search\n";
  BOOST_TEST(failure("name: a\nmodel: none\n" + tools)
             == "root_agent.yaml:4: agent 'a': none has no google_search");
  // Every model of a list may be asked.
  BOOST_TEST(failure("name: a\nmodel: [served, none]\n" + tools)
             == "root_agent.yaml:4: agent 'a': none has no google_search");
  // A model from above, and one in place of all.
  BOOST_TEST(failure("name: a\nmodel: none\nsub_agents:\n- name: b\n"
                     "  tools:\n  - google_search\n")
             == "root_agent.yaml:6: agent 'b': none has no google_search");
  options.model = std::make_shared<served_model>(
    "none", std::vector<std::string>{"google_search"});
  BOOST_TEST(failure("name: a\nmodel: served\n" + tools)
             == "root_agent.yaml:4: agent 'a': none has no google_search");
  options.model = std::make_shared<scripted_model>(script());
  BOOST_TEST(load("name: a\nmodel: none\n" + tools).has_value());
}

BOOST_FIXTURE_TEST_CASE(tools_of_openai_are_in_its_responses, served_folder) {
  const std::string tools = "tools: [web_search, code_execution]\n";
  const std::string own = "', base_url: 'http://localhost:1/v1'}\n" + tools;
  BOOST_TEST(
    load("name: a\nmodel: {name: 'openai-responses:m" + own).has_value());
  const auto why = failure("name: a\nmodel: {name: 'openai:m" + own);
  BOOST_TEST(
    why.starts_with("root_agent.yaml:3: agent 'a': OpenAI model 'm': it has no "
                    "tool 'web_search': in chat completions"),
    why);
  BOOST_TEST(why.find("openai-responses:NAME") != std::string::npos, why);
  // At OpenAI itself, the tools choose the interface.
  options.open
    = [](const model_source& source, const open_model_options& usual) {
        auto with_key = usual;
        with_key.key = [] { return std::string("k"); };
        with_key.variable = [](const std::string&) { return std::nullopt; };
        return open_model(source, with_key);
      };
  BOOST_TEST(load("name: a\nmodel: openai:gpt-5\n" + tools).has_value());
  const auto fetch
    = failure("name: a\nmodel: openai:gpt-5\ntools: [web_fetch]\n");
  BOOST_TEST(fetch.find("the vendor does not run 'web_fetch' for this model; "
                        "remove it or use another model (available: "
                        "web_search, code_execution)")
               != std::string::npos,
             fetch);
}

BOOST_FIXTURE_TEST_CASE(a_search_beside_sub_agents_names_the_agent,
                        served_folder) {
  BOOST_TEST(failure("name: a\nmodel: served\nsub_agents:\n- name: b\n"
                     "  tools: [google_search]\n")
             == "root_agent.yaml:1: agent 'b': served has functions");
  BOOST_TEST(load("name: a\nmodel: served\ntools:\n- name: AgentTool\n"
                  "  args: {agent: {name: b, tools: [google_search]}}\n")
               .has_value());
}

BOOST_FIXTURE_TEST_CASE(a_program_keeps_its_own_tools, served_folder) {
  options.tools = make_registry({make_tool("web_search")});
  const auto loaded = load("name: a\nmodel: served\ntools: [web_search]\n");
  BOOST_TEST_REQUIRE(loaded.has_value());
  const auto& made = std::get<llm_options>(loaded->kind());
  BOOST_TEST(made.tools.size() == 1U);
  BOOST_TEST(made.vendor_tools.empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe
