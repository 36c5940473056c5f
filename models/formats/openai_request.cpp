#include "troupe/models/formats/openai_request.hpp"

#include "troupe/models/formats/answer_schema.hpp"
#include "troupe/models/formats/request_parts.hpp"
#include "troupe/models/wire/part_marks.hpp"
#include "troupe/models/wire/server_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace troupe {

namespace {

// Sources: openai/openai-python, types/chat (generated from the OpenAPI
// specification), August 2026.
class chat_writer {
public:
  explicit chat_writer(const model_request& asked, const wire_options& with)
    : is_openai_(is_openai(with.base_url)),
      sends_thoughts_(!is_openai_ && !asked.tools.empty()
                      && !with.without.thoughts) {}

  result<json> write(const model_request& asked) {
    // Uses "system" and not "developer": servers with a chat template know only
    // "system", and OpenAI maps it to "developer" where a model wants that.
    if (!asked.system_instruction.empty())
      messages_.push_back(
        {{"role", "system"}, {"content", asked.system_instruction}});
    for (const auto& said : conversation_of(asked))
      if (auto added = is_by_model(*said) ? add_own(*said) : add_other(*said);
          !added)
        return added.error();
    complete_thoughts();
    return std::move(messages_);
  }

private:
  result<void> add_own(const content& said) {
    std::string words;
    auto calls = json::array();
    auto thoughts = json::object();
    for (const auto& element : said.parts) {
      if (element.thought)
        add_thought(element, thoughts);
      else if (const auto* text = element.text())
        words += *text;
      else if (const auto* call = element.call())
        calls.push_back(made_call(element, *call));
      else if (const auto work = server_part_of(element))
        add_text_of_code(*work, words);
      else
        return bad_request(fmt::format(
          "{} takes no {} by the model", openai_vendor, kind_of(element)));
    }
    if (words.empty() && calls.empty())
      return {};
    json message{{"role", "assistant"}, {"content", nullptr}};
    if (!words.empty())
      message["content"] = std::move(words);
    if (!calls.empty())
      message["tool_calls"] = std::move(calls);
    message.update(thoughts);
    messages_.push_back(std::move(message));
    return {};
  }

  // Servers with thinking models want the thoughts back when tools are used, in
  // the field in which they came (api-docs.deepseek.com, "Thinking Mode":
  // status 400 without them). OpenAI, Mistral and others, which never send such
  // a field, refuse it.
  void add_thought(const part& said, json& thoughts) const {
    const auto mark = mark_of(said, openai_marks, openai_field_mark);
    if (!sends_thoughts_ || said.text() == nullptr)
      return;
    for (const auto field : openai_thought_fields)
      if (mark == field) {
        auto& joined = thoughts[std::string(field)];
        joined = (joined.is_string() ? joined.get<std::string>() : "")
                 + *said.text();
      }
  }

  json made_call(const part& said, const function_call& call) {
    json made{{"id", ids_.id_of(call)},
              {"type", "function"},
              {"function",
               {{"name", call.name}, {"arguments", object_text(call.args)}}}};
    if (auto extra = mark_of(said, openai_marks, openai_extra_mark);
        !extra.is_null() && !is_openai_)
      made["extra_content"] = std::move(extra);
    return made;
  }

  // Adds empty thoughts to calls without thoughts. DeepSeek and Kimi demand
  // `reasoning_content` for all calls if one has it, and accept empty ones.
  void complete_thoughts() {
    constexpr const char* field = "reasoning_content";
    if (std::ranges::none_of(messages_, [field](const json& message) {
          return message.contains(field);
        }))
      return;
    for (auto& message : messages_)
      if (message.contains("tool_calls") && !message.contains(field))
        message[field] = "";
  }

  // Writes one message of the role "tool" per response, directly after the
  // calls. Other parts follow in a user message, and so do the media of a
  // response: a tool's message takes text only.
  result<void> add_other(const content& said) {
    constexpr openai_user_form form{"text", element_of};
    auto message = form.message_of(
      said,
      [&](const function_response& answer, json& elements) -> result<void> {
        messages_.push_back({{"role", "tool"},
                             {"tool_call_id", ids_.id_of(answer)},
                             {"content", object_text(answer.response)}});
        const auto attached = attached_parts(answer);
        if (!attached.empty())
          elements.push_back(form.text(
            fmt::format("Data that tool `{}` returned:", answer.name)));
        return form.add(attached, elements);
      });
    if (!message)
      return message.error();
    if (!message->is_null())
      messages_.push_back(std::move(*message));
    return {};
  }

