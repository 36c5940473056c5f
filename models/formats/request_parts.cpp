#include "troupe/models/formats/request_parts.hpp"

#include "troupe/core/content.hpp"
#include "troupe/core/support/base64.hpp"
#include "troupe/core/support/blank.hpp"
#include "troupe/core/support/wire.hpp"
#include "troupe/models/http/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace troupe {

namespace {

// Anthropic accepts no other characters ("String should match pattern
// '^[a-zA-Z0-9_-]+$'").
constexpr std::size_t call_id_bytes_max = 40;

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= call_id_bytes_max
         && std::ranges::all_of(text, [](unsigned char next) {
              return next < 0x80
                     && (std::isalnum(next) != 0 || next == '_' || next == '-');
            });
}

std::string plain_mime_type(std::string_view text) {
  std::string plain(text.substr(0, text.find(';')));
  while (plain.ends_with(' '))
    plain.pop_back();
  std::ranges::transform(plain, plain.begin(), [](unsigned char next) {
    return static_cast<char>(std::tolower(next));
  });
  return plain;
}

// Reads `{"fileData": {"fileUri", "mimeType", "displayName"}}`.
result<std::optional<media>> file_of(const json& body) {
  const auto& fields = body.get_ref<const json::object_t&>();
  const auto held = std::ranges::find_if(fields, [](const auto& field) {
    return to_camel_case(field.first) == "fileData";
  });
  if (held == fields.end())
    return std::nullopt;
  auto reader = wire_reader::open(held->second, "fileData");
  if (!reader)
    return reader.error();
  media made;
  reader->take("fileUri", made.uri);
  reader->take("mimeType", made.mime_type);
  reader->take("displayName", made.display_name);
  if (made.uri.empty())
    reader->fail("'fileUri' is missing");
  if (auto rest = std::move(*reader).rest(); !rest)
    return rest.error();
  made.mime_type = plain_mime_type(made.mime_type);
  return made;
}

bool is_blank_text(const part& said) {
  const auto* text = said.text();
  return text != nullptr
         && text->find_first_not_of(wire_white_space) == std::string::npos;
}

} // namespace

bool is_by_model(const content& said) {
  return said.role == "model" || said.role == "assistant";
}

std::vector<std::shared_ptr<const content>>
conversation_of(const model_request& asked) {
  std::vector<std::shared_ptr<const content>> said;
  std::ranges::copy_if(
    asked.contents, std::back_inserter(said), [](const auto& each) {
      return each && !std::ranges::all_of(each->parts, is_blank_text);
    });
  if (said.empty() || is_by_model(*said.back()))
    said.push_back(std::make_shared<const content>(user_text("Go on.")));
  return said;
}

result<void> check_tool_names(const model_request& asked,
                              const tool_name_rule& rule,
                              std::string_view provider) {
  const auto fits = [&rule](std::string_view name) {
    const bool begins
      = !name.empty()
        && (rule.may_begin_with_any || name.front() == '_'
            || std::isalpha(static_cast<unsigned char>(name.front())) != 0);
    return begins && name.size() <= rule.bytes_max
           && std::ranges::all_of(name, [&rule](char next) {
                const auto byte = static_cast<unsigned char>(next);
                return byte < 0x80
                       && (std::isalnum(byte) != 0
                           || rule.signs.find(next) != std::string_view::npos);
              });
  };
  for (const auto& tool : asked.tools)
    if (!fits(tool.name))
      return bad_request(
        fmt::format("{} takes no tool of the name '{}': at most {} letters, "
                    "digits and any of '{}'",
                    provider,
                    tool.name,
                    rule.bytes_max,
                    rule.signs));
  return {};
}

json parameters_of(const tool_declaration& tool) {
  return tool.parameters.is_null()
           ? json{{"type", "object"}, {"properties", json::object()}}
           : tool.parameters.data();
}

json declaration_of(const tool_declaration& tool, const char* schema) {
  json made{{"name", tool.name}, {schema, parameters_of(tool)}};
  if (!tool.description.empty())
    made["description"] = tool.description;
  return made;
}

std::string object_text(const value& object) {
  return object.is_null() ? "{}" : object->dump();
}

