// The tools of ADK that need no vendor, and tools that prepare requests.

#include "troupe/agents/standard_tools.hpp"

#include "troupe/stores/artifact_store.hpp"

#include "../stores/temporary_folder.hpp"
#include "pause_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(tools_of_adk)

namespace {

// Answers by a script, and keeps the requests.
class heard_model : public model {
public:
  explicit heard_model(std::vector<scripted_reply> replies)
    : answering_(scripted({{"*", std::move(replies)}})) {}

  std::string name() const override { return "heard"; }

  void generate(model_request request, model_reply reply) override {
    heard.push_back(request);
    answering_->generate(std::move(request), std::move(reply));
  }

  // Of a run that has ended.
  std::vector<model_request> heard;

private:
  const model_ptr answering_;
};

std::shared_ptr<heard_model> hears(std::vector<scripted_reply> replies) {
  return std::make_shared<heard_model>(std::move(replies));
}

scripted_reply loading(const std::vector<std::string>& names) {
  return calling("load_artifacts", {{"artifact_names", names}});
}

// The texts of a content, without the other parts.
std::string words_of(const content& said) {
  std::string words;
  for (const auto& element : said.parts)
    words += element.text() != nullptr ? *element.text() : "[media]";
  return words;
}

bool tells_of_artifacts(const model_request& request) {
  return request.system_instruction.find("artifacts") != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_model_loads_the_artifacts_that_it_asks_for) {
  agent_fixture on;
  auto& files = *on.runtime.artifacts();
  files.save(on.key, "notes.txt", part("words")).value();
  files.save(on.key, "user:list.csv", inline_data("a,b", "text/csv")).value();
  files.save(on.key, "owl.png", inline_data("\x89PNG", "image/png")).value();
  files.save(on.key, "data.bin", inline_data("\xff\xfe", "x/y")).value();
  const auto model = hears(
    {loading({"notes.txt", "user:list.csv", "owl.png", "data.bin", "none.txt"}),
     {.text = "first"},
     {.text = "second"}});
  const auto reader = asks("a", model, "Read.", {load_artifacts()});
  BOOST_TEST(on.perform(reader) == "a= a= a=first | ok");
  on.perform(reader);
  BOOST_REQUIRE(model->heard.size() == 3U);
  BOOST_TEST(model->heard[0].system_instruction.starts_with("Read.\n\n"));
  for (const auto* name : {"notes.txt", "user:list.csv", "owl.png"})
    BOOST_TEST(model->heard[0].system_instruction.find(name)
               != std::string::npos);
  BOOST_TEST(model->heard[0].contents.size() == 1U);
  const auto& shown = model->heard[1].contents;
  BOOST_REQUIRE(shown.size() == 8U);
  BOOST_TEST(words_of(*shown[3]) == "Artifact notes.txt is:words");
  BOOST_TEST(words_of(*shown[4]) == "Artifact user:list.csv is:a,b");
  BOOST_TEST(words_of(*shown[5]) == "Artifact owl.png is:[media]");
  BOOST_TEST(words_of(*shown[6])
             == "Artifact data.bin is:2 bytes of type x/y, which cannot be "
                "shown");
  BOOST_TEST(words_of(*shown[7])
             == "Artifact none.txt is:not available: there is no such "
                "artifact");
  // Later requests have the names, not the contents.
  for (const auto& each : model->heard[2].contents)
    BOOST_TEST(words_of(*each).find("words") == std::string::npos);
  BOOST_TEST(responses(on, on.key)[0]["artifact_names"].size() == 5U);
}

BOOST_AUTO_TEST_CASE(a_session_without_artifacts_is_not_told_of_any) {
  agent_fixture on;
  const auto model = hears({{.text = "ok"}});
  on.perform(asks("a", model, "Read.", {load_artifacts()}));
  BOOST_TEST(!tells_of_artifacts(model->heard.front()));
  BOOST_REQUIRE(model->heard.front().tools.size() == 1U);
  BOOST_TEST(model->heard.front().tools.front().name == "load_artifacts");
}

BOOST_AUTO_TEST_CASE(a_wrong_call_loads_nothing) {
  agent_fixture on;
  on.runtime.artifacts()->save(on.key, "a.txt", part("x")).value();
  const auto model = hears(
    {calling("load_artifacts", {{"artifact_names", "a.txt"}}), {.text = "ok"}});
  BOOST_TEST(on.perform(asks("a", model, {load_artifacts()}))
             == "a= a= a=ok | ok");
  BOOST_TEST(model->heard[1].contents.size() == 3U);
  BOOST_TEST(responses(on, on.key)[0].contains("error"));
}

BOOST_AUTO_TEST_CASE(a_runtime_without_artifacts_fails_the_agent) {
  const temporary_folder folder;
  agent_fixture on({.store = "sqlite:" + (folder.path() / "a.db").string()});
  BOOST_TEST(on.perform(asks("a", hears({{.text = "ok"}}), {load_artifacts()}))
             == "| invalid_argument");
  BOOST_TEST(on.last_reason().find("no artifact store") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_user_chooses) {
  pause_fixture on;
  const auto root
    = uses("a",
           scripted({{"a",
                      {calling("get_user_choice",
                               {{"options", json::array({"tea", "coffee"})}}),
                       {.text = "${input} ok"}}}}),
           {get_user_choice()});
  on.go(root);
  BOOST_REQUIRE(on.waits.size() == 1U);
  const auto open = on.runtime.sessions().open_calls(on.key).value();
  BOOST_TEST(!open.front().question);
  BOOST_TEST(open.front().args.data()["options"][1] == "coffee");
  on.go(root, answer(open.front(), "tea"));
  BOOST_TEST(on.waits.empty());
  BOOST_TEST(responses(on, on.key)[0]["result"] == "tea");
}

BOOST_AUTO_TEST_CASE(a_tool_that_only_prepares_is_not_offered) {
  agent_fixture on;
  const auto model = hears({calling("hint"), {.text = "ok"}});
  const tool hint(
    {.name = "hint",
     .prepare = [](readonly_context& context, model_request& request) {
       request.system_instruction += " for " + context.agent_name();
     }});
  BOOST_TEST(!hint.can_be_called());
  on.perform(asks("a", model, "Work", {hint}));
  BOOST_TEST(model->heard[0].system_instruction
             == "Work\n\nYou are an agent with the internal name \"a\". for a");
  BOOST_TEST(model->heard[0].tools.empty());
  BOOST_TEST(responses(on, on.key)[0]["error"].get<std::string>().find(
               "there is no tool 'hint'")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_preparation_that_throws_ends_the_agent) {
  agent_fixture on;
  const tool broken(
    {.name = "broken", .prepare = [](readonly_context&, model_request&) {
       throw std::runtime_error("no luck");
     }});
  BOOST_TEST(on.perform(asks("a", hears({{.text = "ok"}}), {broken}))
             == "| callback_failed");
  BOOST_TEST(on.last_reason().find("tool 'broken' of agent 'a'")
             != std::string::npos);
  BOOST_TEST(code_thrown_by([] { tool({.name = "empty"}); })
             == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
