// Tools that vendors run: which model has which, their form in requests, their
// work in answers, which goes back, and turns that the server has paused.

#include "troupe/models/delayed_model.hpp"
#include "troupe/models/fallback_model.hpp"
#include "troupe/models/recording_model.hpp"
#include "troupe/models/scripted_model.hpp"

#include "asked_model.hpp"
#include "recordings.hpp"
#include "requests.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <future>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(vendor_tools)

namespace {

std::vector<vendor_tool> tools_named(const std::vector<std::string>& names) {
  std::vector<vendor_tool> made;
  for (const auto& name : names)
    made.emplace_back(name);
  return made;
}

model_ptr model_of(wire_format_ptr format, std::string name) {
  http_model_options options;
  options.name = "x:" + name;
  options.format = std::move(format);
  options.model = std::move(name);
  return std::make_shared<http_model>(std::move(options));
}

// The tools of a request and further fields, or the failure.
json asked_for(const wire_format& format,
               const std::string& model,
               std::vector<vendor_tool> tools,
               bool with_functions = false,
               value config = {}) {
  auto body = body_of(
    request_of(format, {user_text("Hi")}, [&](auto& request, auto& with) {
      with.model = model;
      request.vendor_tools = std::move(tools);
      request.generation_config = config;
      if (with_functions)
        request.tools.push_back({"ping", "", {}});
    }));
  for (const auto* other :
       {"contents", "messages", "model", "max_tokens", "generationConfig"})
    body.erase(other);
  return body;
}

struct checked {
  std::string shown;
  wire_format_ptr format;
  std::string model;
  std::vector<std::string> tools;
  bool beside_functions;
  std::string reason; // Empty: accepted.
};

std::ostream& operator<<(std::ostream& to, const checked& each) {
  return to << each.shown;
}

const std::vector<checked> checks = {
  {"gemini has all of its own",
   gemini_format(),
   "gemini-2.5-flash",
   {"google_search", "url_context", "code_execution", "google_maps"},
   false,
   ""},
  {"gemini has not those of others",
   gemini_format(),
   "gemini-2.5-flash",
   {"web_search"},
   false,
   "Gemini model 'gemini-2.5-flash': the vendor does not run 'web_search' for "
   "this model; remove it or use another model (available: google_search, "
   "url_context, code_execution, google_maps)"},
  {"a search for companies is at Vertex",
   gemini_format(gemini_host::vertex),
   "projects/p/locations/l/publishers/google/models/gemini-2.5-flash",
   {"enterprise_web_search", "google_search"},
   false,
   ""},
  {"and only there",
   gemini_format(),
   "gemini-2.5-flash",
   {"enterprise_web_search"},
   false,
   "Gemini model 'gemini-2.5-flash': the vendor does not run "
   "'enterprise_web_search' for this model"},
  {"gemini 2 has no functions beside",
   gemini_format(gemini_host::vertex),
   "projects/p/locations/l/publishers/google/models/gemini-2.5-flash",
   {"google_search"},
   true,
   "Gemini model 'gemini-2.5-flash': it cannot use 'google_search' beside "
   "functions (tools, toolsets, sub-agents, transfer_to_agent, finish_task); "
   "use Gemini 3 or newer, or give the tool to an agent without functions and "
   "make that agent a tool (AgentTool)"},
  {"gemini 3 has",
   gemini_format(),
   "gemini-3-pro",
   {"google_search"},
   true,
   ""},
  {"a tuned model may have",
   gemini_format(gemini_host::vertex),
   "projects/p/locations/l/endpoints/77",
   {"google_search"},
   true,
   ""},
  {"claude has its own, beside functions",
   anthropic_format(),
   "claude-sonnet-4-5",
   {"web_search", "web_fetch", "code_execution"},
   true,
   ""},
  {"claude has not those of others",
   anthropic_format(),
   "claude-sonnet-4-5",
   {"web_search", "google_search"},
   false,
   "Anthropic model 'claude-sonnet-4-5': the vendor does not run "
   "'google_search' for this model; remove it or use another model (available: "
   "web_search, web_fetch, code_execution)"},
  {"claude at Vertex searches",
   anthropic_format(anthropic_host::vertex),
   "projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5",
   {"web_search"},
   false,
   ""},
  {"and does no more",
   anthropic_format(anthropic_host::vertex),
   "projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5",
   {"code_execution"},
   false,
   "Anthropic model 'claude-sonnet-4-5': the vendor does not run "
   "'code_execution' for this model; remove it or use another model "
   "(available: web_search)"},
  {"models for search at OpenAI",
   openai_format(),
   "gpt-4o-search-preview",
   {"web_search"},
   false,
   ""},
  {"others at OpenAI",
   openai_format(),
   "gpt-4.1-mini",
   {"web_search"},
   false,
   "OpenAI model 'gpt-4.1-mini': it has no tool 'web_search': in chat "
   "completions only models for search have it, such as gpt-5-search-api and "
   "gpt-4o-search-preview; for other models, call OpenAI's Responses API by "
   "the name openai-responses:NAME"},
  {"no code at OpenAI",
   openai_format(),
   "gpt-4o-search-preview",
   {"code_execution"},
   false,
   "OpenAI model 'gpt-4o-search-preview': it has no tool 'code_execution': "
   "OpenAI runs code in its Responses API only; call it by the name "
   "openai-responses:NAME"},
  {"all of its own in the Responses API",
   openai_responses_format(),
   "gpt-4.1-mini",
   {"web_search", "code_execution"},
   true,
   ""},
  {"and not those of others",
   openai_responses_format(),
   "gpt-4.1-mini",
   {"web_fetch"},
   false,
   "OpenAI model 'gpt-4.1-mini': the vendor does not run 'web_fetch' for "
   "this model; remove it or use another model (available: web_search, "
   "code_execution)"},
  {"no tool of others at OpenAI",
   openai_format(),
   "gpt-4o-search-preview",
   {"google_search"},
   false,
   "OpenAI model 'gpt-4o-search-preview': the vendor does not run "
   "'google_search' for this model; remove it or use another model (available: "
   "web_search)"},
  {"none in a model of your own",
   openai_format(),
   "qwen2.5",
   {"google_search"},
   false,
   "OpenAI model 'qwen2.5': the vendor does not run 'google_search' for this "
   "model; remove it or use another model (available: none)"},
};

} // namespace

