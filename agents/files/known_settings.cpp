#include "troupe/agents/files/known_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {

namespace {

using form = setting_form;

constexpr setting number_setting(std::string_view name,
                                 std::optional<int> least = {},
                                 std::optional<int> most = {}) {
  return {.name = name, .holds = form::number, .least = least, .most = most};
}

constexpr setting whole_number_setting(std::string_view name,
                                       std::optional<int> least = {},
                                       std::optional<int> most = {}) {
  return {
    .name = name, .holds = form::whole_number, .least = least, .most = most};
}

constexpr setting choice_setting(std::string_view name,
                                 std::span<const std::string_view> values) {
  return {.name = name, .holds = form::choice, .values = values};
}

constexpr setting nested_settings(std::string_view name,
                                  std::span<const setting> inner) {
  return {.name = name, .holds = form::settings, .inner = inner};
}

// Source: googleapis/python-genai 3.6.1, types.py, GenerateContentConfig and
// the types of its fields. That client warns of a value that it does not know,
// and sends it; it checks no ranges. The ranges are those that the vendors
// document: https://ai.google.dev/api/generate-content#generationconfig.

// -- thoughts and safety ------------------------------------------------------

// NONE and MAX are efforts of OpenAI.
constexpr std::string_view thinking_levels[] = {"THINKING_LEVEL_UNSPECIFIED",
                                                "NONE",
                                                "MINIMAL",
                                                "LOW",
                                                "MEDIUM",
                                                "HIGH",
                                                "XHIGH",
                                                "MAX"};

constexpr setting thinking_settings[] = {
  {"include_thoughts", form::flag},
  whole_number_setting("thinking_budget",
                       -1), // -1: the model decides; 0: none.
  choice_setting("thinking_level", thinking_levels),
};

constexpr std::string_view harm_categories[]
  = {"HARM_CATEGORY_UNSPECIFIED",
     "HARM_CATEGORY_HARASSMENT",
     "HARM_CATEGORY_HATE_SPEECH",
     "HARM_CATEGORY_SEXUALLY_EXPLICIT",
     "HARM_CATEGORY_DANGEROUS_CONTENT",
     "HARM_CATEGORY_CIVIC_INTEGRITY",
     "HARM_CATEGORY_JAILBREAK",
     "HARM_CATEGORY_IMAGE_HATE",
     "HARM_CATEGORY_IMAGE_DANGEROUS_CONTENT",
     "HARM_CATEGORY_IMAGE_HARASSMENT",
     "HARM_CATEGORY_IMAGE_SEXUALLY_EXPLICIT"};

constexpr std::string_view block_methods[]
  = {"HARM_BLOCK_METHOD_UNSPECIFIED", "SEVERITY", "PROBABILITY"};

constexpr std::string_view block_thresholds[]
  = {"HARM_BLOCK_THRESHOLD_UNSPECIFIED",
     "BLOCK_LOW_AND_ABOVE",
     "BLOCK_MEDIUM_AND_ABOVE",
     "BLOCK_ONLY_HIGH",
     "BLOCK_NONE",
     "OFF"};

constexpr setting safety_settings[] = {
  choice_setting("category", harm_categories),
  choice_setting("method", block_methods),
  choice_setting("threshold", block_thresholds),
};

constexpr setting armor_settings[] = {
  {"prompt_template_name", form::text},
  {"response_template_name", form::text},
};

// -- calls of tools -----------------------------------------------------------

constexpr std::string_view calling_modes[]
  = {"MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"};

constexpr setting calling_settings[] = {
  {"allowed_function_names", form::texts},
  choice_setting("mode", calling_modes),
  {"stream_function_call_arguments", form::flag},
};

constexpr setting place_settings[] = {
  number_setting("latitude", -90, 90),
  number_setting("longitude", -180, 180),
};

constexpr setting retrieval_settings[] = {
  {"language_code", form::text},
  nested_settings("lat_lng", place_settings),
};

constexpr setting tool_settings[] = {
  nested_settings("function_calling_config", calling_settings),
  {"include_server_side_tool_invocations", form::flag},
  nested_settings("retrieval_config", retrieval_settings),
};

constexpr setting automatic_calling_settings[] = {
  {"disable", form::flag},
  {"ignore_call_history", form::flag},
  whole_number_setting("maximum_remote_calls"),
};

// -- choice of the model, requests --------------------------------------------

constexpr std::string_view routing_preferences[]
  = {"UNKNOWN", "PRIORITIZE_QUALITY", "BALANCED", "PRIORITIZE_COST"};

constexpr setting automatic_routing_settings[] = {
  choice_setting("model_routing_preference", routing_preferences),
};

constexpr setting manual_routing_settings[] = {
  {"model_name", form::text},
};

constexpr setting routing_settings[] = {
  nested_settings("auto_mode", automatic_routing_settings),
  nested_settings("manual_mode", manual_routing_settings),
};

constexpr std::string_view selection_preferences[]
  = {"FEATURE_SELECTION_PREFERENCE_UNSPECIFIED",
     "PRIORITIZE_QUALITY",
     "BALANCED",
     "PRIORITIZE_COST"};

constexpr setting selection_settings[] = {
  choice_setting("feature_selection_preference", selection_preferences),
};

constexpr setting retry_settings[] = {
  whole_number_setting("attempts", 0),
  number_setting("exp_base", 0),
  {.name = "http_status_codes",
   .holds = form::whole_numbers,
   .least = 100,
   .most = 599},
  number_setting("initial_delay", 0),
  number_setting("jitter", 0),
  number_setting("max_delay", 0),
};

constexpr std::string_view resource_scopes[] = {"COLLECTION"};

constexpr setting http_settings[] = {
  {"api_version", form::text},
  {"async_client_args", form::mapping},
  {"base_url", form::text},
  choice_setting("base_url_resource_scope", resource_scopes),
  {"client_args", form::mapping},
  {"extra_body", form::mapping},
  {"headers", form::mapping_of_texts},
  nested_settings("retry_options", retry_settings),
  whole_number_setting("timeout", 0),
};

// -- sounds and pictures ------------------------------------------------------

constexpr setting consent_settings[] = {
  {"signature", form::text},
};

constexpr setting replicated_voice_settings[] = {
  {"consent_audio", form::text}, // Base64.
  {"mime_type", form::text},
  nested_settings("voice_consent_signature", consent_settings),
  {"voice_sample_audio", form::text}, // Base64.
};

constexpr setting prebuilt_voice_settings[] = {
  {"voice_name", form::text},
};

constexpr setting voice_settings[] = {
  nested_settings("prebuilt_voice_config", prebuilt_voice_settings),
  nested_settings("replicated_voice_config", replicated_voice_settings),
  {"voice", form::text},
};

constexpr setting speaker_settings[] = {
  {"speaker", form::text},
  nested_settings("voice_config", voice_settings),
};

constexpr setting speakers_settings[] = {
  {.name = "speaker_voice_configs",
   .holds = form::settings_list,
   .inner = speaker_settings},
};

constexpr setting speech_settings[] = {
  {"language_code", form::text},
  nested_settings("multi_speaker_voice_config", speakers_settings),
  nested_settings("voice_config", voice_settings),
};

constexpr std::string_view prominence[] = {"PROMINENT_PEOPLE_UNSPECIFIED",
                                           "ALLOW_PROMINENT_PEOPLE",
                                           "BLOCK_PROMINENT_PEOPLE"};

constexpr setting image_output_settings[] = {
  whole_number_setting("compression_quality", 0, 100),
  {"mime_type", form::text},
};

// Sizes, ratios and the generation of people are texts in google-genai.
constexpr setting image_settings[] = {
  {"aspect_ratio", form::text},
  nested_settings("image_output_options", image_output_settings),
  {"image_size", form::text},
  whole_number_setting("output_compression_quality", 0, 100),
  {"output_mime_type", form::text},
  {"person_generation", form::text},
  choice_setting("prominent_people", prominence),
};

constexpr std::string_view transcription_modes[]
  = {"MODE_UNSPECIFIED", "VERBATIM", "SMART"};

constexpr setting language_hints[] = {
  {"language_codes", form::texts},
};

constexpr setting transcription_settings[] = {
  {"adaptation_phrases", form::texts},
  {"custom_vocabulary", form::texts},
  {"diarization", form::flag},
  nested_settings("language_auto", {}),
  {"language_codes", form::texts},
  nested_settings("language_hints", language_hints),
  choice_setting("mode", transcription_modes),
  {"source_text", form::text},
  {"word_timestamp", form::flag},
};

constexpr std::string_view resolutions[] = {"MEDIA_RESOLUTION_UNSPECIFIED",
                                            "MEDIA_RESOLUTION_LOW",
                                            "MEDIA_RESOLUTION_MEDIUM",
                                            "MEDIA_RESOLUTION_HIGH"};

constexpr std::string_view modalities[]
  = {"MODALITY_UNSPECIFIED", "TEXT", "IMAGE", "AUDIO", "VIDEO"};

// -- the whole ----------------------------------------------------------------

constexpr setting output_settings[] = {
  {"output_uri_prefix", form::text},
};

constexpr setting all_settings[] = {
  {"audio_timestamp", form::flag},
  nested_settings("audio_transcription_config", transcription_settings),
  {"automatic_continuation", form::flag},
  nested_settings("automatic_function_calling", automatic_calling_settings),
  {"cached_content", form::text},
  whole_number_setting("candidate_count", 1),
  {"continuation_token", form::text},
  {"enable_enhanced_civic_answers", form::flag},
  number_setting("frequency_penalty", -2, 2),
  nested_settings("generation_output_config", output_settings),
  nested_settings("http_options", http_settings),
  nested_settings("image_config", image_settings),
  {"labels", form::mapping_of_texts},
  // A flag at OpenAI.
  {.name = "logprobs",
   .holds = form::whole_number_or_flag,
   .least = 0,
   .most = 20},
  whole_number_setting("max_output_tokens", 1),
  choice_setting("media_resolution", resolutions),
  nested_settings("model_armor_config", armor_settings),
  nested_settings("model_selection_config", selection_settings),
  number_setting("presence_penalty", -2, 2),
  {"response_json_schema", form::anything},
  {"response_logprobs", form::flag},
  {"response_mime_type", form::text},
  {.name = "response_modalities", .holds = form::choices, .values = modalities},
  nested_settings("routing_config", routing_settings),
  {.name = "safety_settings",
   .holds = form::settings_list,
   .inner = safety_settings},
  whole_number_setting("seed"),
  {"service_tier", form::text}, // Each vendor has values of its own.
  {"should_return_http_response", form::flag},
  {.name = "speech_config",
   .holds = form::text_or_settings,
   .inner = speech_settings},
  {"stop_sequences", form::texts},
  {"store", form::flag},
  number_setting("temperature", 0), // The most is 1 or 2, by vendor.
  nested_settings("thinking_config", thinking_settings),
  nested_settings("tool_config", tool_settings),
  number_setting("top_k",
                 -1), // -1 and 0 mean all tokens at vLLM and llama.cpp.
  number_setting("top_p", 0, 1),
};

std::string range_of(const setting& which) {
  if (which.least && which.most)
    return fmt::format(" from {} to {}", *which.least, *which.most);
  return which.least ? fmt::format(" of at least {}", *which.least)
                     : std::string();
}

} // namespace

std::span<const setting> known_settings() {
  return all_settings;
}

std::string needed_value(const setting& which) {
  switch (which.holds) {
  case form::anything:
    return "a value";
  case form::number:
    return "a number" + range_of(which);
  case form::whole_number:
    return "a whole number" + range_of(which);
  case form::whole_numbers:
    return "a list of whole numbers" + range_of(which);
  case form::whole_number_or_flag:
    return fmt::format("a whole number{}, or true or false", range_of(which));
  case form::flag:
    return "true or false";
  case form::text:
    return "text";
  case form::texts:
    return "a list of texts";
  case form::choice:
    return fmt::format("one of {}", fmt::join(which.values, ", "));
  case form::choices:
    return fmt::format("a list of these: {}", fmt::join(which.values, ", "));
  case form::mapping:
  case form::settings:
    return "a mapping";
  case form::mapping_of_texts:
    return "a mapping of texts";
  case form::settings_list:
    return "a list of mappings";
  case form::text_or_settings:
    return "text or a mapping";
  }
  return {};
}

} // namespace troupe
