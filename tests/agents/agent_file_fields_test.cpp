// The less simple fields of agent files, and the agents that they make.

#include "troupe/agents/standard_tools.hpp"

#include "../outcome.hpp"
#include "agent_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <chrono>
#include <ostream>
#include <string>
#include <vector>

namespace troupe {

BOOST_AUTO_TEST_SUITE(agent_file_fields)

namespace {

namespace data = boost::unit_test::data;
using namespace std::chrono_literals;

const std::string head = "name: a\nmodel: scripted:replies.json\n";

struct with_callbacks : folder {
  with_callbacks() {
    auto& known = options.callbacks;
    known.agent.emplace("greet", [](callback_context&) {});
    known.before_model.emplace("look",
                               [](callback_context&, model_request&) {});
    known.after_tool.emplace(
      "log", [](const tool&, const json&, tool_context&, const json&) {
        return std::optional<json>();
      });
  }
};

struct refused {
  std::string text;
  std::string reason; ///< Follows the folder: `root_agent.yaml:LINE: …`.
};

std::ostream& operator<<(std::ostream& out, const refused& each) {
  return out << each.text;
}

const refused all_refused[] = {
  {"output_schema: {type: 5}\n", ":3: output_schema: not a JSON Schema"},
  {"output_schema: text\n", ":3: 'output_schema' must be a mapping"},
  {"disallow_transfer_to_peers: \"true\"\n",
   ":3: 'disallow_transfer_to_peers'"},
  {"generate_content_config: {tools: []}\n", "sets 'tools'"},
  {"before_agent_callbacks: [wave]\n",
   ":3: unknown callback 'wave' in before_agent_callbacks; known ones: greet"},
  {"before_model_callbacks: [greet]\n", "known ones: look"},
  {"on_tool_error_callbacks: [x]\n", "known ones: none"},
  {"before_tool_callbacks: log\n",
   ":3: 'before_tool_callbacks' must be a list"},
  {"after_agent_callbacks: [{name: greet, x: 1}]\n", "a callback has name"},
  {"lanes_max: 2\n", ":3: this class has no field 'lanes_max'; LlmAgent has"},
  {"tools: [{name: count, args: {}}]\n",
   "name a tool of the program without them"},
  {"tools: [{name: AgentTool, args: {}}]\n", ":3: expected {agent:"},
  {"tools: [{name: AgentTool, args: {agent: {name: b}, x: 1}}]\n",
   "unknown field 'x'; AgentTool has"},
  {"tools: [{name: AgentTool, args: {agent: {nam: b}}}]\n",
   "unknown field 'nam'"},
  {"tools: [{name: AgentTool, x: 1, args: {agent: {name: b}}}]\n",
   "unknown field 'x'; a tool has"},
  {"tools: [{name: count, require_confirmation: sure}]\n",
   "'require_confirmation'"},
  {"tools: [{name: count, long_running: true}]\n",
   "a tool has name and require_confirmation"},
  {"tools: [{name: LongRunningFunctionTool, args: {func: nobody}}]\n",
   ":3: unknown tool 'nobody'"},
  {"tools: [{name: LongRunningFunctionTool, args: {}}]\n", "expected {func:"},
};

// Files of ADK may name Python code. The reason tells the way out.
const refused python_refused[] = {
  {"output_schema: {name: shop.Verdict}\n",
   ":3: 'shop.Verdict' names Python code, which troupe cannot run; write the "
   "JSON Schema in this file, such as {type: object, properties: "},
  {"output_schema:\n  name: Verdict\n",
   ":3: 'Verdict' names Python code, which troupe cannot run"},
  {"output_schema: {name: shop.Verdict, args: {a: 1}}\n",
   ":3: 'shop.Verdict' names Python code"},
  {"output_schema: shop.Verdict\n", ":3: 'shop.Verdict' names Python code"},
  {"input_schema: {name: shop.Order}\n", ":3: 'shop.Order' names Python code"},
  {"tools: [shop.tools.search]\n",
   ":3: 'shop.tools.search' names Python code, which troupe cannot run; make a "
   "program a tool (command: [PROGRAM, …]), call an HTTP API "
   "(OpenAPIToolset), use an MCP server (McpToolset), name a tool of the "
   "program (C++), or make an agent a tool (AgentTool); "
   "known tools: count, measure"},
  {"tools:\n- count\n- name: shop.tools.search\n  args: [{name: a, value: "
   "1}]\n",
   ":5: 'shop.tools.search' names Python code"},
  {"tools: [{name: LongRunningFunctionTool, args: {func: shop.ask}}]\n",
   ":3: 'shop.ask' names Python code"},
  {"tools: [ExampleTool]\n",
   ":3: troupe does not have ADK's tool 'ExampleTool'; make a program a "
   "tool"},
  {"tools: [google.adk.tools.example_tool.ExampleTool]\n",
   ":3: troupe does not have ADK's tool "
   "'google.adk.tools.example_tool.ExampleTool'"},
  {"tools: [{name: VertexAiSearchTool, args: {data_store_id: x}}]\n",
   ":3: troupe does not have ADK's tool 'VertexAiSearchTool'"},
  {"tools: [google.adk.tools.agent_tool.AgentTool]\n",
   ":3: AgentTool needs args"},
  {"tools: [LongRunningFunctionTool]\n",
   ":3: LongRunningFunctionTool needs args"},
  {"tools: [{name: AgentTool, args: {agent: {code: shop.agent}}}]\n",
   ":3: 'shop.agent' names Python code"},
  {"before_agent_callbacks: [shop.greet]\n",
   ":3: 'shop.greet' names Python code, which troupe cannot run; name a "
   "callback of the program (C++)"},
  {"sub_agents:\n- code: shop.agents.helper\n",
   ":4: 'shop.agents.helper' names Python code, which troupe cannot run; write "
   "the agent in this file, or name its file with config_path"},
  {"agent_class: shop.MyAgent\n",
   ":3: 'shop.MyAgent' names Python code, which troupe cannot run; expected "
   "one "
   "of LlmAgent, "},
  {"agent_class: FunctionNode\n",
   ":3: troupe does not have ADK's class 'FunctionNode'; expected one of "
   "LlmAgent"},
  {"agent_class: google.adk.agents.RemoteA2aAgent\n",
   ":3: troupe does not have ADK's class 'google.adk.agents.RemoteA2aAgent'"},
  {"agent_class: google.adk.agents.loop_agent.LlmAgent\n",
   ":3: troupe does not have ADK's class"},
  {"agent_class: google.adk.agents.MapAgent\n",
   ":3: troupe does not have ADK's class"},
  {"model_code: {name: shop.model}\n",
   ":3: 'model_code' names Python code, which troupe cannot run; use 'model' "
   "in its place"},
  {"output_schema_code: shop.Verdict\n",
   ":3: 'output_schema_code' names Python code, which troupe cannot run; use "
   "'output_schema' in its place"},
};

// Fields of ADK that troupe does not have.
const refused missing_refused[] = {
  {"planner: {}\n", ":3: 'planner' cannot be used: troupe has no planners"},
  {"planner_code: x\n", ":3: 'planner_code' cannot be used: troupe has no"},
  {"code_executor: {}\n", ":3: 'code_executor' cannot be used: "},
  {"mode: quick\n",
   ":3: unknown mode 'quick'; expected one of chat, task, single_turn"},
  {"parallel_worker: true\n", "use a MapAgent"},
  {"max_parallel_workers: 2\n", "a MapAgent has a lanes_max"},
  {"retry_config: {}\n", "'attempts' of 'model'"},
  {"timeout: 3\n", "lane_timeout"},
  {"state_schema: {}\n", "does not check the types of state keys"},
  {"edges: []\n", ":3: this class has no field 'edges'; LlmAgent has "},
  {"func: f\n", "it belongs to nodes that are Python functions"},
  {"before_model_callback: look\n",
   ":3: unknown field 'before_model_callback'; write 'before_model_callbacks', "
   "a list"},
};

const refused static_refused[] = {
  {"static_instruction: []\n",
   ":3: 'static_instruction' has no part; leave it out"},
  {"static_instruction: {parts: []}\n",
   ":3: 'static_instruction' has no part; leave it out"},
  {"static_instruction:\n- a\n- {txt: b}\n",
   ":5: a part of static_instruction is a text, {text: …}, {inlineData: "},
  {"static_instruction: {text: a, thought: true}\n",
   ":3: a part of static_instruction is"},
  {"static_instruction: {text: [a]}\n", ":3: a part of static_instruction is"},
  {"static_instruction: [[a]]\n", ":3: a part of static_instruction is"},
  {"static_instruction: [~]\n", ":3: a part of static_instruction is"},
  {"static_instruction: {role: user}\n", ":3: a part of static_instruction"},
  {"static_instruction: {functionCall: {name: f}}\n",
   ":3: a part of static_instruction is"},
  {"static_instruction: {parts: [a],\n  rule: user}\n",
   ":4: unknown field 'rule'; content has role and parts"},
  {"static_instruction: {inlineData: {mimeType: image/png}}\n",
   ":3: inlineData: 'data' is missing"},
  {"static_instruction: {inlineData: {mimeType: a/b, data: '*'}}\n",
   ":3: inlineData: "},
  {"static_instruction: {inlineData: {data: aGk=}}\n",
   ":3: inlineData: 'mimeType' is missing"},
  {"static_instruction: {inlineData: text}\n", ":3: inlineData"},
  {"static_instruction: {inlineData: {mimeType: a/b, data: aGk=, x: 1}}\n",
   ":3: inlineData has no field 'x'"},
  {"static_instruction: {fileData: {mimeType: a/b}}\n",
   ":3: fileData: 'fileUri' is missing"},
  {"static_instruction: {fileData: {fileUri: gs://x, y: 1}}\n",
   ":3: fileData has no field 'y'"},
};

// Mappings that would let every JSON pass.
const refused unchecked_schemas[] = {
  {"output_schema: {}\n",
   ":3: 'output_schema' has no keyword of JSON Schema that checks anything, so "
   "every JSON would fit; write the JSON Schema in this file, such as {type: "
   "object, properties: {…}}. A schema needs a type, an enum, required names, "
   "or properties with such schemas"},
  {"input_schema: {title: Order}\n", ":3: 'input_schema' has no keyword"},
  {"output_schema: {stars: {type: integer}, name: {type: string}}\n",
   ":3: 'output_schema' has no keyword"},
};

// Schemas with keywords that check nothing.
const std::string wide_schemas[] = {
  "{properties: {}}",
  "{properties: {a: {}, b: {description: A text.}}}",
  "{patternProperties: {a: true}}",
  "{additionalProperties: true}",
  "{items: {}}",
  "{items: [{}, true], additionalItems: {}}",
  "{additionalItems: {type: string}}",
  "{required: []}",
  "{anyOf: [{}]}",
  "{anyOf: [{type: string}, {title: Other}]}",
  "{oneOf: [{}]}",
  "{allOf: [{}, {properties: {}}]}",
  "{minLength: 0, minItems: 0, minProperties: 0, uniqueItems: false}",
  "{format: email}",
  "{not: false}",
  "{if: {type: string}, then: {}}",
  "{then: {type: string}}",
  "{dependencies: {a: [], b: {}}}",
  "{propertyNames: {}}",
  "{$ref: '#/definitions/a', definitions: {a: {}}}",
  "{allOf: [{$ref: '#'}]}",
};

const std::string narrow_schemas[] = {
  "{properties: {a: {type: string}}}",
  "{patternProperties: {a: {minimum: 1}}}",
  "{additionalProperties: false}",
  "{items: {enum: [a]}}",
  "{items: [{}], additionalItems: false}",
  "{required: [a]}",
  "{contains: {}}",
  "{anyOf: [{type: string}, {const: 1}]}",
  "{oneOf: [{}, {type: string}]}",
  "{allOf: [{}, {maxLength: 3}]}",
  "{minLength: 1}",
  "{uniqueItems: true}",
  "{format: date}",
  "{not: {type: string}}",
  "{if: {type: string}, else: {type: number}}",
  "{dependencies: {a: [b]}}",
  "{propertyNames: {pattern: ^a}}",
  "{$ref: '#/definitions/a', definitions: {a: {type: string}}}",
  "{anyOf: [{$ref: '#/definitions/a'}, {$ref: '#/definitions/a'}], "
  "definitions: {a: {type: string}}}",
};

const refused lanes_refused[] = {
  {"on_failure: sometimes\n",
   ":3: unknown on_failure 'sometimes'; expected one of fail_fast, collect, "
   "quorum"},
  {"on_failure: quorum\nquorum: 2\n", "cannot be reached by 1 lanes"},
  {"quorum: 1\n", "on_failure is not quorum"},
  {"lane_timeout: 0\n", ":3: 'lane_timeout' must be a number of seconds"},
  {"lane_timeout: soon\n", ":3: 'lane_timeout' must be a number of seconds"},
  {"isolate_temp: maybe\n", ":3: 'isolate_temp' must be true or false"},
};

} // namespace

BOOST_FIXTURE_TEST_CASE(an_llm_agent_may_say_everything, with_callbacks) {
  const auto loaded = load(head + R"(instruction: own
global_instruction: all
static_instruction: always
generate_content_config:
  temperature: 0.5
  stopSequences: ["1", two, "true"]
output_schema:
  type: object
  required: [x]
input_schema: {type: object}
disallow_transfer_to_parent: true
disallow_transfer_to_peers: false
before_agent_callbacks: [greet, name: greet]
before_model_callbacks:
- look
after_tool_callbacks: [log]
sub_agents:
- name: below
)");
  BOOST_TEST_REQUIRE(loaded.has_value());
  const auto& read = std::get<llm_options>(loaded->kind());
  BOOST_TEST(std::get<std::string>(read.global_instruction.source()) == "all");
  BOOST_TEST(read.static_instruction == "always");
  BOOST_TEST(
    read.generation_config
    == json::parse(
      R"({"temperature": 0.5, "stopSequences": ["1", "two", "true"]})"));
  BOOST_TEST(read.output_schema->text()
             == json::parse(R"({"type": "object", "required": ["x"]})"));
  BOOST_TEST(read.input_schema.has_value());
  BOOST_TEST(read.disallow_transfer_to_parent);
  BOOST_TEST(!read.disallow_transfer_to_peers);
  BOOST_TEST(read.before_agent.size() == 2U);
  BOOST_TEST(read.before_model.size() == 1U);
  BOOST_TEST(read.after_tool.size() == 1U);
  BOOST_TEST(loaded->transfers());
}

// ADK's code replaces `{{key}}`, and the files are written for it.
BOOST_FIXTURE_TEST_CASE(instructions_of_files_have_any_braces, folder) {
  write("helper.yaml",
        "name: helper\ninstruction: '{{a}}'\nglobal_instruction: '{{b}}'\n");
  options.overrides = {{"below", {{"instruction", "{{c}}"}}}};
  const auto loaded = load(head + R"(instruction: On {{topic}}.
global_instruction: For {{name}}.
tools: [{name: AgentTool, args: {agent: {config_path: helper.yaml}}}]
sub_agents:
- name: below
)");
  BOOST_TEST_REQUIRE(loaded.has_value());
  const auto check = [](const agent& each, const std::string& text) {
    const auto& read = std::get<llm_options>(each.kind());
    BOOST_TEST(std::get<std::string>(read.instruction.source()) == text);
    BOOST_CHECK(read.instruction.braces() == template_braces::any);
    BOOST_CHECK(read.global_instruction.braces() == template_braces::any);
  };
  check(*loaded, "On {{topic}}.");
  check(loaded->sub_agents().at(0), "{{c}}");
  const auto& tools = std::get<llm_options>(loaded->kind()).tools;
  check(*tools.at(0).options().as_agent, "{{a}}");
  BOOST_CHECK(instruction("{{k}}").braces() == template_braces::single);
}

BOOST_FIXTURE_TEST_CASE(every_agent_gets_the_callbacks_of_the_program, folder) {
  const before_tool_callback nothing
    = [](const tool&, json&, tool_context&) { return std::optional<json>(); };
  options.callbacks.before_tool.emplace("own", nothing);
  options.before_tool = {nothing};
  write("helper.yaml", "name: helper\nmodel: scripted:replies.json\n");
  const auto loaded = load(head + R"(before_tool_callbacks: [own]
tools: [{name: AgentTool, args: {agent: {config_path: helper.yaml}}}]
sub_agents:
- name: below
)");
  BOOST_TEST_REQUIRE(loaded.has_value());
  const auto count = [](const agent& each) {
    return std::get<llm_options>(each.kind()).before_tool.size();
  };
  BOOST_TEST(count(*loaded) == 2U);
  BOOST_TEST(count(loaded->sub_agents().at(0)) == 1U);
  const auto& tools = std::get<llm_options>(loaded->kind()).tools;
  BOOST_TEST(count(*tools.at(0).options().as_agent) == 1U);
}

BOOST_FIXTURE_TEST_CASE(lanes_may_be_limited, folder) {
  const auto loaded = load(R"(agent_class: ParallelAgent
name: p
lanes_max: 4
on_failure: quorum
quorum: 1
lane_timeout: 0.25
isolate_temp: true
sub_agents:
- name: a
  model: scripted:replies.json
)");
  BOOST_TEST_REQUIRE(loaded.has_value());
  const auto& read = std::get<parallel_options>(loaded->kind());
  BOOST_TEST(read.lanes_max.value() == 4U);
  BOOST_CHECK(read.on_failure == lane_failures::quorum);
  BOOST_TEST(read.quorum == 1U);
  BOOST_CHECK(read.lane_timeout == 250ms);
  BOOST_TEST(read.isolate_temp);
}

BOOST_FIXTURE_TEST_CASE(a_map_names_its_list, folder) {
  const std::string sub = "sub_agents:\n- name: a\n  model: "
                          "scripted:replies.json\n";
  const auto loaded
    = load("agent_class: MapAgent\nname: m\nitems_key: list\noutput_key: "
           "user:done\non_failure: collect\n"
           + sub);
  BOOST_TEST_REQUIRE(loaded.has_value());
  const auto& read = std::get<map_options>(loaded->kind());
  BOOST_TEST(read.items_key == "list");
  BOOST_TEST(read.output_key == "user:done");
  BOOST_CHECK(read.on_failure == lane_failures::collect);
  BOOST_TEST(failure("agent_class: MapAgent\nname: m\n" + sub)
               .find("needs a field 'items_key'")
             != std::string::npos);
  BOOST_TEST(failure("agent_class: MapAgent\nname: m\nitems_key: l\n")
               .find("needs one agent")
             != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_tool_may_be_an_agent, folder) {
  write("helper.yaml", "name: helper\ndescription: Helps.\n");
  const auto loaded = load(head + R"(tools:
- count
- name: AgentTool
  args:
    agent: {config_path: helper.yaml}
    skip_summarization: true
- name: AgentTool
  args:
    agent:
      name: inline
      sub_agents:
      - name: a
)");
  BOOST_TEST_REQUIRE(loaded.has_value());
  const auto& tools = std::get<llm_options>(loaded->kind()).tools;
  BOOST_TEST_REQUIRE(tools.size() == 3U);
  BOOST_TEST(tools[1].name() == "helper");
  BOOST_TEST(tools[1].description() == "Helps.");
  BOOST_TEST(tools[1].options().skip_summarization);
  // The inner agent uses the model of the outer one, and has names of its own.
  const auto& inside = *tools[2].options().as_agent;
  BOOST_TEST(std::get<llm_options>(inside.kind()).model->name()
             == "scripted:replies.json");
}

BOOST_FIXTURE_TEST_CASE(a_tool_may_run_long_or_need_confirmation, folder) {
  const auto loaded = load(head + R"(tools:
- name: LongRunningFunctionTool
  args: {func: count}
- name: AgentTool
  require_confirmation: true
  args: {agent: {name: helper}}
)");
  BOOST_TEST_REQUIRE(loaded.has_value());
  const auto& tools = std::get<llm_options>(loaded->kind()).tools;
  BOOST_TEST_REQUIRE(tools.size() == 2U);
  BOOST_TEST(tools[0].name() == "count");
  BOOST_TEST(tools[0].options().long_running);
  BOOST_TEST(tools[1].options().require_confirmation.holds_for(json()));
  const auto careful
    = load(head + "tools: [{name: count, require_confirmation: true}]\n");
  BOOST_TEST(std::get<llm_options>(careful->kind())
               .tools[0]
               .options()
               .require_confirmation.holds_for(json()));
}

BOOST_DATA_TEST_CASE_F(with_callbacks,
                       what_an_llm_agent_cannot_be_is_refused,
                       data::make(all_refused)) {
  const auto why = failure(head + sample.text);
  BOOST_TEST(why.find(sample.reason) != std::string::npos, why);
}

BOOST_DATA_TEST_CASE_F(with_callbacks,
                       python_code_is_refused_with_a_way_out,
                       data::make(python_refused)) {
  const auto why = failure(head + sample.text);
  BOOST_TEST(why.find(sample.reason) != std::string::npos, why);
}

BOOST_DATA_TEST_CASE_F(folder,
                       missing_fields_of_adk_are_refused_with_a_way_out,
                       data::make(missing_refused)) {
  const auto why = failure(head + sample.text);
  BOOST_TEST(why.find(sample.reason) != std::string::npos, why);
}

BOOST_DATA_TEST_CASE_F(folder,
                       a_static_instruction_has_parts,
                       data::make(static_refused)) {
  const auto why = failure(head + sample.text);
  BOOST_TEST(why.find(sample.reason) != std::string::npos, why);
}

BOOST_FIXTURE_TEST_CASE(texts_of_a_static_instruction_are_joined, folder) {
  for (const std::string text : {R"("A{k}\n\nB")",
                                 "['A{k}', B]",
                                 R"({text: "A{k}\n\nB"})",
                                 "{parts: [{text: 'A{k}'}, {text: ''}, B]}",
                                 "{role: user, parts: ['A{k}', {text: B}]}"}) {
    const auto loaded = load(head + "static_instruction: " + text + "\n");
    BOOST_TEST_REQUIRE(loaded.has_value());
    const auto& read = std::get<llm_options>(loaded->kind());
    BOOST_TEST(read.static_instruction == "A{k}\n\nB");
    BOOST_TEST(read.static_contents.empty());
  }
}

BOOST_FIXTURE_TEST_CASE(files_of_a_static_instruction_are_contents, folder) {
  const auto loaded = load(head + R"(static_instruction:
  parts:
  - Look.
  - inline_data:
      mime_type: image/png
      display_name: owl.png
      data: |
        aG
        k=
  - {fileData: {mimeType: text/plain, fileUri: 'gs://x/y'}}
  - text: Good.
)");
  BOOST_TEST_REQUIRE(loaded.has_value());
  const auto& read = std::get<llm_options>(loaded->kind());
  BOOST_TEST(read.static_instruction
             == "Look.\n\n[inline_data_0, at the start of the conversation: "
                "owl.png, image/png]\n\n[file_data_1, at the start of the "
                "conversation: gs://x/y, text/plain]\n\nGood.");
  BOOST_TEST_REQUIRE(read.static_contents.size() == 2U);
  BOOST_TEST(to_json(read.static_contents[0]) == json::parse(R"({
    "role": "user",
    "parts": [{"text": "inline_data_0:"},
              {"inlineData": {"mimeType": "image/png", "data": "aGk=",
                              "displayName": "owl.png"}}]})"));
  BOOST_TEST(to_json(read.static_contents[1]) == json::parse(R"({
    "role": "user",
    "parts": [{"text": "file_data_1:"},
              {"fileData": {"mimeType": "text/plain", "fileUri": "gs://x/y"}}]
    })"));
}

BOOST_DATA_TEST_CASE_F(folder,
                       a_schema_checks_something,
                       data::make(unchecked_schemas)) {
  const auto why = failure(head + sample.text);
  BOOST_TEST(why.find(sample.reason) != std::string::npos, why);
}

BOOST_DATA_TEST_CASE_F(folder,
                       keywords_that_check_nothing_do_not_count,
                       data::make(wide_schemas)) {
  const auto why = failure(head + "input_schema: " + sample + "\n");
  BOOST_TEST(
    why.starts_with("root_agent.yaml:3: 'input_schema' has no keyword"), why);
}

BOOST_DATA_TEST_CASE_F(folder,
                       one_keyword_that_checks_is_enough,
                       data::make(narrow_schemas)) {
  const auto loaded = load(head + "output_schema: " + sample + "\n");
  BOOST_TEST(loaded.has_value(), testing::reason_of(loaded));
}

// Each definition names the next one twice.
BOOST_FIXTURE_TEST_CASE(references_that_widen_a_schema_end,
                        folder,
                        *boost::unit_test::timeout(60)) {
  std::string text = "output_schema:\n  $ref: '#/definitions/d0'\n"
                     "  definitions:\n";
  for (int each = 0; each < 40; ++each)
    text += fmt::format("    d{0}: {{allOf: [{{$ref: '#/definitions/d{1}'}}, "
                        "{{$ref: '#/definitions/d{1}'}}]}}\n",
                        each,
                        each + 1);
  // The search gives up; the schema is read or refused for another reason.
  const auto loaded = load(head + text + "    d40: {}\n");
  BOOST_TEST(
    (loaded.has_value()
     || loaded.error().message().find("has no keyword") == std::string::npos));
}

BOOST_FIXTURE_TEST_CASE(types_of_gemini_name_those_of_json_schema, folder) {
  BOOST_TEST(failure(head
                     + "output_schema:\n  type: object\n"
                       "  properties:\n    a: {anyOf: [{type: STRING}]}\n")
             == "root_agent.yaml:3: output_schema: not a JSON Schema: "
                "/properties/a/anyOf/0/type is 'STRING', a type of the Gemini "
                "API; write "
                "'string'");
}

BOOST_FIXTURE_TEST_CASE(a_schema_may_describe_itself_by_a_name, folder) {
  const auto loaded
    = load(head + "output_schema: {name: verdict, type: string}\n");
  BOOST_TEST_REQUIRE(loaded.has_value());
  const auto& read = std::get<llm_options>(loaded->kind());
  BOOST_TEST(!read.output_schema->check(json(1)));
  const auto any = load(head
                        + "output_schema: {type: [object, array, string, "
                          "number, boolean, \"null\"]}\n");
  BOOST_TEST_REQUIRE(any.has_value());
  const auto& wide = std::get<llm_options>(any->kind()).output_schema;
  for (const auto* text : {"{}", "[]", "\"a\"", "1.5", "true", "null"})
    BOOST_TEST(wide->check(json::parse(text)).has_value(), text);
  // A null is a field that is left out.
  BOOST_TEST(load(head + "output_schema: ~\n").has_value());
}

BOOST_FIXTURE_TEST_CASE(classes_may_have_their_full_names, folder) {
  options.model
    = open_model({.name = "scripted:replies.json"}, {.base = path}).value();
  const auto is = [this](auto wanted, const std::string& name) {
    const auto loaded = load("name: p\nagent_class: " + name + "\n");
    return std::holds_alternative<decltype(wanted)>(loaded.value().kind());
  };
  for (const std::string name : {"LlmAgent",
                                 "Agent",
                                 "''",
                                 "google.adk.Agent",
                                 "google.adk.agents.Agent",
                                 "google.adk.agents.LlmAgent",
                                 "google.adk.agents.llm_agent.Agent",
                                 "google.adk.agents.llm_agent.LlmAgent"})
    BOOST_TEST(is(llm_options(), name), name);
  const std::string agents = "google.adk.agents.";
  for (const std::string module : {"", "sequential_agent."})
    BOOST_TEST(is(sequential_options(), agents + module + "SequentialAgent"));
  for (const std::string module : {"", "parallel_agent."})
    BOOST_TEST(is(parallel_options(), agents + module + "ParallelAgent"));
  for (const std::string module : {"", "loop_agent."})
    BOOST_TEST(is(loop_options(), agents + module + "LoopAgent"));
}

BOOST_FIXTURE_TEST_CASE(tools_may_have_their_full_names, folder) {
  options.tools = make_registry({exit_loop(),
                                 get_user_choice(),
                                 load_artifacts(),
                                 load_memory(),
                                 preload_memory(),
                                 make_tool("count"),
                                 make_tool("google_search")});
  const auto loaded = load(head + R"(tools:
- google.adk.tools.exit_loop
- name: google.adk.tools.agent_tool.AgentTool
  args: {agent: {name: first}}
- name: google.adk.tools.AgentTool
  args: {agent: {name: second}}
- name: google.adk.tools.long_running_tool.LongRunningFunctionTool
  args: {func: count}
# A tool of the program has precedence.
- google_search
- google.adk.tools.get_user_choice
- google.adk.tools.load_artifacts_tool.load_artifacts
- google.adk.tools.load_memory
- google.adk.tools.preload_memory_tool.preload_memory
)");
  BOOST_TEST_REQUIRE(loaded.has_value());
  std::vector<std::string> names;
  for (const auto& each : std::get<llm_options>(loaded->kind()).tools)
    names.push_back(each.name());
  BOOST_TEST(names
               == std::vector<std::string>({"exit_loop",
                                            "first",
                                            "second",
                                            "count",
                                            "google_search",
                                            "get_user_choice",
                                            "load_artifacts",
                                            "load_memory",
                                            "preload_memory"}),
             boost::test_tools::per_element());
  const auto same
    = load(head + "tools: [google.adk.tools.exit_loop_tool.exit_loop]\n");
  BOOST_TEST(same.has_value());
  options.tools = {};
  BOOST_TEST(failure(head + "tools: [google.adk.tools.exit_loop]\n")
             == "root_agent.yaml:3: unknown tool 'exit_loop'; known tools: "
                "none");
}

BOOST_DATA_TEST_CASE_F(folder,
                       what_lanes_cannot_be_is_refused,
                       data::make(lanes_refused)) {
  const auto why
    = failure("agent_class: ParallelAgent\nname: p\n" + sample.text
              + "sub_agents:\n- name: a\n  model: scripted:replies.json\n");
  BOOST_TEST(why.find(sample.reason) != std::string::npos, why);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe
