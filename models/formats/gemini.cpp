#include "troupe/core/support/wire.hpp"
#include "troupe/models/formats/answer_builder.hpp"
#include "troupe/models/formats/answer_stream.hpp"
#include "troupe/models/formats/document.hpp"
#include "troupe/models/formats/failure.hpp"
#include "troupe/models/formats/request_parts.hpp"
#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/wire/part_marks.hpp"
#include "troupe/models/wire/server_blocks.hpp"
#include "troupe/models/wire/server_items.hpp"
#include "troupe/models/wire/server_parts.hpp"
#include "troupe/models/wire/tool_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

namespace {

constexpr std::string_view gemini_vendor = "Gemini";

// -- requests ----

// Sources: googleapis/python-genai, types.py and models.py
// (_GenerateContentConfig_to_mldev), August 2026; ai.google.dev, "Thought
// signatures".

constexpr std::string_view marks = "gemini";

bool has_field(const part& said, const char* name) {
  const auto& extra = said.extra.data();
  return extra.is_object() && extra.contains(name);
}

// Copies the fields that accompany any kind of part.
void add_part_fields(const part& said, json& made) {
  constexpr std::array names
    = {"thoughtSignature", "videoMetadata", "mediaResolution"};
  for (const auto* name : names)
    if (has_field(said, name))
      made[name] = said.extra.data()[name];
  if (auto metadata = unmarked_metadata(said); !metadata.is_null())
    made["partMetadata"] = std::move(metadata);
}

result<json> media_part(const media& which) {
  if (which.is_inline())
    return json{
      {"inlineData", {{"mimeType", which.mime_type}, {"data", which.base64}}}};
  return json{
    {"fileData", {{"mimeType", which.mime_type}, {"fileUri", which.uri}}}};
}

json in_camel_case(const json& data) {
  if (data.is_array()) {
    auto made = json::array();
    for (const auto& element : data)
      made.push_back(in_camel_case(element));
    return made;
  }
  if (!data.is_object())
    return data;
  auto made = json::object();
  for (const auto& [name, field] : data.items())
    made[to_camel_case(name)] = in_camel_case(field);
  return made;
}

// A part of a function response: media, with further fields about them.
result<json> attached_part(const part& attached) {
  const auto held = media_of(attached);
  if (!held)
    return held.error();
  if (!*held)
    return bad_request(fmt::format("{} takes no {} in a function response",
                                   gemini_vendor,
                                   kind_of(attached)));
  auto made = in_camel_case(std::get<value>(attached.body).data());
  if ((*held)->is_inline())
    made["inlineData"]["data"] = (*held)->base64; // In the standard alphabet.
  return made;
}

// The further fields of a function response that the model is told. Fields that
// are unknown here stay in the session: the interface refuses unknown names.
result<json> response_fields(const function_response& answer, bool is_vertex) {
  auto made = json::object();
  auto parts = json::array();
  for (const auto& attached : attached_parts(answer)) {
    auto element = attached_part(attached);
    if (!element)
      return element;
    parts.push_back(std::move(*element));
  }
  if (!parts.empty())
    made["parts"] = std::move(parts);
  const auto& extra = answer.extra.data();
  for (const auto* name : {"scheduling", "willContinue"}) {
    const auto found = extra.is_object() ? extra.find(name) : extra.end();
    if (found == extra.end() || found->is_null()
        || (is_vertex && name == std::string_view("willContinue")))
      continue; // Vertex has no `willContinue`.
    made[name] = *found;
  }
  return made;
}

// Ids by which the model knows its calls; responses must repeat them
// (ai.google.dev, "Function calling"). Ids made by troupe are not sent, as in
// ADK, and Vertex refuses the field. Such calls and responses are matched by
// name and order.
class model_ids {
public:
  explicit model_ids(bool are_sent) : are_sent_(are_sent) {}

  // Returns the id to send; empty for none.
  std::string id_of(const part& said, const function_call& call) {
    const auto mark = mark_of(said, marks, "id");
    auto id = mark.is_string() ? mark.get<std::string>() : plain(call.id);
    if (!are_sent_ || id.empty())
      return {};
    // Two calls with the same id could not be told apart.
    const auto& owner = owners_.emplace(id, call.id).first->second;
    if (owner != call.id)
      return {};
    known_[call.id] = id;
    return id;
  }