  static result<json> element_of(const media& which) {
    if (which.mime_type.starts_with("image/"))
      return json{{"type", "image_url"},
                  {"image_url", {{"url", openai_url_of(which)}}}};
    if (which.is_inline())
      if (const auto format = audio_format(which.mime_type); !format.empty())
        return json{
          {"type", "input_audio"},
          {"input_audio", {{"data", which.base64}, {"format", format}}}};
    if (which.is_inline() && which.mime_type == "application/pdf")
      return json{{"type", "file"},
                  {"file",
                   {{"filename", openai_file_name(which)},
                    {"file_data", openai_url_of(which)}}}};
    return no_such_media(openai_vendor, which);
  }

  static std::string_view audio_format(std::string_view mime_type) {
    if (mime_type == "audio/wav" || mime_type == "audio/x-wav"
        || mime_type == "audio/wave")
      return "wav";
    if (mime_type == "audio/mpeg" || mime_type == "audio/mp3")
      return "mp3";
    return {};
  }

  const bool is_openai_;
  const bool sends_thoughts_;
  json messages_ = json::array();
  call_ids ids_{call_ids::form::nine};
};

json openai_tools(const model_request& asked) {
  auto tools = json::array();
  for (const auto& tool : asked.tools)
    tools.push_back(
      {{"type", "function"}, {"function", declaration_of(tool, "parameters")}});
  return tools;
}

json chat_tool_choice(const tool_choice& choice) {
  json function{{"type", "function"},
                {"function", {{"name", choice.function}}}};
  return openai_tool_choice(choice, std::move(function));
}

// Chat completions have the schema in an object of its own.
result<void> add_format(generation_settings& settings,
                        const model_request& asked,
                        const wire_options& with,
                        json& body) {
  auto form = openai_answer_form(settings, asked, with);
  if (!form)
    return form.error();
  if (form->is_null())
    return {};
  auto& made = body["response_format"] = {{"type", (*form)["type"]}};
  form->erase("type");
  if (!form->empty())
    made["json_schema"] = std::move(*form);
  return {};
}

result<void> add_chat_settings(const model_request& asked,
                               const wire_options& with,
                               json& body) {
  auto settings = generation_settings::open(asked.generation_config);
  if (!settings)
    return settings.error();
  const bool openai = is_openai(with.base_url);
  // OpenAI has deprecated max_tokens, and its reasoning models refuse it.
  // Ollama knows only max_tokens.
  settings->move_to(
    body,
    {{"temperature", "temperature"},
     {"topP", "top_p"},
     {"stopSequences", "stop"},
     {"presencePenalty", "presence_penalty"},
     {"frequencyPenalty", "frequency_penalty"},
     {"seed", "seed"},
     {"responseLogprobs", "logprobs"},
     {"maxOutputTokens", openai ? "max_completion_tokens" : "max_tokens"}});
  // The field is a number in ADK and a boolean in OpenAI.
  if (auto held = settings->take("logprobs"); held.is_boolean())
    body["logprobs"] = std::move(held);
  else if (!held.is_null())
    body["top_logprobs"] = std::move(held);
  if (auto count = settings->take("topK"); !count.is_null()) {
    if (openai)
      return bad_request("generation_config: OpenAI has no 'topK'");
    body["top_k"]
      = std::move(count); // An extension of vLLM, llama.cpp and others.
  }
  if (auto added
      = add_tool_choice(*settings, body, chat_tool_choice, openai_vendor);
      !added)
    return added;
  auto effort = openai_effort(settings->take("thinkingConfig"));
  if (!effort)
    return effort.error();
  if (!effort->is_null())
    body["reasoning_effort"] = std::move(*effort);
  if (auto added = add_format(*settings, asked, with, body); !added)
    return added;
  return add_other_settings(*std::move(settings), body, openai_vendor);
}

bool refuses_schema(int status, std::string_view body) {
  return status == 400
         && body.find("Invalid schema for response_format")
              != std::string_view::npos;
}

} // namespace

bool is_openai(std::string_view base_url) {
  return base_url.find("://api.openai.com") != std::string_view::npos
         || base_url.find(".openai.azure.com") != std::string_view::npos;
}

result<void> check_openai_tool_names(const model_request& asked) {
  // The rule is from openai-python, types/shared/function_definition.py.
  return check_tool_names(asked, {64, "_-"}, openai_vendor);
}

std::string openai_url_of(const media& which) {
  return which.is_inline()
           ? fmt::format("data:{};base64,{}", which.mime_type, which.base64)
           : which.uri;
}

std::string openai_file_name(const media& which) {
  return which.display_name.empty() ? "document.pdf" : which.display_name;
}

