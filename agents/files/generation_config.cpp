#include "troupe/agents/files/generation_config.hpp"

#include "troupe/core/support/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace troupe {

namespace {

enum class form : std::uint8_t {
  number,
  whole_number,
  flag,
  text,
  texts,
  mapping,
  mappings,
  mapping_of_texts,
  text_or_mapping,
  whole_number_or_flag,
};

struct setting {
  std::string_view name; // With underscores.
  form holds;
  // Settings of the mapping, or of each mapping of the list; empty: any.
  std::span<const setting> inner = {};
};

// Source: googleapis/python-genai, types.py, GenerateContentConfig and the
// types of its fields, November 2026.

constexpr setting thinking_settings[] = {
  {"include_thoughts", form::flag},
  {"thinking_budget", form::whole_number},
  {"thinking_level", form::text},
};

constexpr setting safety_settings[] = {
  {"category", form::text},
  {"method", form::text},
  {"threshold", form::text},
};

constexpr setting calling_settings[] = {
  {"allowed_function_names", form::texts},
  {"mode", form::text},
  {"stream_function_call_arguments", form::flag},
};

constexpr setting tool_settings[] = {
  {"function_calling_config", form::mapping, calling_settings},
  {"include_server_side_tool_invocations", form::flag},
  {"retrieval_config", form::mapping},
};

constexpr setting known_settings[] = {
  {"audio_timestamp", form::flag},
  {"audio_transcription_config", form::mapping},
  {"automatic_function_calling", form::mapping},
  {"cached_content", form::text},
  {"candidate_count", form::whole_number},
  {"enable_enhanced_civic_answers", form::flag},
  {"frequency_penalty", form::number},
  {"http_options", form::mapping},
  {"image_config", form::mapping},
  {"labels", form::mapping_of_texts},
  {"logprobs", form::whole_number_or_flag}, // A flag at OpenAI.
  {"max_output_tokens", form::whole_number},
  {"media_resolution", form::text},
  {"model_armor_config", form::mapping},
  {"model_selection_config", form::mapping},
  {"presence_penalty", form::number},
  {"response_logprobs", form::flag},
  {"response_mime_type", form::text},
  {"response_modalities", form::texts},
  {"routing_config", form::mapping},
  {"safety_settings", form::mappings, safety_settings},
  {"seed", form::whole_number},
  {"service_tier", form::text},
  {"speech_config", form::text_or_mapping},
  {"stop_sequences", form::texts},
  {"temperature", form::number},
  {"thinking_config", form::mapping, thinking_settings},
  {"tool_config", form::mapping, tool_settings},
  {"top_k", form::number},
  {"top_p", form::number},
};

std::string_view words_of(form expected) {
  switch (expected) {
  case form::number:
    return "a number";
  case form::whole_number:
    return "a whole number";
  case form::flag:
    return "true or false";
  case form::text:
    return "text";
  case form::texts:
    return "a list of texts";
  case form::mapping:
    return "a mapping";
  case form::mappings:
    return "a list of mappings";
  case form::mapping_of_texts:
    return "a mapping of texts";
  case form::text_or_mapping:
    return "text or a mapping";
  case form::whole_number_or_flag:
    return "a whole number, or true or false";
  }
  return {};
}

bool is_text_value(const json& held) {
  return held.is_string();
}

bool fits(const json& held, form expected) {
  switch (expected) {
  case form::number:
    return held.is_number();
  case form::whole_number:
    return held.is_number_integer();
  case form::flag:
    return held.is_boolean();
  case form::text:
    return held.is_string();
  case form::texts:
    return held.is_array() && std::ranges::all_of(held, is_text_value);
  case form::mapping:
    return held.is_object();
  case form::mappings:
    return held.is_array() && std::ranges::all_of(held, [](const json& each) {
             return each.is_object();
           });
  case form::mapping_of_texts:
    return held.is_object() && std::ranges::all_of(held, is_text_value);
  case form::text_or_mapping:
    return held.is_string() || held.is_object();
  case form::whole_number_or_flag:
    return held.is_number_integer() || held.is_boolean();
  }
  return false;
}

const setting* find_setting(std::span<const setting> known,
                            std::string_view name) {
  const auto wanted = to_camel_case(name);
  const auto found = std::ranges::find_if(known, [&wanted](const auto& each) {
    return to_camel_case(each.name) == wanted;
  });
  return found == known.end() ? nullptr : &*found;
}

// Checks one mapping; `where` names it in errors.
class config_check {
public:
  explicit config_check(const std::filesystem::path& file) : file_(file) {}

  // The settings of the whole mapping may have names that are not known.
  result<void> check(const yaml_node& mapping) const {
    return check(mapping, known_settings, "generate_content_config", true);
  }

private:
  result<void> check(const yaml_node& mapping,
                     std::span<const setting> known,
                     const std::string& where,
                     bool may_have_others) const {
    std::set<std::string> names;
    for (const auto& field : mapping.fields) {
      const auto refused = [&](std::string_view why) {
        return fail_at({&file_, field.line}, fmt::format("{}: {}", where, why));
      };
      if (!names.insert(to_camel_case(field.name)).second)
        return refused(
          fmt::format("has the setting '{}' in two spellings", field.name));
      const auto* found = find_setting(known, field.name);
      if (found == nullptr && !may_have_others)
        return refused(fmt::format(
          "unknown setting '{}'; it has {}",
          field.name,
          list_names(known, [](const setting& each) { return each.name; })));
      if (found == nullptr || field.value->kind == yaml_node::form::null)
        continue;
      if (!fits(to_json(*field.value), found->holds))
        return refused(
          fmt::format("'{}' must be {}", field.name, words_of(found->holds)));
      if (auto checked = check_inner(*field.value, *found, where); !checked)
        return checked;
    }
    return {};
  }

  result<void> check_inner(const yaml_node& held,
                           const setting& which,
                           const std::string& where) const {
    if (which.inner.empty())
      return {};
    const auto inner = fmt::format("{}.{}", where, which.name);
    if (held.kind == yaml_node::form::map)
      return check(held, which.inner, inner, false);
    for (const auto& each : held.items)
      if (auto checked = check(*each, which.inner, inner, false); !checked)
        return checked;
    return {};
  }

  const std::filesystem::path& file_;
};

} // namespace

result<json> read_generation_config(const field_reader& fields) {
  constexpr std::string_view name = "generate_content_config";
  auto config = fields.object(name);
  if (!config)
    return config.error();
  if (!*config)
    return json::object();
  if (auto checked = config_check(fields.file()).check(*fields.find(name));
      !checked)
    return checked.error();
  return std::move(**config);
}

} // namespace troupe