  std::string id_of(const function_response& answer) const {
    const auto known = known_.find(answer.id);
    return known != known_.end() ? known->second : std::string();
  }

private:
  static std::string plain(const std::string& id) {
    return id.starts_with("adk-") ? std::string() : id;
  }

  bool are_sent_;
  std::map<std::string, std::string> known_;  // The model's id by troupe's.
  std::map<std::string, std::string> owners_; // Troupe's id by the model's.
};

bool is_of_vertex(const wire_options& with) {
  return with.model.starts_with("projects/")
         || with.model.find("publishers/") != std::string::npos;
}

// Returns true for Gemma and for models before Gemini 3. They ignore
// signatures, and refuse functions beside their own tools. Names without a
// version, such as those of tuned models, count as newer.
bool is_before_3(std::string_view model) {
  const auto name = model.substr(model.rfind('/') + 1);
  return name.starts_with("gemini-1") || name.starts_with("gemini-2")
         || name.starts_with("gemma-");
}

// Writes the contents one by one.
class content_writer {
public:
  explicit content_writer(const wire_options& with)
    : wants_signatures_(!is_before_3(with.model)),
      is_vertex_(is_of_vertex(with)),
      ids_(!is_vertex_) {}

  result<json> write(const model_request& asked) {
    auto contents = json::array();
    const auto conversation = conversation_of(asked);
    const auto turn = turn_start(conversation);
    for (std::size_t index = 0; index < conversation.size(); ++index) {
      const auto& said = conversation[index];
      auto parts = json::array();
      for (const auto& element : said->parts) {
        auto made = part_of(element, is_by_model(*said));
        if (!made)
          return made.error();
        if (!made->is_null())
          parts.push_back(std::move(*made));
      }
      if (wants_signatures_ && index >= turn && is_by_model(*said))
        sign(parts);
      if (!parts.empty())
        contents.push_back({{"role", is_by_model(*said) ? "model" : "user"},
                            {"parts", std::move(parts)}});
    }
    return contents;
  }

private:
  // Returns the position after the last content that is addressed to the model
  // and not only responses of tools.
  static std::size_t
  turn_start(const std::vector<std::shared_ptr<const content>>& conversation) {
    const auto found = std::find_if(
      conversation.rbegin(), conversation.rend(), [](const auto& said) {
        return !is_by_model(*said)
               && std::ranges::any_of(said->parts, [](const part& element) {
                    return element.response() == nullptr;
                  });
      });
    return static_cast<std::size_t>(conversation.rend() - found);
  }

  // From Gemini 3 on, the first call of each step of a turn needs its
  // signature. A call that came from elsewhere gets this placeholder
  // (ai.google.dev, "Thought signatures").
  static void sign(json& parts) {
    const auto first = std::ranges::find_if(
      parts, [](const json& made) { return made.contains("functionCall"); });
    if (first != parts.end() && !first->contains("thoughtSignature"))
      (*first)["thoughtSignature"] = "skip_thought_signature_validator";
  }

  // Returns a part of the request, or null to leave it out. Left out are
  // thoughts without a signature of the model, and empty text, which the model
  // refuses.
  result<json> part_of(const part& said, bool by_model) {
    if (said.thought
        && (said.text() == nullptr || !has_field(said, "thoughtSignature")
            || text_signature_of(said.extra.data())))
      return json();
    json made;
    if (const auto* text = said.text()) {
      made["text"] = *text;
      if (said.thought)
        made["thought"] = true;
      add_part_fields(said, made);
      if (is_vertex_)
        made.erase("partMetadata");
      return text->empty() && made.size() == 1 ? json() : made;
    }
    if (const auto* call = said.call()) {
      made["functionCall"]
        = {{"name", call->name},
           {"args", call->args.is_null() ? json::object() : call->args.data()}};
      if (auto id = ids_.id_of(said, *call); !id.empty())
        made["functionCall"]["id"] = std::move(id);
    } else if (const auto* answer = said.response()) {
      auto fields = response_fields(*answer, is_vertex_);
      if (!fields)
        return fields;
      auto& field = made["functionResponse"] = std::move(*fields);
      field["name"] = answer->name;
      field["response"] = answer->response.data();
      if (auto id = ids_.id_of(*answer); !id.empty())
        field["id"] = std::move(id);
    } else {
      auto other = other_part(said, by_model);
      if (!other || other->is_null())
        return other;
      made = std::move(*other);
    }
    add_part_fields(said, made);
    if (is_vertex_)
      made.erase("partMetadata"); // Vertex has no such field.
    return made;
  }