result<std::optional<media>> media_of(const part& said) {
  const auto* body = std::get_if<value>(&said.body);
  if (body == nullptr || !body->data().is_object())
    return std::nullopt;
  auto bytes = blob_of(said);
  if (!bytes)
    return bytes.error();
  result<std::optional<media>> made = std::nullopt;
  if (*bytes) {
    auto& held = **bytes;
    made->emplace();
    (*made)->mime_type = plain_mime_type(held.mime_type);
    (*made)->base64 = to_base64(held.bytes);
    (*made)->display_name = std::move(held.display_name);
  } else {
    made = file_of(body->data());
  }
  if (made && *made && (*made)->mime_type.empty())
    return bad_request(fmt::format("{} without a MIME type", kind_of(said)));
  return made;
}

error bad_request(std::string_view why) {
  return {errc::invalid_argument, std::string(why)};
}

error no_such_media(std::string_view provider, const media& which) {
  return {errc::invalid_argument,
          which.is_inline()
            ? fmt::format("{} takes no {}", provider, which.mime_type)
            : fmt::format(
              "{} takes no {} at {}", provider, which.mime_type, which.uri)};
}

std::optional<std::string> text_signature_of(const json& fields) {
  if (!fields.is_object() || !fields.contains("thoughtSignature")
      || !fields["thoughtSignature"].is_string())
    return std::nullopt;
  auto text
    = from_base64(fields["thoughtSignature"].get_ref<const std::string&>());
  if (!text || text->empty() || !is_ascii_header_value(*text))
    return std::nullopt;
  return std::move(*text);
}

std::string kind_of(const part& said) {
  if (said.text() != nullptr)
    return "text";
  if (said.call() != nullptr)
    return "functionCall";
  if (said.response() != nullptr)
    return "functionResponse";
  const auto& body = std::get<value>(said.body).data();
  return body.is_object() && !body.empty() ? to_camel_case(body.begin().key())
                                           : "empty part";
}

// -- ids of calls ----

const std::string& call_ids::id_of(const function_call& call) {
  if (!call.id.empty())
    return mapped(call.id);
  return unnamed_.emplace(call.name, next_free())->second;
}

std::string call_ids::id_of(const function_response& answer) {
  if (!answer.id.empty())
    return mapped(answer.id);
  const auto open
    = unnamed_.lower_bound(answer.name); // The oldest of that name.
  if (open == unnamed_.end() || open->first != answer.name)
    return next_free();
  auto id = std::move(open->second);
  unnamed_.erase(open);
  return id;
}

const std::string& call_ids::mapped(const std::string& id) {
  const auto known = known_.find(id);
  if (known != known_.end())
    return known->second;
  const bool stays
    = form_ == form::plain && is_id(id) && used_.insert(id).second;
  auto free = stays ? id : next_free();
  return known_.emplace(id, std::move(free)).first->second;
}

std::string call_ids::next_free() {
  for (;;) {
    ++count_;
    auto id = form_ == form::nine ? fmt::format("call{:05}", count_)
                                  : fmt::format("call_{}", count_);
    if (used_.insert(id).second)
      return id;
  }
}

// -- settings ----

result<generation_settings> generation_settings::open(const value& config) {
  generation_settings made;
  if (config.is_null())
    return made;
  if (!config->is_object())
    return bad_request("generation_config is not an object");
  for (const auto& [name, field] : config->get_ref<const json::object_t&>()) {
    if (field.is_null())
      continue;
    if (!made.fields_.emplace(to_camel_case(name), std::pair(name, field))
           .second)
      return bad_request(
        fmt::format("generation_config has '{}' in two spellings", name));
  }
  // ADK's client gets declarations only, which it cannot call by itself.
  made.take("automaticFunctionCalling");
  for (const auto& [name, way] :
       {std::pair("httpOptions",
                  "set base_url, headers, attempts and timeouts of the model"),
        std::pair("automaticContinuation", "leave it out"),
        std::pair("shouldReturnHttpResponse", "leave it out")})
    if (made.fields_.contains(name))
      return bad_request(fmt::format(
        "generation_config: '{}' is a setting of ADK's client; {}", name, way));
  return made;
}

json generation_settings::take(std::string_view name) {
  const auto found = fields_.find(std::string(name));
  if (found == fields_.end())
    return {};
  auto field = std::move(found->second.second);
  fields_.erase(found);
  return field;
}

void generation_settings::move_to(json& body,
                                  std::initializer_list<renaming> fields) {
  for (const auto& each : fields)
    if (auto held = take(each.from); !held.is_null())
      body[each.to] = std::move(held);
}

