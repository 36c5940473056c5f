#include "troupe/agents/agent_file.hpp"

#include "troupe/models/scripted_model.hpp"

#include "agent_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

BOOST_AUTO_TEST_SUITE(agent_file)

namespace {

namespace data = boost::unit_test::data;

const llm_options& llm_of(const agent& described) {
  return std::get<llm_options>(described.kind());
}

std::string instruction_of(const agent& described) {
  return std::get<std::string>(llm_of(described).instruction.source());
}

struct refusal {
  std::string text;
  std::string place;    // The beginning of the reason.
  std::string expected; // A part of the reason.
};

std::ostream& operator<<(std::ostream& out, const refusal& shown) {
  return out << shown.text;
}

const std::vector<refusal> refusals{
  {"", "root_agent.yaml:1: ", "expected an agent"},
  {"- a\n- b\n", "root_agent.yaml:1: ", "a mapping with 'name', not a list"},
  {"name: a\nmodel: [\n", "root_agent.yaml:", "malformed YAML"},
  {"name: a\n  model: b\n", "root_agent.yaml:2: ", "malformed YAML"},
  {"name: a\n---\nname: b\n", "root_agent.yaml:2: ", "second document"},
  {"name: a\nmodel: scripted:replies.json\nname: b\n",
   "root_agent.yaml:3: ",
   "'name' comes twice"},
  {"name: a\ncolour: red\n", "root_agent.yaml:2: ", "unknown field 'colour'"},
  {"model: scripted:replies.json\n", "root_agent.yaml:1: ", "'name'"},
  {"name: user\nmodel: scripted:replies.json\n",
   "root_agent.yaml:1: ",
   "'user' is not allowed"},
  {"model: scripted:replies.json\nname: two words\n",
   "root_agent.yaml:2: ",
   "'two words' is not allowed"},
  {"name: [a]\n", "root_agent.yaml:1: ", "'name' must be text, not a list"},
  {"name: a\nagent_class: Actor\n",
   "root_agent.yaml:2: ",
   "one of LlmAgent, SequentialAgent, ParallelAgent, MapAgent, LoopAgent"},
  {"name: a\nmodel: scripted:replies.json\nmax_iterations: 3\n",
   "root_agent.yaml:3: ",
   "no field 'max_iterations'; LlmAgent has"},
  {"agent_class: SequentialAgent\nname: a\ninstruction: b\n",
   "root_agent.yaml:3: ",
   "no field 'instruction'; SequentialAgent has"},
  {"agent_class: LoopAgent\nname: a\nmax_iterations: 0\n",
   "root_agent.yaml:3: ",
   "at least 1"},
  {"agent_class: LoopAgent\nname: a\nmax_iterations: \"3\"\n",
   "root_agent.yaml:3: ",
   "at least 1"},
  {"agent_class: LoopAgent\nname: a\nmax_iterations: 99999999999999999999\n",
   "root_agent.yaml:3: ",
   "at least 1"},
  {"name: a\n", "root_agent.yaml:1: ", "--model"},
  {"name: a\nmodel: {name: openai:x, api_key: k}\n",
   "root_agent.yaml:2: ",
   "keys are not allowed in files; name an environment variable with key_env"},
  {"name: a\nmodel: {name: openai:x, headers: {X-Api-Key: k}}\n",
   "root_agent.yaml:2: ",
   "'X-Api-Key': keys are not allowed in files"},
  {"name: a\nmodel: {name: openai:x, headers: {authorization: k}}\n",
   "root_agent.yaml:2: ",
   "'authorization': keys are not allowed in files"},
  {"name: a\nmodel: {name: openai:x, headers: {x-goog-api-key: k}}\n",
   "root_agent.yaml:2: ",
   "'x-goog-api-key': keys are not allowed in files"},
  {"name: a\nmodel: {name: openai:x, headers: {x-own: 1}}\n",
   "root_agent.yaml:2: ",
   "'x-own' is not a header with a text value"},
  {"name: a\nmodel: {name: openai:x, headers: {'x own': a}}\n",
   "root_agent.yaml:2: ",
   "'x own' is not a header with a text value"},
  {"name: a\nmodel: {name: openai:x, headers: {x-own: \"a\\r\\nb: c\"}}\n",
   "root_agent.yaml:2: ",
   "'x-own' is not a header with a text value"},
  {"name: a\nmodel: {name: openai:x, headers: [a]}\n",
   "root_agent.yaml:2: ",
   "headers"},
  {"name: a\nmodel: {name: openai:x, colour: red}\n",
   "root_agent.yaml:2: ",
   "a model has no field 'colour'"},
  {"name: a\nmodel: {base_url: http://localhost:1}\n",
   "root_agent.yaml:2: ",
   "expected a field 'name'"},
  {"name: a\nmodel: {name: openai:x, base_url: localhost}\n",
   "root_agent.yaml:2: ",
   "its base URL does not start with http:// or https://"},
  {"name: a\nmodel: {name: openai:x, requests_per_minute: 0}\n",
   "root_agent.yaml:2: ",
   "'requests_per_minute' must be a number above 0"},
  {"name: a\nmodel: {name: openai:x, connect_timeout: soon}\n",
   "root_agent.yaml:2: ",
   "'connect_timeout' must be a number of seconds"},
  {"name: a\nmodel: [[a]]\n", "root_agent.yaml:2: ", "or a list of them"},
  {"name: a\nmodel: gpt-4\n",
   "root_agent.yaml:2: ",
   "model 'gpt-4': expected openai:NAME, openai-responses:NAME, gemini-NAME"},
  {"name: a\nmodel: scripted:missing.json\n",
   "root_agent.yaml:2: ",
   "No such file"},
  {"name: a\nmodel: 'scripted:'\n", "root_agent.yaml:2: ", "expected a file"},
  {"name: a\nmodel: scripted:replies.json\noutput_key: app:__x\n",
   "root_agent.yaml:3: ",
   "output_key"},
  {"name: a\nmodel: scripted:replies.json\ninclude_contents: some\n",
   "root_agent.yaml:3: ",
   "one of default, none, since_summary"},
  {"agent_class: LoopAgent\nname: a\nsub_agents:\n"
   "- {name: b, model: 'scripted:replies.json', mode: task}\n",
   "root_agent.yaml:1: ",
   "agent 'b' is in mode task, but 'a' above it is not an LLM agent"},
  {"name: a\nagent_class: LoopAgent\nmode: task\n",
   "root_agent.yaml:3: ",
   "this class has no field 'mode'"},
  {"name: a\nmodel: scripted:replies.json\ncontents_max: 0\n",
   "root_agent.yaml:3: ",
   "'contents_max' must be a whole number of at least 1"},
  {"name: a\nmodel: scripted:replies.json\ncontents_max: 3\n"
   "include_contents: none\n",
   "root_agent.yaml:1: ",
   "has a contents_max, but include_contents chooses"},
  {"name: a\nagent_class: LoopAgent\ncontents_max: 3\n",
   "root_agent.yaml:3: ",
   "this class has no field 'contents_max'"},
  {"name: a\nmodel: scripted:replies.json\ntools:\n  - count\n  - guess\n",
   "root_agent.yaml:5: ",
   "unknown tool 'guess'; known tools: count, measure"},
  {"name: a\nmodel: scripted:replies.json\ntools: [count, {name: count}]\n",
   "root_agent.yaml:3: ",
   "'count' comes twice"},
  {"name: a\nmodel: scripted:replies.json\ntools:\n- name: count\n  args: 1\n",
   "root_agent.yaml:5: ",
   "name a tool of the program without them"},
  {"name: a\nmodel: scripted:replies.json\ntools: count\n",
   "root_agent.yaml:3: ",
   "'tools' must be a list, not a single value"},
  {"agent_class: LoopAgent\nname: a\nsub_agents:\n"
   "- name: b\n  model: scripted:replies.json\n"
   "- name: b\n  model: scripted:replies.json\n",
   "root_agent.yaml:6: ",
   "'b' comes twice in the tree, first at root_agent.yaml:4"},
  {"agent_class: LoopAgent\nname: a\nsub_agents:\n- config_path: none.yaml\n",
   "root_agent.yaml:4: ",
   "'none.yaml': no such file"},
  {"agent_class: LoopAgent\nname: a\nsub_agents:\n"
   "- config_path: b.yaml\n  name: b\n",
   "root_agent.yaml:5: ",
   "beside config_path"},
  {"agent_class: LoopAgent\nname: a\nsub_agents: &below\n- name: b\n"
   "  agent_class: LoopAgent\n  sub_agents: *below\n",
   "root_agent.yaml:6: ",
   "inside its own anchor"},
  {"name: a\nmodel: *nowhere\n", "root_agent.yaml:2: ", "malformed YAML"},
  {"name: a\ndescription: \xff\n", "root_agent.yaml:2: ", "not UTF-8"},
  {"name: a\ndescription: b\x04\n", "root_agent.yaml:2: ", "control character"},
  {"name: a\n[b]: c\n", "root_agent.yaml:2: ", "field name"},
};

} // namespace