  result<json> other_part(const part& said, bool by_model) const {
    const auto held = media_of(said);
    if (!held)
      return held.error();
    if (*held)
      return media_part(**held);
    const auto work = server_part_of(said);
    if (!work)
      return bad_request(
        fmt::format("{} takes no {}", gemini_vendor, kind_of(said)));
    return work_part(said, *work, by_model);
  }

  // Returns the work of the vendor's tools, or null to leave it out. Left out
  // are calls of another vendor's tools and of another agent, and those at
  // Vertex, which has no such parts.
  result<json>
  work_part(const part& said, const server_part& work, bool by_model) const {
    const bool is_foreign = block_of_part(said) || is_of_item(said);
    const bool is_code = work.is == server_part::kind::code
                         || work.is == server_part::kind::output;
    if (!is_code && (is_foreign || is_vertex_ || !by_model))
      return json();
    auto made = json::object();
    auto& field = made[work.name] = *work.held;
    if (is_foreign && field.is_object())
      field.erase("id");
    const auto& fields = std::get<value>(said.body).data();
    for (const auto* name : {"thoughtSignature", "thought_signature"})
      if (const auto held = fields.find(name); held != fields.end())
        made["thoughtSignature"] = *held;
    if (auto metadata = unmarked_metadata(said); !metadata.is_null())
      made["partMetadata"] = std::move(metadata);
    return made;
  }

  const bool wants_signatures_;
  const bool is_vertex_;
  model_ids ids_;
};

// The names of a tool here and in a request.
struct own_tool {
  std::string_view name;
  const char* field;
};

constexpr std::array own_tools{
  own_tool{"google_search", "googleSearch"},
  own_tool{"url_context", "urlContext"},
  own_tool{"code_execution", "codeExecution"},
  own_tool{"google_maps", "googleMaps"},
  own_tool{"enterprise_web_search", "enterpriseWebSearch"}};

// `parametersJsonSchema` takes JSON Schema. Its alternative, `parameters`,
// takes only the OpenAPI 3.0 subset of the type Schema.
json gemini_tools(const model_request& asked) {
  auto tools = json::array();
  auto functions = json::array();
  for (const auto& tool : asked.tools)
    functions.push_back({{"name", tool.name},
                         {"description", tool.description},
                         {"parametersJsonSchema", parameters_of(tool)}});
  if (!functions.empty())
    tools.push_back({{"functionDeclarations", std::move(functions)}});
  for (const auto& wanted : asked.vendor_tools) {
    const auto* known
      = std::ranges::find(own_tools, wanted.name, &own_tool::name);
    auto made = json::object();
    made[known->field] = wanted.settings.is_null()
                           ? json::object()
                           : in_camel_case(wanted.settings.data());
    tools.push_back(std::move(made));
  }
  return tools;
}

// With functions beside its own tools, the model needs its own calls back
// (ai.google.dev, "Combine built-in tools and function calling"). Vertex has no
// such field.
void ask_for_calls(const model_request& asked, json& body) {
  constexpr const char* name = "includeServerSideToolInvocations";
  if (asked.tools.empty() || asked.vendor_tools.empty())
    return;
  auto& config = body["toolConfig"];
  if (config.is_null())
    config = json::object();
  if (config.is_object()
      && !config.contains("include_server_side_tool_invocations")
      && !config.contains(name))
    config[name] = true;
}

// Adds the settings. Those in `own` belong to the request itself, all others to
// its generationConfig.
result<void> add_settings(const model_request& asked, json& body) {
  constexpr std::array own = {
    "safetySettings", "toolConfig", "cachedContent", "labels", "serviceTier"};
  auto settings = generation_settings::open(asked.generation_config);
  if (!settings)
    return settings.error();
  for (const auto* name : own)
    if (auto held = settings->take(name); !held.is_null())
      body[name] = std::move(held);
  for (const auto* name : {"tools", "systemInstruction", "contents", "model"})
    if (!settings->take(name).is_null())
      return bad_request(fmt::format(
        "generation_config: '{}' of {} is set already", name, gemini_vendor));
  auto config = std::move(*settings).rest_in_camel_case();
  if (!asked.response_schema.is_null()) {
    config["responseMimeType"] = "application/json";
    config["responseJsonSchema"] = asked.response_schema.data();
    config.erase("responseSchema"); // Only one of them may be set.
  }
  if (!config.empty())
    body["generationConfig"] = std::move(config);
  return {};
}

// Returns the model's part of the URL path, for "gemini-x", "models/gemini-x",
// "publishers/google/models/gemini-x" or "projects/…".
result<std::string> path_of(const wire_options& with, gemini_host host) {
  // Projects of a domain have a colon.
  const std::string_view signs
    = host == gemini_host::developer ? "-_./@" : "-_./@:";
  const auto is_plain = [signs](unsigned char next) {
    return next < 0x80
           && (std::isalnum(next) != 0
               || signs.find(static_cast<char>(next))
                    != std::string_view::npos);
  };
  if (with.model.empty() || !std::ranges::all_of(with.model, is_plain)
      || with.model.find("..") != std::string::npos)
    return bad_request(fmt::format("no model is named '{}'", with.model));
  return fmt::format("/{}/{}{}:{}",
                     host == gemini_host::developer ? "v1beta" : "v1",
                     with.model.find('/') == std::string::npos ? "models/" : "",
                     with.model,
                     with.streams ? "streamGenerateContent?alt=sse"
                                  : "generateContent");
}

// -- answers ----

class gemini_answer {
public:
  result<void> take(const wire_node& document,
                    std::vector<model_response>* pieces) {
    if (document["error"])
      return told_failure(document);
    if (const auto version = document["modelVersion"].text(); !version.empty())
      answer_.set_text("modelVersion", version);
    if (const auto usage = document["usageMetadata"])
      if (auto set = set_field("usageMetadata", usage); !set)
        return set;
    if (const auto candidate = document["candidates"].first())
      return take_candidate(candidate, pieces);
    const auto feedback = document["promptFeedback"];
    if (const auto reason = feedback["blockReason"].text(); !reason.empty()) {
      answer_.block(reason, feedback["blockReasonMessage"].text());
      has_ended_ = true;
    }
    return {};
  }

