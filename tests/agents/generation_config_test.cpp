// The settings of a model in an agent file: types, values and ranges.

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

const std::string thresholds
  = "HARM_BLOCK_THRESHOLD_UNSPECIFIED, BLOCK_LOW_AND_ABOVE, "
    "BLOCK_MEDIUM_AND_ABOVE, BLOCK_ONLY_HIGH, BLOCK_NONE, OFF";

const refused_settings all_refused[] = {
  {"  temperature: hot\n",
   "4: G: 'temperature' must be a number of at least 0"},
  {"  temperature: '0.5'\n",
   "4: G: 'temperature' must be a number of at least 0"},
  {"  top_p: [1]\n", "4: G: 'top_p' must be a number from 0 to 1"},
  {"  seed: 1\n  topP: true\n", "5: G: 'topP' must be a number from 0 to 1"},
  {"  top_k: many\n", "4: G: 'top_k' must be a number of at least -1"},
  {"  presence_penalty: low\n",
   "4: G: 'presence_penalty' must be a number from -2 to 2"},
  {"  frequencyPenalty: .nan\n",
   "4: G: 'frequencyPenalty' must be a number from -2 to 2"},
  {"  max_output_tokens: 1.5\n",
   "4: G: 'max_output_tokens' must be a whole number of at least 1"},
  {"  maxOutputTokens: 1k\n",
   "4: G: 'maxOutputTokens' must be a whole number of at least 1"},
  {"  candidate_count: one\n",
   "4: G: 'candidate_count' must be a whole number of at least 1"},
  {"  seed: 1e999\n", "4: G: 'seed' must be a whole number"},
  {"  logprobs: few\n",
   "4: G: 'logprobs' must be a whole number from 0 to 20, or true or false"},
  {"  response_logprobs: 1\n",
   "4: G: 'response_logprobs' must be true or false"},
  {"  stop_sequences: END\n", "4: G: 'stop_sequences' must be a list of texts"},
  {"  stopSequences: [a, 1]\n",
   "4: G: 'stopSequences' must be a list of texts"},
  {"  response_mime_type: {a: b}\n", "4: G: 'response_mime_type' must be text"},
  {"  response_modalities: TEXT\n",
   "4: G: 'response_modalities' must be a list of these: "
   "MODALITY_UNSPECIFIED, TEXT, IMAGE, AUDIO, VIDEO"},
  {"  labels: {a: 1}\n", "4: G: 'labels' must be a mapping of texts"},
  {"  speech_config: [a]\n", "4: G: 'speech_config' must be text or a mapping"},
  {"  safety_settings: {category: X}\n",
   "4: G: 'safety_settings' must be a list of mappings"},
  {"  safety_settings:\n  - category: HARM_CATEGORY_JAILBREAK\n    threshold: "
   "5\n",
   "6: G.safety_settings: 'threshold' must be one of " + thresholds},
  {"  safetySettings: [{level: X}]\n",
   "4: G.safety_settings: unknown setting 'level'; it has category, method, "
   "threshold"},
  {"  thinking_config: high\n", "4: G: 'thinking_config' must be a mapping"},
  {"  thinkingConfig:\n    thinkingBudget: big\n",
   "5: G.thinking_config: 'thinkingBudget' must be a whole number of at least "
   "-1"},
  {"  thinking_config: {include_thoughts: 1}\n",
   "4: G.thinking_config: 'include_thoughts' must be true or false"},
  {"  thinking_config: {budget: 1}\n",
   "4: G.thinking_config: unknown setting 'budget'; it has include_thoughts, "
   "thinking_budget, thinking_level"},
  {"  tool_config: {function_calling_config: {mode: 1}}\n",
   "4: G.tool_config.function_calling_config: 'mode' must be one of "
   "MODE_UNSPECIFIED, AUTO, ANY, NONE, VALIDATED"},
  {"  top_k: 1\n  topK: 2\n", "5: G: has the setting 'topK' in two spellings"},
};