result<void>
generation_settings::refuse(std::initializer_list<const char*> names,
                            std::string_view provider) {
  for (const auto* name : names)
    if (!take(name).is_null())
      return bad_request(
        fmt::format("generation_config: {} has no '{}'", provider, name));
  return {};
}

json generation_settings::rest() && {
  auto left = json::object();
  for (auto& [unused, field] : fields_)
    left[field.first] = std::move(field.second);
  return left;
}

json generation_settings::rest_in_camel_case() && {
  auto left = json::object();
  for (auto& [name, field] : fields_)
    left[name] = std::move(field.second);
  return left;
}

result<void> add_tool_choice(generation_settings& settings,
                             json& body,
                             json (*form_of)(const tool_choice&),
                             std::string_view provider) {
  const auto config = settings.take("toolConfig");
  if (config.is_null())
    return {};
  const auto field_of = [](const json& object, std::string_view name) {
    if (object.is_object())
      for (const auto& [spelling, held] : object.items())
        if (to_camel_case(spelling) == name)
          return held;
    return json();
  };
  const auto calling = field_of(config, "functionCallingConfig");
  const auto mode = field_of(calling, "mode");
  const auto allowed = field_of(calling, "allowedFunctionNames");
  tool_choice choice;
  if (mode == "NONE") {
    choice.mode = calling_mode::none;
  } else if (mode == "ANY" && allowed.size() == 1 && allowed.is_array()
             && allowed[0].is_string()) {
    choice.mode = calling_mode::one;
    choice.function = allowed[0].get<std::string>();
  } else if (mode == "ANY" && allowed.empty()) {
    choice.mode = calling_mode::any;
  } else if (mode != "AUTO") {
    return bad_request(
      fmt::format("generation_config: {} has no such 'toolConfig'", provider));
  }
  body["tool_choice"] = form_of(choice);
  return {};
}

result<void> refuse_sampling(generation_settings& settings,
                             std::string_view provider) {
  return settings.refuse({"presencePenalty",
                          "frequencyPenalty",
                          "seed",
                          "responseLogprobs",
                          "logprobs"},
                         provider);
}

result<void> add_other_settings(generation_settings settings,
                                json& body,
                                std::string_view provider) {
  if (const auto count = settings.take("candidateCount");
      !count.is_null() && count != 1)
    return bad_request("generation_config: 'candidateCount' can only be 1");
  // Fields of google.genai.types.GenerateContentConfig.
  if (auto none = settings.refuse({"audioTimestamp",
                                   "audioTranscriptionConfig",
                                   "cachedContent",
                                   "continuationToken",
                                   "enableEnhancedCivicAnswers",
                                   "generationOutputConfig",
                                   "imageConfig",
                                   "labels",
                                   "mediaResolution",
                                   "modelArmorConfig",
                                   "modelSelectionConfig",
                                   "responseJsonSchema",
                                   "responseModalities",
                                   "responseSchema",
                                   "routingConfig",
                                   "safetySettings",
                                   "speechConfig"},
                                  provider);
      !none)
    return none;
  auto rest = std::move(settings).rest();
  for (auto& [name, field] : rest.get_ref<json::object_t&>()) {
    if (body.contains(name) || name == "stream")
      return bad_request(fmt::format(
        "generation_config: '{}' of {} is set already", name, provider));
    body[name] = std::move(field);
  }
  return {};
}

http_headers bearer_header(const wire_options& with) {
  http_headers made;
  if (!with.key.empty())
    made.emplace_back("Authorization", "Bearer " + with.key);
  return made;
}

result<http_request> json_request(const wire_options& with,
                                  std::string_view path,
                                  http_headers headers,
                                  const json& body) {
  http_request made;
  made.url = with.base_url + std::string(path);
  made.headers = std::move(headers);
  made.headers.emplace_back("Content-Type", "application/json");
  made.headers.emplace_back(
    "Accept", with.streams ? "text/event-stream" : "application/json");
  if (!is_ascii_header_value(with.key))
    return bad_request("the key holds a character that no header may hold");
  made.body = to_text(body);
  return made;
}

result<http_request> wire_format::make_request(const model_request& asked,
                                               const wire_options& with) const {
  if (!asked.vendor_tools.empty())
    if (auto known
        = check_tools_of(with.model, asked.vendor_tools, !asked.tools.empty());
        !known)
      return known.error();
  try {
    return build_request(asked, with);
  } catch (const json::exception&) {
    return bad_request("the request holds text that is not UTF-8");
  }
}

} // namespace troupe