result<json> openai_effort(const json& config) {
  json effort;
  if (config.is_null())
    return effort;
  for (const auto& [name, field] : config.items()) {
    if (name == "thinkingLevel" || name == "thinking_level") {
      if (!field.is_string())
        return bad_request("generation_config: 'thinkingLevel' must be text");
      auto level = field.get<std::string>();
      std::ranges::transform(level, level.begin(), [](unsigned char next) {
        return static_cast<char>(std::tolower(next));
      });
      effort = std::move(level);
    } else if (name != "includeThoughts" && name != "include_thoughts") {
      return bad_request(fmt::format(
        "generation_config: OpenAI has no '{}', only thinkingLevel", name));
    }
  }
  return effort;
}

result<json> openai_answer_form(generation_settings& settings,
                                const model_request& asked,
                                const wire_options& with) {
  const auto type = settings.take("responseMimeType");
  if (!type.is_null() && type != "application/json" && type != "text/plain")
    return bad_request(
      fmt::format("{} answers in no {}", openai_vendor, type.dump()));
  json form;
  if (!asked.response_schema.is_null()) {
    // Sets `strict` if possible: it enforces the schema, but allows only a part
    // of JSON Schema. Other schemas are sent unchanged, as advice.
    const auto& schema = asked.response_schema.data();
    const auto closed = closed_schema(schema);
    const bool strict = !with.without.strict_schema && is_strict_schema(closed);
    form["type"] = "json_schema";
    form["name"] = "answer";
    form["strict"] = strict;
    form["schema"] = strict ? closed : schema;
  } else if (type == "application/json") {
    form["type"] = "json_object";
  }
  return form;
}

json openai_tool_choice(const tool_choice& choice, json function) {
  switch (choice.mode) {
  case calling_mode::automatic:
    return "auto";
  case calling_mode::none:
    return "none";
  case calling_mode::any:
    return "required";
  case calling_mode::one:
    break;
  }
  return function;
}

std::optional<wire_options> without_refused_by_openai(
  int status,
  std::string_view body,
  const wire_options& asked,
  bool (*refuses_thoughts)(int status, std::string_view body)) {
  auto with = asked;
  if (!asked.without.strict_schema && refuses_schema(status, body))
    with.without.strict_schema = true;
  else if (!asked.without.thoughts && refuses_thoughts(status, body))
    with.without.thoughts = true;
  else
    return std::nullopt;
  return with;
}

// -- messages of users ----

json openai_user_form::text(std::string words) const {
  return {{"type", text_type}, {"text", std::move(words)}};
}

result<void> openai_user_form::add(std::span<const part> parts,
                                   json& elements) const {
  for (const auto& each : parts) {
    if (const auto* words = each.text()) {
      elements.push_back(text(*words));
      continue;
    }
    const auto held = media_of(each);
    if (!held)
      return held.error();
    if (!*held)
      return bad_request(
        fmt::format("{} takes no {}", openai_vendor, kind_of(each)));
    auto made = element_of(**held);
    if (!made)
      return made.error();
    elements.push_back(std::move(*made));
  }
  return {};
}

result<json> openai_user_form::message_of(
  const content& said,
  const std::function<result<void>(const function_response&, json&)>& respond)
  const {
  auto elements = json::array();
  for (const auto& each : said.parts) {
    result<void> added;
    if (each.thought)
      continue;
    if (const auto* answer = each.response())
      added = respond(*answer, elements);
    else if (const auto work = server_part_of(each); !work)
      added = add(std::span(&each, 1), elements);
    else if (auto words = text_of_code(*work); !words.empty())
      elements.push_back(text(std::move(words)));
    if (!added)
      return added.error();
  }
  if (elements.empty())
    return json();
  if (elements.size() == 1 && elements[0]["type"] == text_type)
    elements = json(elements[0]["text"]);
  return json{{"role", "user"}, {"content", std::move(elements)}};
}

result<json> openai_body(const model_request& asked, const wire_options& with) {
  if (auto named = check_openai_tool_names(asked); !named)
    return named.error();
  auto messages = chat_writer(asked, with).write(asked);
  if (!messages)
    return messages.error();
  json body{{"model", with.model}, {"messages", std::move(*messages)}};
  if (!asked.tools.empty())
    body["tools"] = openai_tools(asked);
  // The only tool that `check_tools_of` lets pass.
  for (const auto& search : asked.vendor_tools)
    body["web_search_options"]
      = search.settings.is_null() ? json::object() : search.settings.data();
  if (with.streams)
    body.update(
      {{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  if (auto added = add_chat_settings(asked, with, body); !added)
    return added.error();
  return body;
}

} // namespace troupe