// Values that google-genai sends with a warning, or without one.
const refused_settings values_refused[] = {
  {"  tool_config:\n    function_calling_config:\n      mode: FOO\n",
   "6: G.tool_config.function_calling_config: 'mode' must be one of "
   "MODE_UNSPECIFIED, AUTO, ANY, NONE, VALIDATED"},
  {"  safety_settings:\n  - category: HARM_CATEGORY_JAILBREAK\n"
   "    threshold: BLOCK_SOME\n",
   "6: G.safety_settings: 'threshold' must be one of " + thresholds},
  {"  safety_settings: [{method: SEVERITY}, {method: severe}]\n",
   "4: G.safety_settings: 'method' must be one of "
   "HARM_BLOCK_METHOD_UNSPECIFIED, SEVERITY, PROBABILITY"},
  {"  safety_settings: [text]\n",
   "4: G: 'safety_settings' must be a list of mappings"},
  {"  thinking_config: {thinking_level: 3}\n",
   "4: G.thinking_config: 'thinking_level' must be one of "
   "THINKING_LEVEL_UNSPECIFIED, NONE, MINIMAL, LOW, MEDIUM, HIGH, XHIGH, MAX"},
  {"  media_resolution: HIGH\n",
   "4: G: 'media_resolution' must be one of MEDIA_RESOLUTION_UNSPECIFIED, "
   "MEDIA_RESOLUTION_LOW, MEDIA_RESOLUTION_MEDIUM, MEDIA_RESOLUTION_HIGH"},
  {"  response_modalities: [TEXT, SMELL]\n",
   "4: G: 'response_modalities' must be a list of these: "
   "MODALITY_UNSPECIFIED, TEXT, IMAGE, AUDIO, VIDEO"},
  {"  model_selection_config: {feature_selection_preference: FAST}\n",
   "4: G.model_selection_config: 'feature_selection_preference' must be one of "
   "FEATURE_SELECTION_PREFERENCE_UNSPECIFIED, PRIORITIZE_QUALITY, BALANCED, "
   "PRIORITIZE_COST"},
  {"  routing_config: {auto_mode: {model_routing_preference: FAST}}\n",
   "4: G.routing_config.auto_mode: 'model_routing_preference' must be one of "
   "UNKNOWN, PRIORITIZE_QUALITY, BALANCED, PRIORITIZE_COST"},
};

const refused_settings ranges_refused[] = {
  {"  temperature: -0.1\n",
   "4: G: 'temperature' must be a number of at least 0"},
  {"  top_p: 1.01\n", "4: G: 'top_p' must be a number from 0 to 1"},
  {"  top_p: -1\n", "4: G: 'top_p' must be a number from 0 to 1"},
  {"  top_k: -2\n", "4: G: 'top_k' must be a number of at least -1"},
  {"  max_output_tokens: -5\n",
   "4: G: 'max_output_tokens' must be a whole number of at least 1"},
  {"  max_output_tokens: 0\n",
   "4: G: 'max_output_tokens' must be a whole number of at least 1"},
  {"  candidate_count: 0\n",
   "4: G: 'candidate_count' must be a whole number of at least 1"},
  {"  presence_penalty: 2.5\n",
   "4: G: 'presence_penalty' must be a number from -2 to 2"},
  {"  frequency_penalty: -3\n",
   "4: G: 'frequency_penalty' must be a number from -2 to 2"},
  {"  logprobs: 21\n",
   "4: G: 'logprobs' must be a whole number from 0 to 20, or true or false"},
  {"  thinking_config: {thinking_budget: -2}\n",
   "4: G.thinking_config: 'thinking_budget' must be a whole number of at least "
   "-1"},
  {"  tool_config: {retrieval_config: {lat_lng: {latitude: 91}}}\n",
   "4: G.tool_config.retrieval_config.lat_lng: 'latitude' must be a number "
   "from "
   "-90 to 90"},
  {"  image_config: {output_compression_quality: 101}\n",
   "4: G.image_config: 'output_compression_quality' must be a whole number "
   "from "
   "0 to 100"},
  {"  http_options: {retry_options: {http_status_codes: [429, 42]}}\n",
   "4: G.http_options.retry_options: 'http_status_codes' must be a list of "
   "whole numbers from 100 to 599"},
};