// -- which model has which ----

BOOST_DATA_TEST_CASE(a_model_tells_which_tools_it_has,
                     data::make(checks),
                     each) {
  const auto model = model_of(each.format, each.model);
  const auto fit
    = model->check_vendor_tools(tools_named(each.tools), each.beside_functions);
  BOOST_TEST(code_of(fit) == (each.reason.empty() ? "ok" : "invalid_argument"));
  if (!fit)
    BOOST_TEST(fit.error().message().starts_with(each.reason),
               fit.error().message());
  BOOST_TEST(code_of(model->check_vendor_tools({}, true)) == "ok");
  // A request has the same rule.
  const auto made = asked_for(
    *each.format, each.model, tools_named(each.tools), each.beside_functions);
  BOOST_TEST(made.contains("reason") == !each.reason.empty());
}

BOOST_AUTO_TEST_CASE(a_wrapped_model_has_the_tools_of_its_model) {
  const auto claude = model_of(anthropic_format(), "claude-x");
  const auto gemini = model_of(gemini_format(), "gemini-2.5-flash");
  const auto script = std::make_shared<scripted_model>(troupe::script());
  const auto search = tools_named({"web_search"});
  const auto code = tools_named({"code_execution"});
  const auto check = [](const model_ptr& model, const auto& tools) {
    return code_of(model->check_vendor_tools(tools, false));
  };
  BOOST_TEST(check(script, search) == "ok");
  const std::vector<model_ptr> members{claude, gemini};
  const model_ptr list = std::make_shared<fallback_model>(members);
  BOOST_TEST(check(list, code) == "ok");
  BOOST_TEST(check(list, search) == "invalid_argument");
  BOOST_TEST(reason_of(list->check_vendor_tools(search, false))
               .starts_with("Gemini model 'gemini-2.5-flash': "));
  const auto slow
    = std::make_shared<delayed_model>(gemini, latencies(), std::uint64_t{1});
  BOOST_TEST(check(slow, code) == "ok");
  BOOST_TEST(check(slow, search) == "invalid_argument");
}

namespace {

class plain_model : public model {
public:
  std::string name() const override { return "plain"; }

  void generate(model_request, model_reply) override {}
};

} // namespace

