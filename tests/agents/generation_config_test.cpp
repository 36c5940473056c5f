// The settings of a model in an agent file, and their types.

#include "agent_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>

using namespace troupe;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(generation_config)

namespace {

// The settings begin in line 4.
const std::string before_settings
  = "name: a\nmodel: scripted:replies.json\ngenerate_content_config:\n";

struct refused_settings {
  std::string text;
  std::string reason;
};

std::ostream& operator<<(std::ostream& out, const refused_settings& each) {
  return out << each.text;
}

const refused_settings all_refused[] = {
  {"  temperature: hot\n", "4: G: 'temperature' must be a number"},
  {"  temperature: '0.5'\n", "4: G: 'temperature' must be a number"},
  {"  top_p: [1]\n", "4: G: 'top_p' must be a number"},
  {"  seed: 1\n  topP: true\n", "5: G: 'topP' must be a number"},
  {"  top_k: many\n", "4: G: 'top_k' must be a number"},
  {"  presence_penalty: low\n", "4: G: 'presence_penalty' must be a number"},
  {"  frequencyPenalty: .nan\n", "4: G: 'frequencyPenalty' must be a number"},
  {"  max_output_tokens: 1.5\n",
   "4: G: 'max_output_tokens' must be a whole number"},
  {"  maxOutputTokens: 1k\n", "4: G: 'maxOutputTokens' must be a whole number"},
  {"  candidate_count: one\n",
   "4: G: 'candidate_count' must be a whole number"},
  {"  seed: 1e999\n", "4: G: 'seed' must be a whole number"},
  {"  logprobs: few\n",
   "4: G: 'logprobs' must be a whole number, or true or false"},
  {"  response_logprobs: 1\n",
   "4: G: 'response_logprobs' must be true or false"},
  {"  stop_sequences: END\n", "4: G: 'stop_sequences' must be a list of texts"},
  {"  stopSequences: [a, 1]\n",
   "4: G: 'stopSequences' must be a list of texts"},
  {"  response_mime_type: {a: b}\n", "4: G: 'response_mime_type' must be text"},
  {"  response_modalities: TEXT\n",
   "4: G: 'response_modalities' must be a list of texts"},
  {"  labels: {a: 1}\n", "4: G: 'labels' must be a mapping of texts"},
  {"  speech_config: [a]\n", "4: G: 'speech_config' must be text or a mapping"},
  {"  safety_settings: {category: X}\n",
   "4: G: 'safety_settings' must be a list of mappings"},
  {"  safety_settings:\n  - category: X\n    threshold: 5\n",
   "6: G.safety_settings: 'threshold' must be text"},
  {"  safetySettings: [{level: X}]\n",
   "4: G.safety_settings: unknown setting 'level'; it has category, method, "
   "threshold"},
  {"  thinking_config: high\n", "4: G: 'thinking_config' must be a mapping"},
  {"  thinkingConfig:\n    thinkingBudget: big\n",
   "5: G.thinking_config: 'thinkingBudget' must be a whole number"},
  {"  thinking_config: {include_thoughts: 1}\n",
   "4: G.thinking_config: 'include_thoughts' must be true or false"},
  {"  thinking_config: {budget: 1}\n",
   "4: G.thinking_config: unknown setting 'budget'; it has include_thoughts, "
   "thinking_budget, thinking_level"},
  {"  tool_config: {function_calling_config: {mode: 1}}\n",
   "4: G.tool_config.function_calling_config: 'mode' must be text"},
  {"  top_k: 1\n  topK: 2\n", "5: G: has the setting 'topK' in two spellings"},
};

} // namespace

BOOST_DATA_TEST_CASE_F(folder,
                       a_setting_of_another_type_is_refused,
                       data::make(all_refused),
                       each) {
  auto expected = "root_agent.yaml:" + each.reason;
  const auto place = expected.find(": G") + 2;
  expected.replace(place, 1, "generate_content_config");
  BOOST_TEST(failure(before_settings + each.text) == expected);
}

BOOST_FIXTURE_TEST_CASE(settings_are_passed_on_as_they_are_written, folder) {
  const auto loaded = load(before_settings + R"(  temperature: 1
  topP: 0.5
  top_k: 40
  max_output_tokens: 10
  seed: -1
  logprobs: true
  stop_sequences: []
  cached_content:
  safety_settings:
  - {category: HARM_CATEGORY_HARASSMENT, threshold: BLOCK_NONE}
  thinking_config: {thinkingBudget: -1, include_thoughts: true}
  speech_config: {language_code: de}
  toolConfig: {functionCallingConfig: {mode: ANY, allowedFunctionNames: [f]}}
)");
  BOOST_TEST_REQUIRE(loaded.has_value());
  BOOST_TEST(to_text(std::get<llm_options>(loaded->kind()).generation_config)
             == to_text(R"({"temperature": 1, "topP": 0.5, "top_k": 40,
      "max_output_tokens": 10, "seed": -1, "logprobs": true,
      "stop_sequences": [], "cached_content": null,
      "safety_settings": [{"category": "HARM_CATEGORY_HARASSMENT",
                           "threshold": "BLOCK_NONE"}],
      "thinking_config": {"thinkingBudget": -1, "include_thoughts": true},
      "speech_config": {"language_code": "de"},
      "toolConfig": {"functionCallingConfig":
        {"mode": "ANY", "allowedFunctionNames": ["f"]}}})"_json));
}

// Vendors have settings of their own, such as `output_config` of Anthropic.
BOOST_FIXTURE_TEST_CASE(settings_of_a_vendor_are_passed_on, folder) {
  const auto loaded
    = load(before_settings + "  output_config: {effort: low}\n  min_p: x\n");
  BOOST_TEST_REQUIRE(loaded.has_value());
  BOOST_TEST(to_text(std::get<llm_options>(loaded->kind()).generation_config)
             == R"({"min_p":"x","output_config":{"effort":"low"}})");
}

BOOST_AUTO_TEST_SUITE_END()