const refused_settings inner_refused[] = {
  {"  http_options: {timeout: soon}\n",
   "4: G.http_options: 'timeout' must be a whole number of at least 0"},
  {"  http_options: {headers: {a: 1}}\n",
   "4: G.http_options: 'headers' must be a mapping of texts"},
  {"  http_options: {httpx_client: x}\n",
   "4: G.http_options: unknown setting 'httpx_client'; it has api_version, "
   "async_client_args, base_url, base_url_resource_scope, client_args, "
   "extra_body, headers, retry_options, timeout"},
  {"  http_options:\n    retryOptions: {attempts: many}\n",
   "5: G.http_options.retry_options: 'attempts' must be a whole number of at "
   "least 0"},
  {"  image_config: {aspect_ratio: 1}\n",
   "4: G.image_config: 'aspect_ratio' must be text"},
  {"  image_config: {size: 1K}\n",
   "4: G.image_config: unknown setting 'size'; it has aspect_ratio, "
   "image_output_options, image_size, output_compression_quality, "
   "output_mime_type, person_generation, prominent_people"},
  {"  automatic_function_calling: {disable: 1}\n",
   "4: G.automatic_function_calling: 'disable' must be true or false"},
  {"  speech_config: {voice_config: {prebuilt_voice_config: {voiceName: 5}}}\n",
   "4: G.speech_config.voice_config.prebuilt_voice_config: 'voiceName' must be "
   "text"},
  {"  speech_config: {multi_speaker_voice_config: {speaker_voice_configs: "
   "[{speaker: 1}]}}\n",
   "4: G.speech_config.multi_speaker_voice_config.speaker_voice_configs: "
   "'speaker' must be text"},
  {"  audio_transcription_config: {language_auto: {a: 1}}\n",
   "4: G.audio_transcription_config.language_auto: unknown setting 'a'; it has "
   "none"},
  {"  model_armor_config: {prompt_template_name: [a]}\n",
   "4: G.model_armor_config: 'prompt_template_name' must be text"},
  {"  tool_config: {retrieval_config: near}\n",
   "4: G.tool_config: 'retrieval_config' must be a mapping"},
  {"  thinking_config:\n    includeThoughts: true\n    include_thoughts: "
   "true\n",
   "6: G.thinking_config: has the setting 'include_thoughts' in two spellings"},
};

} // namespace

BOOST_DATA_TEST_CASE_F(folder,
                       a_setting_that_does_not_fit_is_refused,
                       data::make(all_refused) + data::make(values_refused)
                         + data::make(ranges_refused)
                         + data::make(inner_refused),
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

BOOST_FIXTURE_TEST_CASE(values_at_the_ends_of_their_ranges_fit, folder) {
  for (const auto* text : {"temperature: 0",
                           "temperature: 2.5",
                           "top_p: 0",
                           "top_p: 1",
                           "top_k: -1",
                           "max_output_tokens: 1",
                           "candidate_count: 8",
                           "presence_penalty: -2",
                           "frequency_penalty: 2.0",
                           "logprobs: 0",
                           "seed: -2147483648",
                           "thinking_config: {}",
                           "safety_settings: []",
                           "response_modalities: []",
                           "service_tier: on_demand",
                           "response_json_schema: true",
                           "speech_config: Kore",
                           "http_options: {client_args: {a: [1]}}"})
    BOOST_TEST(load(before_settings + "  " + text + "\n").has_value(), text);
}

// ADK accepts them in any case as well; the vendor does not.
BOOST_FIXTURE_TEST_CASE(choices_are_written_as_the_vendor_does, folder) {
  const auto loaded
    = load(before_settings
           + "  thinking_config: {thinking_level: low}\n"
             "  responseModalities: [text, Audio]\n"
             "  safety_settings: [{threshold: off, category:}]\n"
             "  toolConfig: {functionCallingConfig: {mode: any}}\n");
  BOOST_TEST_REQUIRE(loaded.has_value());
  BOOST_TEST(to_text(std::get<llm_options>(loaded->kind()).generation_config)
             == to_text(R"({"thinking_config": {"thinking_level": "LOW"},
      "responseModalities": ["TEXT", "AUDIO"],
      "safety_settings": [{"threshold": "OFF", "category": null}],
      "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}})"_json));
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