BOOST_FIXTURE_TEST_CASE(describes_an_llm_agent, folder) {
  const auto loaded = load(R"(# a comment
name: writer
description: Writes.
model: scripted:replies.json
instruction: |
  Write about {topic}.
output_key: user:draft
include_contents: none
tools:
  - count
  - name: measure
)");
  BOOST_REQUIRE(loaded);
  BOOST_TEST(loaded->name() == "writer");
  BOOST_TEST(loaded->description() == "Writes.");
  const auto& read = llm_of(*loaded);
  BOOST_TEST(std::get<std::string>(read.instruction.source())
             == "Write about {topic}.\n");
  BOOST_TEST(read.output_key == "user:draft");
  BOOST_CHECK(read.include_contents == include_contents::none);
  BOOST_REQUIRE(read.tools.size() == 2U);
  BOOST_TEST(read.tools[1].name() == "measure");
  BOOST_TEST(read.model->name() == "scripted:replies.json");
}

BOOST_FIXTURE_TEST_CASE(says_how_much_of_the_history_agents_read, folder) {
  const auto loaded = load(R"(agent_class: SequentialAgent
name: all
sub_agents:
- name: newest
  model: scripted:replies.json
  contents_max: 20
- name: summed
  model: scripted:replies.json
  include_contents: since_summary
)");
  BOOST_REQUIRE(loaded);
  BOOST_CHECK(loaded->sub_agents()[0].reads() == history_extent::newest(20));
  BOOST_CHECK(loaded->sub_agents()[1].reads()
              == history_extent::since_summary());
  BOOST_CHECK(
    loaded->reads()
    == (history_extent::newest(20) | history_extent::since_summary()));
}