BOOST_AUTO_TEST_CASE(a_model_of_a_program_has_none_unless_it_says_so) {
  plain_model model;
  BOOST_TEST(code_of(model.check_vendor_tools({}, true)) == "ok");
  BOOST_TEST(
    reason_of(model.check_vendor_tools(tools_named({"web_search"}), false))
    == "model 'plain' has no vendor tool 'web_search'; use a model of a vendor "
       "that runs it, or override check_vendor_tools");
}

// -- requests ----

BOOST_AUTO_TEST_CASE(gemini_gets_its_tools_beside_the_functions) {
  std::vector<vendor_tool> tools = tools_named({"url_context"});
  tools.emplace_back("google_search",
                     R"({"exclude_domains": ["a.example"]})"_json);
  BOOST_TEST(to_text(asked_for(*gemini_format(), "gemini-2.5-flash", tools))
             == to_text(R"({"tools": [{"urlContext": {}},
    {"googleSearch": {"excludeDomains": ["a.example"]}}]})"_json));
  auto expected = R"({"tools": [
    {"functionDeclarations": [{"name": "ping", "description": "",
      "parametersJsonSchema": {"type": "object", "properties": {}}}]},
    {"codeExecution": {}}],
    "toolConfig": {"includeServerSideToolInvocations": true}})"_json;
  const auto code = tools_named({"code_execution"});
  BOOST_TEST(to_text(asked_for(*gemini_format(), "gemini-3-pro", code, true))
             == to_text(expected));
  // A choice of the user stays.
  BOOST_TEST(to_text(asked_for(*gemini_format(),
                               "gemini-3-pro",
                               code,
                               true,
                               R"({"toolConfig":
      {"include_server_side_tool_invocations": false}})"_json)["toolConfig"])
             == R"({"include_server_side_tool_invocations":false})");
  expected.erase("toolConfig");
  BOOST_TEST(to_text(asked_for(*gemini_format(gemini_host::vertex),
                               "publishers/google/models/gemini-3-pro",
                               code,
                               true))
             == to_text(expected));
}

BOOST_AUTO_TEST_CASE(claude_gets_a_version_of_each_tool) {
  auto tools = tools_named({"web_fetch", "code_execution"});
  tools.emplace_back("web_search",
                     R"({"type": "web_search_20260318", "max_uses": 2})"_json);
  BOOST_TEST(to_text(asked_for(*anthropic_format(), "claude-x", tools))
             == to_text(R"({"tools": [
    {"type": "web_fetch_20250910", "name": "web_fetch"},
    {"type": "code_execution_20250825", "name": "code_execution"},
    {"type": "web_search_20260318", "name": "web_search", "max_uses": 2}
    ]})"_json));
  const std::vector<vendor_tool> wrong{
    vendor_tool("web_search", R"({"type": "web_fetch_20250910"})"_json)};
  BOOST_TEST(
    asked_for(*anthropic_format(), "claude-x", wrong)["reason"]
    == "the 'type' of the tool 'web_search' is \"web_fetch_20250910\"; "
       "it must begin with 'web_search_' and end with a version, or "
       "be left out for the default");
  const std::vector<vendor_tool> list{
    vendor_tool("web_search", json::array({1}))};
  BOOST_TEST(
    asked_for(*anthropic_format(), "claude-x", list)["reason"]
    == "the settings of the tool 'web_search' must be an object, such as "
       "{\"max_uses\": 3}, or null");
}

BOOST_AUTO_TEST_CASE(a_search_at_vertex_has_a_beta_header) {
  const auto header = [](anthropic_host host, std::vector<vendor_tool> tools) {
    const auto made = request_of(
      *anthropic_format(host), {user_text("Hi")}, [&](auto& request, auto&) {
        request.vendor_tools = std::move(tools);
      });
    std::string found;
    for (const auto& [name, value] : made.value().headers)
      if (name == "anthropic-beta")
        found += value;
    return found;
  };
  BOOST_TEST(header(anthropic_host::vertex, tools_named({"web_search"}))
             == "web-search-2025-03-05");
  BOOST_TEST(header(anthropic_host::vertex, {}) == "");
  BOOST_TEST(header(anthropic_host::anthropic, tools_named({"web_search"}))
             == "");
}