  bool has_ended() const { return has_ended_; }

  model_response whole() && { return std::move(answer_).take(); }

private:
  result<void> take_candidate(const wire_node& candidate,
                              std::vector<model_response>* pieces) {
    result<void> taken;
    candidate["content"]["parts"].for_each([&](const wire_node& element) {
      if (taken && element)
        taken = take_part(element, pieces);
    });
    if (!taken)
      return taken;
    // Fields of a candidate that ADK's LlmResponse has, and that of the tool
    // url_context.
    for (const std::string_view name : {"citationMetadata",
                                        "groundingMetadata",
                                        "logprobsResult",
                                        "urlContextMetadata"})
      if (const auto field = candidate[name])
        if (auto set = set_field(name, field); !set)
          return set;
    if (const auto average = candidate["avgLogprobs"].number())
      answer_.set_field("avgLogprobs", *average);
    if (const auto reason = candidate["finishReason"].text();
        !reason.empty() && reason != "FINISH_REASON_UNSPECIFIED") {
      answer_.finish(reason, candidate["finishMessage"].text());
      has_ended_ = true;
    }
    return {};
  }

  result<void> take_part(const wire_node& said,
                         std::vector<model_response>* pieces) {
    const bool thought = said["thought"].flag();
    const auto signature = said["thoughtSignature"];
    if (const auto text = said["text"]) {
      const auto words = text.text();
      if (pieces != nullptr && !words.empty())
        pieces->push_back(partial_answer(words, thought));
      // "Don't concatenate parts with signatures together": such a part goes
      // back unchanged, even if it has no text.
      if (!signature) {
        answer_.add_text(words, thought);
        return {};
      }
    }
    const auto call = said["functionCall"];
    // Arguments come in pieces only if a request asks for it
    // (streamFunctionCallArguments, only in Vertex).
    if (call["partialArgs"] || call["willContinue"].flag())
      return bad_answer(
        "it streamed the arguments of a function, which troupe has "
        "not asked for");
    if (!said.is_object())
      return {}; // A wrong type; `check` reports it.
    const auto malformed = [&call](const error& why) {
      return bad_answer(
        call ? fmt::format("it called function '{}' with malformed "
                           "arguments: {}",
                           call["name"].text(),
                           why.message())
             : why.message());
    };
    auto form = said.copy();
    if (!form)
      return malformed(form.error());
    auto parts = content_from_json({{"parts", {std::move(*form)}}});
    if (!parts)
      return malformed(parts.error());
    auto& made = parts->parts.front();
    // Calls get ids made by troupe. A model's ids need not be unique in a
    // session, where several agents and programs may ask at the same time.
    if (const auto* made_call = made.call();
        made_call != nullptr && !made_call->id.empty())
      set_mark(made, marks, "id", made_call->id);
    answer_.add_part(std::move(made));
    return {};
  }

  result<void> set_field(std::string_view name, const wire_node& field) {
    auto made = field.copy();
    if (!made || !made->is_object())
      return bad_answer(
        fmt::format("'{}': {}",
                    name,
                    made ? std::string_view("it is no object")
                         : std::string_view(made.error().message())));
    answer_.set_field(name, std::move(*made));
    return {};
  }

  answer_builder answer_;
  bool has_ended_ = false;
};

class gemini_stream : public answer_stream<gemini_answer> {
public:
  // The stream does not declare its end.
  bool has_ended() const noexcept override { return false; }

private:
  result<void> take_document(const wire_node& said,
                             std::string_view /*event_name*/,
                             std::vector<model_response>& pieces) override {
    return answer().take(said, &pieces);
  }
};

class gemini_wire_format : public wire_format {
public:
  explicit gemini_wire_format(gemini_host host) : host_(host) {}

  std::string_view provider() const noexcept override { return gemini_vendor; }

  result<void> check_tools_of(std::string_view model,
                              const std::vector<vendor_tool>& wanted,
                              bool beside_functions) const override {
    if (auto known
        = host_ == gemini_host::developer
            ? check_tools(
              wanted,
              {"google_search", "url_context", "code_execution", "google_maps"})
            : check_tools(wanted,
                          {"google_search",
                           "url_context",
                           "code_execution",
                           "google_maps",
                           "enterprise_web_search"});
        !known)
      return known;
    if (!wanted.empty() && beside_functions && is_before_3(model))
      return bad_request(fmt::format(
        "it cannot use '{}' beside functions (tools, toolsets, sub-agents, "
        "transfer_to_agent, finish_task); use Gemini 3 or newer, or give the "
        "tool to an agent without functions and make that agent a tool "
        "(AgentTool)",
        wanted.front().name));
    return {};
  }

  // An answer without any content is valid, as in ADK.
  result<model_response>
  read_answer(std::string_view body,
              const wire_options& /*asked*/) const override {
    return read_document(
      body, gemini_answer(), [](gemini_answer& answer, const wire_node& said) {
        return answer.take(said, nullptr);
      });
  }

  std::unique_ptr<stream_reader>
  read_stream(const wire_options& /*asked*/) const override {
    return std::make_unique<gemini_stream>();
  }

private:
  result<http_request> build_request(const model_request& asked,
                                     const wire_options& with) const override {
    // The rule is from python-genai, types.py, FunctionDeclaration.name.
    if (auto known
        = check_tool_names(asked, {128, "_.:-", false}, gemini_vendor);
        !known)
      return known.error();
    const auto path = path_of(with, host_);
    if (!path)
      return path.error();
    auto contents = content_writer(with).write(asked);
    if (!contents)
      return contents.error();
    json body{{"contents", std::move(*contents)}};
    if (!asked.system_instruction.empty())
      body["systemInstruction"]
        = {{"parts", {{{"text", asked.system_instruction}}}}};
    if (auto tools = gemini_tools(asked); !tools.empty())
      body["tools"] = std::move(tools);
    if (auto added = add_settings(asked, body); !added)
      return added.error();
    if (host_ == gemini_host::developer)
      ask_for_calls(asked, body);
    http_headers headers;
    if (host_ == gemini_host::vertex)
      headers = bearer_header(with);
    else if (!with.key.empty())
      headers.emplace_back("x-goog-api-key", with.key);
    return json_request(with, *path, std::move(headers), body);
  }

  const gemini_host host_;
};

} // namespace

wire_format_ptr gemini_format(gemini_host host) {
  return std::make_shared<gemini_wire_format>(host);
}

wire_format_ptr gemini_format() {
  return gemini_format(gemini_host::developer);
}

} // namespace troupe