BOOST_FIXTURE_TEST_CASE(describes_every_class, folder) {
  write("below/inner.yaml", "name: inner\nmodel: scripted:../replies.json\n");
  const auto loaded = load(R"(agent_class: SequentialAgent
name: all
sub_agents:
- agent_class: ParallelAgent
  name: lanes
  description: Side by side.
  sub_agents:
  - config_path: below/inner.yaml
- agent_class: LoopAgent
  name: again
  max_iterations: 3
- agent_class: LoopAgent
  name: endless
)");
  BOOST_REQUIRE(loaded);
  BOOST_CHECK(std::holds_alternative<sequential_options>(loaded->kind()));
  BOOST_REQUIRE(loaded->sub_agents().size() == 3U);
  const auto& lanes = loaded->sub_agents()[0];
  BOOST_CHECK(std::holds_alternative<parallel_options>(lanes.kind()));
  BOOST_TEST(lanes.description() == "Side by side.");
  BOOST_TEST(lanes.sub_agents().at(0).name() == "inner");
  const auto iterations = [&loaded](std::size_t index) {
    return std::get<loop_options>(loaded->sub_agents()[index].kind())
      .max_iterations.value_or(0);
  };
  BOOST_TEST(iterations(1) == 3U);
  BOOST_TEST(iterations(2) == 0U);
}

BOOST_FIXTURE_TEST_CASE(json_is_yaml, folder) {
  const auto loaded = load("{\n\t\"name\": \"a\",\n\t\"model\": "
                           "\"scripted:replies.json\",\n\t\"instruction\": "
                           "\"\\ud83e\\udd89 \\\\ud83e \\/\", \"tools\": "
                           "[\"count\"]\n}\n",
                           "agent.json");
  BOOST_REQUIRE(loaded);
  BOOST_TEST(std::get<std::string>(llm_of(*loaded).instruction.source())
             == "\xf0\x9f\xa6\x89 \\ud83e /");
}

BOOST_FIXTURE_TEST_CASE(a_json_error_names_its_line, folder) {
  const auto reason
    = failure("{\n  \"name\": \"a\",\n  \"name\": \"b\"\n}\n", "agent.json");
  BOOST_TEST(reason.starts_with("agent.json:3: "), reason);
}

BOOST_FIXTURE_TEST_CASE(a_folder_stands_for_its_root_agent, folder) {
  load("name: root\nmodel: scripted:replies.json\n").value();
  BOOST_TEST(load_agent_file(path, options).value().name() == "root");
}

BOOST_FIXTURE_TEST_CASE(a_missing_file_is_not_found, folder) {
  const auto loaded = load_agent_file(path / "none.yaml", options);
  BOOST_REQUIRE(!loaded);
  BOOST_CHECK(loaded.error().code() == errc::not_found);
  BOOST_TEST(
    load_agent_file(path, options).error().message().find("root_agent.yaml")
    != std::string::npos);
}

// A pipe would wait for its writer, and a device may have no end.
BOOST_FIXTURE_TEST_CASE(only_regular_files_are_read,
                        folder,
                        *boost::unit_test::timeout(20)) {
  BOOST_REQUIRE(::mkfifo((path / "pipe.yaml").c_str(), 0600) == 0);
  const std::string why = "is not a regular file; name a file, not a pipe, a "
                          "socket or a device";
  const std::string loop = "agent_class: LoopAgent\nname: a\nsub_agents:\n";
  for (const std::string named : {"pipe.yaml", "/dev/zero"}) {
    BOOST_TEST(failure(loop + "- config_path: " + named + "\n")
               == "root_agent.yaml:4: config_path '" + named + "': " + why);
    const auto script = failure("name: a\nmodel: scripted:" + named + "\n");
    BOOST_TEST(script.starts_with("root_agent.yaml:2: "), script);
    BOOST_TEST(script.ends_with(why), script);
  }
  const auto root = load_agent_file(path / "pipe.yaml", options);
  BOOST_TEST_REQUIRE(!root.has_value());
  BOOST_TEST(without_folder(root.error().message())
             == "agent file pipe.yaml: " + why);
}

BOOST_FIXTURE_TEST_CASE(a_file_that_cannot_be_read_is_named_with_its_line,
                        folder) {
  write("large.yaml", std::string((std::size_t{1} << 20U) + 1, '#'));
  BOOST_TEST(failure("agent_class: LoopAgent\nname: a\nsub_agents:\n"
                     "- config_path: large.yaml\n")
             == "root_agent.yaml:4: config_path 'large.yaml': has more than "
                "1048576 bytes");
}