BOOST_AUTO_TEST_CASE(openai_gets_options_of_its_search) {
  BOOST_TEST(to_text(asked_for(*openai_format(),
                               "gpt-4o-search-preview",
                               tools_named({"web_search"})))
             == R"({"web_search_options":{}})");
  std::vector<vendor_tool> tools{
    vendor_tool("web_search", R"({"search_context_size": "low"})"_json)};
  BOOST_TEST(to_text(asked_for(*openai_format(), "gpt-5-search-api", tools))
             == R"({"web_search_options":{"search_context_size":"low"}})");
  BOOST_TEST(asked_for(*openai_format(),
                       "gpt-5-search-api",
                       tools,
                       false,
                       R"({"web_search_options": {}})"_json)["reason"]
             == "generation_config: 'web_search_options' of OpenAI is set "
                "already");
}

// -- the work goes back ----

namespace {

content answer_in(const std::string& vendor,
                  const wire_format& format,
                  const std::string& name) {
  const auto text = recordings(vendor).text(name, ".json");
  return format.read_answer(text, {}).value().content;
}

json sent(const wire_format& format,
          std::vector<content> said,
          const std::string& model = "some-model") {
  return body_of(request_of(
    format, std::move(said), [&](auto&, auto& with) { with.model = model; }));
}

} // namespace

BOOST_AUTO_TEST_CASE(claude_gets_its_blocks_back_as_they_came) {
  const auto text = recordings("anthropic").text("server_tools", ".json");
  const auto answer
    = answer_in("anthropic", *anthropic_format(), "server_tools");
  const auto expected = to_text(parse_json(text).value()["content"]);
  const auto body
    = sent(*anthropic_format(), {user_text("Hi"), answer, user_text("And?")});
  BOOST_TEST(to_text(body["messages"][1]["content"]) == expected);
  // A new message of the user begins a new container.
  BOOST_TEST(!body.contains("container"));
  // Also after a store has kept it.
  const auto kept = content_from_json(to_json(answer)).value();
  BOOST_TEST(
    to_text(sent(
      *anthropic_format(),
      {user_text("Hi"), kept, user_text("And?")})["messages"][1]["content"])
    == expected);
}

BOOST_AUTO_TEST_CASE(the_container_goes_on_with_results_of_tools) {
  auto answer = answer_in("anthropic", *anthropic_format(), "server_tools");
  answer.parts.emplace_back(function_call("1", "ping"));
  const content result("user",
                       {part(function_response("1", "ping", json::object()))});
  const auto body
    = sent(*anthropic_format(), {user_text("Hi"), answer, result});
  BOOST_TEST(body["container"] == "container_011");
}

BOOST_AUTO_TEST_CASE(gemini_gets_its_parts_back_as_they_came) {
  const auto text = recordings("gemini").text("server_tools", ".json");
  const auto answer = answer_in("gemini", *gemini_format(), "server_tools");
  const std::vector<content> said{user_text("Hi"), answer, user_text("And?")};
  const auto parts
    = parse_json(text).value()["candidates"][0]["content"]["parts"];
  BOOST_TEST(to_text(sent(
               *gemini_format(), said, "gemini-3-pro")["contents"][1]["parts"])
             == to_text(parts));
  // Vertex knows code, and no calls of other tools.
  BOOST_TEST(to_text(sent(
               *gemini_format(gemini_host::vertex),
               said,
               "publishers/google/models/gemini-3-pro")["contents"][1]["parts"])
             == to_text(json::array({parts[0], parts[1], parts[4]})));
}

BOOST_AUTO_TEST_CASE(another_vendor_gets_code_as_text_and_no_calls) {
  const auto of_claude
    = answer_in("anthropic", *anthropic_format(), "server_tools");
  const auto of_gemini = answer_in("gemini", *gemini_format(), "server_tools");
  const auto both = [](const wire_format& format, const content& answer) {
    auto quoted = answer;
    quoted.role = "user"; // As another agent's words are shown.
    return sent(format, {user_text("Hi"), answer, quoted}, "gemini-3-pro");
  };
  const std::string code = "Code:```python\nprint(1)\n```";
  const std::string output = "Execution Result:```code_output\n1\n\n```";
  const auto at_claude = both(*anthropic_format(), of_gemini)["messages"];
  const auto expected
    = to_text(json::array({{{"type", "text"}, {"text", code}},
                           {{"type", "text"}, {"text", output}},
                           {{"type", "text"}, {"text", "Owls."}}}));
  BOOST_TEST(to_text(at_claude[1]["content"]) == expected);
  BOOST_TEST(to_text(at_claude[2]["content"]) == expected);
  const auto at_openai = both(*openai_format(), of_gemini)["messages"];
  BOOST_TEST(at_openai[1]["content"] == code + '\n' + output + "\nOwls.");
  BOOST_TEST(to_text(at_openai[2]["content"]) == expected);
  const auto at_gemini = both(*gemini_format(), of_claude)["contents"];
  const auto shown = R"j([{"text": "I look."}, {"text": "Owls hunt at night."},
    {"executableCode": {"language": "PYTHON", "code": "print(1+1)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2\n"}},
    {"text": "Done."}])j"_json;
  BOOST_TEST(to_text(at_gemini[1]["parts"]) == to_text(shown));
  BOOST_TEST(to_text(at_gemini[2]["parts"]) == to_text(shown));
}

BOOST_AUTO_TEST_CASE(calls_without_results_do_not_go_back) {
  auto answer = answer_in("anthropic", *anthropic_format(), "server_tools");
  answer.parts.resize(2); // Its search has no result.
  const auto one = to_text(R"([{"type": "text", "text": "I look."}])"_json);
  const auto rest = [&](std::vector<content> said) {
    const auto body = sent(*anthropic_format(), std::move(said));
    return to_text(body["messages"][1]["content"]);
  };
  BOOST_TEST(rest({user_text("Hi"), answer, user_text("And?")}) == one);
  auto only = answer;
  only.parts.erase(only.parts.begin());
  const auto body
    = sent(*anthropic_format(), {user_text("Hi"), only, user_text("And?")});
  BOOST_TEST(body["messages"].size() == 2U);
  // A result comes after those of other tools, in a later answer.
  auto mixed = answer;
  mixed.parts.emplace_back(function_call("1", "ping"));
  const content result("user",
                       {part(function_response("1", "ping", json::object()))});
  BOOST_TEST(parse_json(rest({user_text("Hi"), mixed, result})).value().size()
             == 3U);
  auto late = answer_in("anthropic", *anthropic_format(), "server_tools");
  late.parts.erase(late.parts.begin(), late.parts.begin() + 2);
  BOOST_TEST(
    parse_json(rest({user_text("Hi"), mixed, result, late})).value().size()
    == 3U);
  // Nor does a result without its call.
  late.parts.resize(2);
  BOOST_TEST(
    rest({user_text("Hi"), late, user_text("And?")}).find("tool_result")
    == std::string::npos);
}

// -- answers ----

BOOST_AUTO_TEST_CASE(places_of_sources_are_in_bytes) {
  const json note{{"type", "url_citation"},
                  {"url_citation",
                   {{"url", "https://a.example"},
                    {"title", "A"},
                    {"start_index", 2},
                    {"end_index", 4}}}};
  auto beyond = note;
  beyond["url_citation"]["end_index"] = 99;
  const json body{
    {"choices",
     {{{"index", 0},
       {"finish_reason", "stop"},
       {"message", {{"content", "é€bc"}, {"annotations", {note, beyond}}}}}}}};
  const auto read = openai_format()->read_answer(to_text(body), {}).value();
  BOOST_TEST(to_text(read.extra.data()["groundingMetadata"]) == to_text(R"({
    "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
    "groundingSupports": [{"segment": {"partIndex": 0, "startIndex": 5,
      "endIndex": 7, "text": "bc"}, "groundingChunkIndices": [0]}]})"_json));
}

BOOST_AUTO_TEST_CASE(errors_of_code_are_told) {
  const auto output = [](const json& held) {
    const json body{{"content",
                     {{{"type", "code_execution_tool_result"},
                       {"tool_use_id", "1"},
                       {"content", held}}}},
                    {"stop_reason", "end_turn"}};
    const auto read = anthropic_format()->read_answer(to_text(body), {});
    return to_text(
      to_json(read.value().content)["parts"][0]["codeExecutionResult"]);
  };
  BOOST_TEST(output(R"({"type": "code_execution_result", "stdout": "a",
      "stderr": "NameError\n", "return_code": 1, "content": []})"_json)
             == R"({"id":"1","outcome":"OUTCOME_FAILED",)"
                R"("output":"NameError\na"})");
  BOOST_TEST(output(R"({"type": "code_execution_tool_result_error",
      "error_code": "unavailable"})"_json)
             == R"({"id":"1","outcome":"OUTCOME_FAILED",)"
                R"("output":"unavailable"})");
}

BOOST_AUTO_TEST_CASE(a_call_of_the_server_that_is_cut_off_is_told) {
  const std::string stream
    = "data: {\"type\":\"content_block_start\",\"index\":0,"
      "\"content_block\":{\"type\":\"server_tool_use\",\"id\":\"1\","
      "\"name\":\"web_search\",\"input\":{}}}\n\n"
      "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
      "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"qu\"}}\n\n"
      "data: {\"type\":\"message_delta\",\"delta\":"
      "{\"stop_reason\":\"max_tokens\"}}\n\n"
      "data: {\"type\":\"message_stop\"}\n\n";
  const auto seen = play(*anthropic_format(), stream, {}).whole;
  BOOST_TEST(seen["code"] == "model_failed");
  BOOST_TEST(seen["reason"].get<std::string>().starts_with(
    "it called the tool 'web_search' of the vendor with malformed arguments"));
}

// -- paused turns ----

namespace {

const std::string use_of = R"({"type": "server_tool_use", "id": "s1",
  "name": "web_search", "input": {"query": "owls"}})";
const std::string result_of = R"({"type": "web_search_tool_result",
  "tool_use_id": "s1", "content": []})";

std::string message(const std::string& blocks, const std::string& reason) {
  return R"({"model": "claude-x", "content": [)" + blocks
         + R"(], "stop_reason": ")" + reason
         + R"(", "usage": {"input_tokens": 5, "output_tokens": 2}})";
}

// A model of Claude that a test asks once.
struct claude_asked {
  explicit claude_asked(http_server::answerer answer, bool streams = false)
    : server(std::move(answer)) {
    options.format = anthropic_format();
    options.model = "claude-x";
    options.base_url = server.url("");
    options.streams = streams;
    options.client = std::make_shared<http_client>();
    options.retries.first = std::chrono::milliseconds(1);
    options.retries.longest = std::chrono::milliseconds(1);
  }

  result<model_response> ask() {
    std::promise<result<model_response>> ended;
    http_model model(options);
    model_request wanted;
    wanted.contents
      = {std::make_shared<const content>(user_text("What about owls?"))};
    wanted.vendor_tools = tools_named({"web_search"});
    wanted.environment = system_environment();
    model.generate(std::move(wanted), [&](result<model_response> answer) {
      if (answer && answer->partial)
        pieces += answer->content.text() + "|";
      else
        ended.set_value(std::move(answer));
    });
    return ended.get_future().get();
  }

  json body(std::size_t index) const {
    return parse_json(server.requests().at(index).body).value();
  }

  http_server server;
  http_model_options options;
  std::string pieces;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_paused_turn_goes_on_and_is_one_answer) {
  const auto text = R"({"type": "text", "text": "I look."})";
  claude_asked on(in_turn(
    {once(whole(message(std::string(text) + "," + use_of, "pause_turn"))),
     once(whole(message(result_of, "pause_turn"))),
     once(
       whole(message(R"({"type": "text", "text": "Owls."})", "end_turn")))}));
  const auto answer = on.ask();
  BOOST_TEST_REQUIRE(code_of(answer) == "ok");
  BOOST_TEST(answer->content.parts.size() == 4U);
  BOOST_TEST(answer->content.text() == "I look.Owls.");
  BOOST_TEST(to_text(answer->extra.data()) == to_text(R"({
    "finishReason": "STOP", "modelVersion": "claude-x",
    "groundingMetadata": {"webSearchQueries": ["owls"]},
    "usageMetadata": {"promptTokenCount": 15, "candidatesTokenCount": 6,
                      "totalTokenCount": 21}})"_json));
  BOOST_TEST_REQUIRE(on.server.requests().size() == 3U);
  // The paused answer is the last message of the next request.
  const auto second = on.body(1)["messages"];
  BOOST_TEST_REQUIRE(second.size() == 2U);
  BOOST_TEST(second[1]["role"] == "assistant");
  BOOST_TEST(
    to_text(second[1]["content"])
    == to_text(
      parse_json("[" + std::string(text) + "," + use_of + "]").value()));
  const auto third = on.body(2)["messages"];
  BOOST_TEST(third.size() == 2U);
  BOOST_TEST(third[1]["content"].size() == 3U);
}

namespace {

// A streamed answer of one word. The server keeps the connection open.
server_script streamed(const std::string& word, const std::string& reason) {
  const auto events
    = R"(data: {"type":"content_block_start","index":0,)"
      R"("content_block":{"type":"text","text":")"
      + word
      + "\"}}\n\n"
        R"(data: {"type":"message_delta","delta":{"stop_reason":")"
      + reason + "\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
  return {say(stream_head + chunk(events)), hold()};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_paused_stream_goes_on) {
  claude_asked on(
    in_turn({streamed("Owls ", "pause_turn"), streamed("hunt.", "end_turn")}),
    true);
  const auto answer = on.ask();
  BOOST_TEST_REQUIRE(code_of(answer) == "ok");
  BOOST_TEST(answer->content.text() == "Owls hunt.");
  BOOST_TEST(on.pieces == "Owls |hunt.|");
  BOOST_TEST(on.server.requests().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_failure_within_a_paused_stream_is_retried) {
  claude_asked on(in_turn({streamed("Owls ", "pause_turn"),
                           once(whole(refusal_of("later"), 529)),
                           streamed("hunt.", "end_turn")}),
                  true);
  const auto answer = on.ask();
  BOOST_TEST_REQUIRE(code_of(answer) == "ok");
  BOOST_TEST(answer->content.text() == "Owls hunt.");
  BOOST_TEST(on.pieces == "Owls |hunt.|");
}

BOOST_AUTO_TEST_CASE(a_failure_within_a_paused_turn_is_retried) {
  claude_asked on(in_turn(
    {once(whole(message(use_of, "pause_turn"))),
     once(whole(refusal_of("later"), 529)),
     once(whole(message(result_of + R"(,{"type": "text", "text": "Owls."})",
                        "end_turn")))}));
  const auto answer = on.ask();
  BOOST_TEST_REQUIRE(code_of(answer) == "ok");
  BOOST_TEST(answer->content.text() == "Owls.");
  BOOST_TEST(to_text(on.body(1)) == to_text(on.body(2)));
}

BOOST_AUTO_TEST_CASE(a_turn_that_is_paused_for_ever_ends) {
  claude_asked on(in_turn({once(whole(message(use_of, "pause_turn")))}));
  const auto answer = on.ask();
  BOOST_TEST_REQUIRE(code_of(answer) == "ok");
  BOOST_TEST(answer->extra.data()["errorCode"] == "PAUSE_TURN");
  BOOST_TEST(on.server.requests().size() == 17U);
}

BOOST_AUTO_TEST_CASE(sources_of_a_paused_turn_are_joined) {
  const auto cited = [](const std::string& words, const std::string& page) {
    return R"({"type": "text", "text": ")" + words
           + R"(", "citations": [{"type": "web_search_result_location",
             "url": "https://)"
           + page + R"(.example", "title": ")" + page
           + R"(", "encrypted_index": "x", "cited_text": "y"}]})";
  };
  claude_asked on(
    in_turn({once(whole(message(cited("One.", "a"), "pause_turn"))),
             once(whole(message(cited("Two.", "b"), "end_turn")))}));
  const auto answer = on.ask();
  BOOST_TEST_REQUIRE(code_of(answer) == "ok");
  const auto& fields = answer->extra.data();
  BOOST_TEST(fields["citationMetadata"]["citations"].size() == 2U);
  BOOST_TEST(to_text(fields["groundingMetadata"]) == to_text(R"({
    "groundingChunks": [{"web": {"uri": "https://a.example", "title": "a"}},
                        {"web": {"uri": "https://b.example", "title": "b"}}],
    "groundingSupports": [
      {"segment": {"partIndex": 0, "startIndex": 0, "endIndex": 4,
                   "text": "One."}, "groundingChunkIndices": [0]},
      {"segment": {"partIndex": 1, "startIndex": 0, "endIndex": 4,
                   "text": "Two."}, "groundingChunkIndices": [1]}]})"_json));
}

BOOST_AUTO_TEST_SUITE_END()