BOOST_FIXTURE_TEST_CASE(another_model_replaces_all_of_them, folder) {
  options.model
    = open_model({.name = "scripted:replies.json"}, {.base = path}).value();
  const auto loaded = load("agent_class: SequentialAgent\nname: all\n"
                           "sub_agents:\n- name: a\n- name: b\n"
                           "  model: gemini-2.5-flash\n");
  BOOST_REQUIRE(loaded);
  for (const auto& below : loaded->sub_agents())
    BOOST_TEST(llm_of(below).model == options.model);
}

BOOST_FIXTURE_TEST_CASE(one_script_is_one_model_in_the_whole_tree, folder) {
  write("replies2.json", R"({"*": ["other"]})");
  write("below/c.yaml", "name: c\nmodel: scripted:../replies.json\n");
  const auto loaded = load("agent_class: SequentialAgent\nname: all\n"
                           "sub_agents:\n"
                           "- {name: a, model: 'scripted:replies.json'}\n"
                           "- {name: b, model: 'scripted:./replies.json'}\n"
                           "- config_path: below/c.yaml\n"
                           "- {name: d, model: 'scripted:replies2.json'}\n")
                        .value();
  const auto model = [&loaded](std::size_t index) {
    return llm_of(loaded.sub_agents().at(index)).model;
  };
  BOOST_TEST(model(0) == model(1));
  BOOST_TEST(model(0) == model(2));
  BOOST_TEST(model(0) != model(3));
}

BOOST_FIXTURE_TEST_CASE(a_model_is_inherited_from_the_llm_agent_above, folder) {
  const auto loaded = load("name: a\nmodel: scripted:replies.json\n"
                           "sub_agents:\n- name: b\n");
  BOOST_REQUIRE(loaded);
  BOOST_TEST(llm_of(loaded->sub_agents().at(0)).model == llm_of(*loaded).model);
}

BOOST_DATA_TEST_CASE_F(folder,
                       refuses_what_breaks_a_rule,
                       data::make(refusals)) {
  const auto reason = failure(sample.text);
  BOOST_TEST(reason.starts_with(sample.place), reason);
  BOOST_TEST(reason.find(sample.expected) != std::string::npos, reason);
}

BOOST_FIXTURE_TEST_CASE(an_error_names_the_file_that_it_is_in, folder) {
  write("below/b.yaml", "name: b\nmodel: scripted:replies.json\nfoo: 1\n");
  const auto reason = failure("agent_class: LoopAgent\nname: a\nsub_agents:\n"
                              "- config_path: below/b.yaml\n");
  BOOST_TEST(reason.starts_with("below/b.yaml:3: "), reason);
}

BOOST_FIXTURE_TEST_CASE(a_circle_of_files_is_named, folder) {
  write(
    "b.yaml",
    "agent_class: LoopAgent\nname: b\nsub_agents:\n- config_path: c.yaml\n");
  write(
    "c.yaml",
    "agent_class: LoopAgent\nname: c\nsub_agents:\n- config_path: ./b.yaml\n");
  const auto reason = failure("agent_class: LoopAgent\nname: a\nsub_agents:\n"
                              "- config_path: b.yaml\n");
  BOOST_TEST(reason.starts_with("c.yaml:4: "), reason);
  BOOST_TEST(reason.find("b.yaml -> c.yaml -> b.yaml") != std::string::npos,
             reason);
}

BOOST_FIXTURE_TEST_CASE(a_broken_script_is_named, folder) {
  write("bad.json", R"({"a": [], "a": []})");
  const auto reason = failure("name: a\nmodel: scripted:bad.json\n");
  BOOST_TEST(reason.starts_with("root_agent.yaml:2: "), reason);
  BOOST_TEST(reason.find("comes twice") != std::string::npos, reason);
}

BOOST_FIXTURE_TEST_CASE(too_deep_a_tree_is_refused, folder) {
  std::string text;
  for (std::size_t depth = 0; depth <= agent_file_depth_max; ++depth)
    text += fmt::format("{{agent_class: LoopAgent, name: a{}, sub_agents: [",
                        depth);
  for (std::size_t depth = 0; depth <= agent_file_depth_max; ++depth)
    text += "]}";
  BOOST_TEST(failure(text).find("deeper than 64") != std::string::npos);
  BOOST_TEST(
    failure(std::string(100'000, '[')).starts_with("root_agent.yaml:"));
}

BOOST_FIXTURE_TEST_CASE(a_long_chain_of_files_is_refused, folder) {
  for (std::size_t step = 0; step <= agent_file_depth_max; ++step)
    write(fmt::format("a{}.yaml", step),
          fmt::format("agent_class: LoopAgent\nname: a{}\nsub_agents:\n"
                      "- config_path: a{}.yaml\n",
                      step,
                      step + 1));
  const auto reason
    = failure("agent_class: LoopAgent\nname: root\nsub_agents:\n"
              "- config_path: a0.yaml\n");
  BOOST_TEST(reason.find("deeper than 64") != std::string::npos, reason);
}

BOOST_FIXTURE_TEST_CASE(too_many_agents_are_refused, folder) {
  std::string text = "agent_class: LoopAgent\nname: a\nsub_agents:\n";
  for (std::size_t count = 0; count < agent_file_agents_max; ++count)
    text += fmt::format("- {{agent_class: LoopAgent, name: b{}}}\n", count);
  BOOST_TEST(failure(text).find("more than 10000 agents") != std::string::npos);
}

// Each level names the next one twice, as a tool, so the number of agents
// doubles with each level.
BOOST_FIXTURE_TEST_CASE(agents_of_tools_are_counted, folder) {
  constexpr int levels = 30;
  const auto level = [](const std::string& name, int below) {
    auto text = fmt::format("name: {}\nmodel: scripted:replies.json\n", name);
    if (below == levels)
      return text;
    text += "tools:\n";
    for (const char side : {'l', 'r'})
      text += fmt::format("- {{name: AgentTool, args: {{agent: {{config_path: "
                          "{}{}.yaml}}}}}}\n",
                          side,
                          below);
    return text;
  };
  for (int step = 0; step < levels; ++step)
    for (const char side : {'l', 'r'}) {
      const auto name = fmt::format("{}{}", side, step);
      write(name + ".yaml", level(name, step + 1));
    }
  const auto begun = std::chrono::steady_clock::now();
  const auto reason = failure(level("root", 0));
  BOOST_TEST(reason.ends_with(".yaml:1: more than 10000 agents, with those of "
                              "tools"),
             reason);
  BOOST_TEST(
    (std::chrono::steady_clock::now() - begun < std::chrono::seconds(60)));
}

// Each file alone is within the limits of one file.
BOOST_FIXTURE_TEST_CASE(files_share_their_limits, folder) {
  constexpr int files = 40;
  std::string values = "generate_content_config:\n  a0: &a0 [1, 2]\n";
  for (int step = 1; step < 15; ++step)
    values += fmt::format(
      "  a{}: &a{} [*a{}, *a{}]\n", step, step, step - 1, step - 1);
  const auto text = "description: " + std::string(900'000, 'x') + "\n";
  const auto comment = "# " + std::string(900'000, 'x') + "\n";
  for (const auto& [fields, expected] :
       {std::pair(values, "values in all files; aliases and"),
        std::pair(text, "bytes in all files; aliases and"),
        std::pair(comment, "bytes in all files; aliases and")}) {
    for (int step = 0; step < files; ++step)
      write(fmt::format("a{}.yaml", step),
            fmt::format("name: a{}\nmodel: scripted:replies.json\n{}tools:\n"
                        "- {{name: AgentTool, args: {{agent: {{config_path: "
                        "a{}.yaml}}}}}}\n",
                        step,
                        fields,
                        step + 1));
    const auto reason
      = failure("name: root\nmodel: scripted:replies.json\ntools:\n"
                "- {name: AgentTool, args: {agent: {config_path: a0.yaml}}}\n");
    BOOST_TEST(reason.find(expected) != std::string::npos, reason);
  }
}

BOOST_FIXTURE_TEST_CASE(aliases_of_aliases_are_bounded, folder) {
  const std::string head
    = "name: a\nmodel: scripted:replies.json\ngenerate_content_config:\n";
  std::string text = head + "  a0: &a0 [1, 2]\n";
  for (int step = 1; step < 60; ++step)
    text += fmt::format("  a{}: &a{} [*a{}, *a{}]\n", //
                        step,
                        step,
                        step - 1,
                        step - 1);
  BOOST_TEST(failure(text)
             == "root_agent.yaml:19: more than 262144 values, with those that "
                "aliases repeat");

  text = head + "  a0: &a0 " + std::string(100'000, 'x') + "\n";
  for (int step = 1; step <= 50; ++step)
    text += fmt::format("  a{}: *a0\n", step);
  BOOST_TEST(failure(text)
             == "root_agent.yaml:45: more than 4194304 bytes of text, with "
                "those that aliases repeat");
}

BOOST_FIXTURE_TEST_CASE(depth_is_counted_through_aliases, folder) {
  std::string text = "name: a\nmodel: scripted:replies.json\n"
                     "generate_content_config:\n  a0: &a0 [1]\n";
  for (int step = 1; step < 20'000; ++step)
    text += fmt::format("  a{}: &a{} [*a{}]\n", step, step, step - 1);
  BOOST_TEST(failure(text)
             == "root_agent.yaml:138: nested deeper than 136 levels");
}

BOOST_FIXTURE_TEST_CASE(a_few_aliases_are_read, folder) {
  BOOST_TEST(load("name: a\nmodel: scripted:replies.json\n"
                  "description: &d Writes.\ninstruction: *d\n")
               .has_value());
}

// -- merge keys ----

BOOST_FIXTURE_TEST_CASE(a_mapping_is_merged_and_own_fields_win, folder) {
  const auto loaded = load(R"(agent_class: SequentialAgent
name: all
sub_agents:
- &base
  name: first
  model: scripted:replies.json
  instruction: Be brief.
  output_key: said
- output_key: own
  <<: *base
  name: second
- {<<: *base, name: third, instruction: ~}
)");
  BOOST_REQUIRE(loaded);
  const auto& below = loaded->sub_agents();
  BOOST_REQUIRE(below.size() == 3U);
  BOOST_TEST(below[1].name() == "second");
  BOOST_TEST(instruction_of(below[1]) == "Be brief.");
  BOOST_TEST(llm_of(below[1]).output_key == "own");
  BOOST_TEST(llm_of(below[1]).model == llm_of(below[0]).model);
  BOOST_TEST(below[2].name() == "third");
  BOOST_TEST(instruction_of(below[2]) == "");
  BOOST_TEST(llm_of(below[2]).output_key == "said");
}

BOOST_FIXTURE_TEST_CASE(the_first_of_several_merged_mappings_wins, folder) {
  const auto loaded = load(R"(name: root
model: scripted:replies.json
generate_content_config:
  a: &a {temperature: 0, topK: 1}
  b: &b {<<: {seed: 9, topK: 8}, topP: 2, temperature: 7}
  c: {<<: [*a, *b], topP: 3}
  d: {"<<": 4}
)");
  BOOST_REQUIRE(loaded);
  const auto& config = llm_of(*loaded).generation_config;
  // Compared with PyYAML.
  BOOST_TEST(config["b"]
             == json::parse(R"({"temperature":7,"topK":8,"topP":2,"seed":9})"));
  BOOST_TEST(config["c"]
             == json::parse(R"({"temperature":0,"topK":1,"topP":3,"seed":9})"));
  BOOST_TEST(config["d"] == json::parse(R"({"<<": 4})"));
}

BOOST_FIXTURE_TEST_CASE(a_merge_key_names_mappings, folder) {
  const std::string head = "name: a\nmodel: scripted:replies.json\n";
  for (const std::string value : {"text", "", "[{a: 1}, b]", "[[]]", "3"}) {
    const auto reason = failure(head + "<<: " + value + "\n");
    BOOST_TEST(reason
               == "root_agent.yaml:3: '<<' merges a mapping or a list of "
                  "mappings, such as *base");
  }
  BOOST_TEST(failure(head + "<<: {}\n<<: {}\n")
             == "root_agent.yaml:4: the field '<<' comes twice");
  BOOST_TEST(failure(head + "generate_content_config: &a {<<: *a}\n")
             == "root_agent.yaml:3: an alias is inside its own anchor");
  BOOST_TEST(load(head + "<<: []\n").has_value());
}

BOOST_FIXTURE_TEST_CASE(an_error_in_a_merged_field_names_its_own_line, folder) {
  const auto reason = failure(R"(agent_class: SequentialAgent
name: all
sub_agents:
- &base
  name: first
  model: scripted:replies.json
- &other
  name: second
  agent_class: LoopAgent
  max_iterations: 2
- name: third
  <<: [*base, *other]
  agent_class: LlmAgent
)");
  BOOST_TEST(
    reason.starts_with(
      "root_agent.yaml:10: this class has no field 'max_iterations'; LlmAgent"),
    reason);
}

BOOST_FIXTURE_TEST_CASE(json_has_no_merge_key, folder) {
  const auto reason = failure("{\"name\": \"a\",\n\"model\": "
                              "\"scripted:replies.json\",\n\"<<\": "
                              "{\"description\": \"b\"}}",
                              "agent.json");
  BOOST_TEST(reason.starts_with("agent.json:3: unknown field '<<'"), reason);
}

BOOST_FIXTURE_TEST_CASE(merged_mappings_are_bounded, folder) {
  const std::string head
    = "name: a\nmodel: scripted:replies.json\ngenerate_content_config:\n";
  // Each mapping repeats all fields of the one before it.
  std::string text = head + "  a0: &a0 {b0: 1}\n";
  for (int step = 1; step < 2'000; ++step)
    text += fmt::format("  a{}: &a{} {{<<: *a{}, b{}: 1}}\n", //
                        step,
                        step,
                        step - 1,
                        step);
  BOOST_TEST(
    failure(text).find("more than 262144 values, with those that aliases")
    != std::string::npos);
  // Merged mappings count as one level.
  text = head + "  a0: &a0 {b0: {}}\n";
  for (int step = 1; step < 500; ++step)
    text += fmt::format("  a{}: &a{} {{<<: *a{}}}\n", step, step, step - 1);
  BOOST_TEST(load(text).has_value());
}

BOOST_FIXTURE_TEST_CASE(texts_in_quotes_are_closed, folder) {
  const std::string head = "name: a\nmodel: scripted:replies.json\n";
  for (const std::string quote : {"'", "\""})
    BOOST_TEST(
      failure(head + "instruction: " + quote + "talk\noutput_key: k\n")
      == "root_agent.yaml:3: the text that starts here has no closing quote");
  BOOST_TEST(failure(head + "output_key\n")
             == "root_agent.yaml:3: expected ':' behind 'output_key'");
  BOOST_TEST(failure(head + "instruction: !include foo\n")
             == "root_agent.yaml:3: unknown tag '!include'");
  for (const std::string sound : {"|\n  Don't do that.\n  Say \"no",
                                  ">\n  It's\n",
                                  "Don't",
                                  "&a 'x'",
                                  "!!str \"x\"",
                                  "~",
                                  "null",
                                  "'it''s'",
                                  "\"a \\\" b\"",
                                  "''",
                                  "!!str 12",
                                  "\"two\n  lines\"",
                                  ""})
    BOOST_TEST(load(head + "instruction: " + sound + "\n").has_value());
  BOOST_TEST(load(head + "? description\n: ~\n").has_value());
  BOOST_TEST(load("\xEF\xBB\xBF" + head + "description:\n").has_value());
  BOOST_TEST(
    failure(head + "instruction: !!str \"open\n").find("no closing quote")
    != std::string::npos);
  BOOST_TEST(failure(head + "output_key # see: docs\n")
               .starts_with("root_agent.yaml:3: "));
}

BOOST_FIXTURE_TEST_CASE(a_json_file_is_strict_json, folder) {
  const std::string text
    = "{\"name\": \"a\",\n \"model\": \"scripted:replies.json\"";
  BOOST_TEST(load(text + "}", "x.json").has_value());
  BOOST_TEST(failure(text + ",}", "x.json").find("malformed JSON at line 2")
             != std::string::npos);
}

// -- overrides ----

BOOST_FIXTURE_TEST_CASE(fields_are_replaced_added_and_left_out, folder) {
  options.overrides
    = {{"inner",
        {{"instruction", "Be brief."},
         {"output_key", "app:said"},
         {"description", nullptr}}},
       {"lanes", {{"lanes_max", 2}, {"on_failure", "collect"}}}};
  const auto root = load("agent_class: ParallelAgent\n"
                         "name: lanes\n"
                         "sub_agents:\n"
                         "- name: inner\n"
                         "  model: scripted:replies.json\n"
                         "  description: old\n"
                         "  instruction: old\n")
                      .value();
  const auto& lanes = std::get<parallel_options>(root.kind());
  BOOST_TEST((lanes.lanes_max == 2U));
  BOOST_TEST((lanes.on_failure == lane_failures::collect));
  const auto& inner = llm_of(root.sub_agents().front());
  BOOST_TEST(std::get<std::string>(inner.instruction.source()) == "Be brief.");
  BOOST_TEST(inner.output_key == "app:said");
  BOOST_TEST(inner.description == "");
}

BOOST_FIXTURE_TEST_CASE(what_is_to_be_different_is_checked_as_in_a_file,
                        folder) {
  const std::string text = "name: a\nmodel: scripted:replies.json\n";
  options.overrides = {{"b", json::object()}};
  BOOST_TEST(
    failure(text)
    == "an override names agent 'b', which does not exist; the agents are a");
  options.overrides = {{"a", {{"colour", "red"}}}};
  BOOST_TEST(failure(text).find("unknown field 'colour'") != std::string::npos);
  options.overrides = {{"a", {{"name", "b"}}}};
  BOOST_TEST(failure(text).find("without 'name'") != std::string::npos);
  options.overrides = {{"a", "red"}};
  BOOST_TEST(failure(text).find("must be a mapping") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_model_says_how_it_is_asked, folder) {
  std::vector<model_source> asked;
  options.open = [&asked](const model_source& source,
                          const open_model_options&) {
    asked.push_back(source);
    return model_ptr(std::make_shared<scripted_model>(script(), source.name));
  };
  const std::string model = "{name: openai:x, base_url: http://h/v1, key_env: "
                            "K, stream: true, connect_timeout: 0.5, "
                            "total_timeout: 9, attempts: 2, "
                            "requests_per_minute: 30, tokens_per_minute: 1e5, "
                            "headers: {anthropic-beta: b, x-own: '1'}}";
  const auto root = load("agent_class: SequentialAgent\n"
                         "name: both\n"
                         "sub_agents:\n"
                         "- {name: a, model: "
                         + model + "}\n- {name: b, model: " + model
                         + "}\n- {name: c, model: 'openai:x'}\n")
                      .value();
  // Models with equal settings are one object, with one rate limit.
  BOOST_TEST_REQUIRE(asked.size() == 2U);
  const auto& below = root.sub_agents();
  BOOST_TEST((llm_of(below[0]).model == llm_of(below[1]).model));
  BOOST_TEST((llm_of(below[0]).model != llm_of(below[2]).model));
  const auto& first = asked[0];
  BOOST_TEST(first.name == "openai:x");
  BOOST_TEST(first.base_url == "http://h/v1");
  BOOST_TEST(first.key_variable == "K");
  const http_headers headers{{"anthropic-beta", "b"}, {"x-own", "1"}};
  BOOST_TEST((first.headers == headers));
  BOOST_TEST(first.streams);
  BOOST_TEST((first.timeouts.connect == std::chrono::milliseconds(500)));
  BOOST_TEST((first.timeouts.total == std::chrono::seconds(9)));
  BOOST_TEST(first.retries.attempts_max == 2U);
  BOOST_TEST(*first.limit.requests_per_minute == 30);
  BOOST_TEST(*first.limit.tokens_per_minute == 1e5);
  BOOST_TEST((asked[1] == model_source{.name = "openai:x"}));
}

BOOST_FIXTURE_TEST_CASE(models_may_be_opened_by_the_caller, folder) {
  std::vector<std::string> asked;
  options.open
    = [&asked](const model_source& source, const open_model_options& usual) {
        asked.push_back(
          fmt::format("{} in {}", source.name, usual.base.filename().string()));
        return model_ptr(std::make_shared<scripted_model>(script(), "mine"));
      };
  const auto root = load("name: a\nmodel: own:model\n").value();
  BOOST_TEST(llm_of(root).model->name() == "mine");
  BOOST_TEST(
    asked
    == std::vector<std::string>{"own:model in " + path.filename().string()});
}

BOOST_FIXTURE_TEST_CASE(models_of_a_list_are_asked_in_order, folder) {
  std::vector<model_source> asked;
  options.open = [&asked](const model_source& source,
                          const open_model_options&) {
    asked.push_back(source);
    return model_ptr(std::make_shared<scripted_model>(script(), source.name));
  };
  const auto root = load(R"(
agent_class: SequentialAgent
name: all
sub_agents:
- name: a
  model: [first, {name: second, attempts: 1}]
- name: b
  model:
  - first
  - {name: second, attempts: 1}
- {name: c, model: [first]}
- name: d
  model: [first, second]
  sub_agents:
  - {name: below}
)")
                      .value();
  const auto& below = root.sub_agents();
  BOOST_TEST(llm_of(below[0]).model->name() == "first or second");
  // Equal lists are one list, and equal models one model.
  BOOST_TEST((llm_of(below[0]).model == llm_of(below[1]).model));
  BOOST_TEST(llm_of(below[2]).model->name() == "first");
  BOOST_TEST((llm_of(below[3]).model != llm_of(below[0]).model));
  BOOST_TEST(
    (llm_of(below[3].sub_agents()[0]).model == llm_of(below[3]).model));
  BOOST_TEST_REQUIRE(asked.size() == 3U);
  BOOST_TEST(asked[1].retries.attempts_max == 1U);
  BOOST_TEST(asked[2].retries.attempts_max == 4U);
}

BOOST_FIXTURE_TEST_CASE(a_bad_list_of_models_names_the_line, folder) {
  BOOST_TEST(failure("name: a\nmodel: []\n")
             == "root_agent.yaml:2: 'model' is a list without a model");
  for (const auto* none : {"[scripted:replies.json]", "null", "~"})
    BOOST_TEST(
      failure(
        fmt::format("name: a\nmodel:\n- scripted:replies.json\n- {}\n", none))
        .starts_with("root_agent.yaml:4: 'model' must be a name, a mapping"));
  BOOST_TEST(
    failure("name: a\nmodel:\n- scripted:replies.json\n- gpt-4\n")
      .starts_with("root_agent.yaml:4: model 'gpt-4': expected openai:NAME"));
  BOOST_TEST(
    failure("name: a\nmodel:\n- {name: openai:x, api_key: s}\n- gemini-x\n")
      .starts_with("root_agent.yaml:3: 'api_key': keys are not allowed"));
}

BOOST_FIXTURE_TEST_CASE(a_model_may_be_at_vertex, folder) {
  std::vector<model_source> asked;
  options.open = [&asked](const model_source& source,
                          const open_model_options&) {
    asked.push_back(source);
    return model_ptr(std::make_shared<scripted_model>(script(), source.name));
  };
  BOOST_TEST_REQUIRE(load(R"(
name: a
model:
  name: gemini-x
  vertex:
    project: p
    location: us-east1
    token_command: [./token, --for, 'a b']
sub_agents:
- name: b
  model: {name: gemini-x, vertex: {token_env: T}}
- name: c
  model: {name: gemini-x, vertex: {}}
)")
                       .has_value());
  BOOST_TEST_REQUIRE(asked.size() == 3U);
  const vertex_place place{
    .project = "p",
    .location = "us-east1",
    .token_command
    = {(fs::canonical(path) / "token").string(), "--for", "a b"}};
  BOOST_TEST((asked[0].vertex == place));
  BOOST_TEST((asked[1].vertex == vertex_place{.token_variable = "T"}));
  BOOST_TEST((asked[2].vertex == vertex_place{}));
}

BOOST_FIXTURE_TEST_CASE(a_bad_place_at_vertex_names_the_line, folder) {
  const auto with = [this](const std::string& vertex) {
    return failure("name: a\nmodel:\n  name: gemini-x\n  vertex: " + vertex
                   + "\n");
  };
  BOOST_TEST(with("p").starts_with("root_agent.yaml:4: 'vertex' must be a"));
  BOOST_TEST(with("{token: s3cret}")
             == "root_agent.yaml:4: 'vertex' has no field 'token'; it has "
                "project, location, token_env, token_command");
  BOOST_TEST(with("{token_command: []}")
             == "root_agent.yaml:4: 'token_command' is a list without a "
                "program");
  BOOST_TEST(
    with("{token_command: [[a]]}")
      .starts_with("root_agent.yaml:4: 'token_command' must be a list"));
  const auto unasked = with("{project: p, token_command: [gcloud, auth]}");
  BOOST_TEST(unasked.starts_with("root_agent.yaml:2: model 'gemini-x': "
                                 "token_command wants to start the program "
                                 "'gcloud'; allow it with --allow-command"),
             unasked);
  options.allowed_commands = {"gcloud"};
  BOOST_TEST(load("name: a\nmodel: {name: gemini-x, vertex: {project: p, "
                  "token_command: [gcloud, auth]}}\n")
               .has_value());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe
