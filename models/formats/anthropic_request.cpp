#include "troupe/models/formats/anthropic_request.hpp"

#include "troupe/core/support/base64.hpp"
#include "troupe/core/support/blank.hpp"
#include "troupe/models/formats/answer_schema.hpp"
#include "troupe/models/formats/request_parts.hpp"
#include "troupe/models/wire/part_marks.hpp"
#include "troupe/models/wire/server_blocks.hpp"
#include "troupe/models/wire/server_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view anthropic_vendor = "Anthropic";

// The interface has no default; this is that of ADK's AnthropicLlm.
constexpr std::int64_t max_tokens_default = 8'192;

// Sources: anthropics/anthropic-sdk-python, types/*_param.py, August 2026.
class message_writer {
public:
  explicit message_writer(bool sends_thoughts)
    : sends_thoughts_(sends_thoughts) {}

  // `so_far` is the paused answer that goes on, or null.
  result<json> write(const model_request& asked, const model_response* so_far) {
    for (const auto& said : conversation_of(asked))
      if (auto added = add(*said); !added)
        return added.error();
    if (so_far != nullptr)
      if (auto added = add(so_far->content); !added)
        return added.error();
    turn("");
    remove_unpaired(messages_, so_far != nullptr);
    return std::move(messages_);
  }

  // The container of the current turn, in which the vendor has run code; empty
  // for none.
  const std::string& container() const { return container_; }

private:
  result<void> add(const content& said) {
    const bool by_model = is_by_model(said);
    turn(by_model ? "assistant" : "user");
    for (const auto& element : said.parts) {
      if (!by_model && element.response() == nullptr)
        container_.clear();
      if (auto added = add(element, by_model); !added)
        return added;
    }
    return {};
  }

  // Starts a turn. Turns must alternate, so neighbours of the same role are
  // joined. Results of tools come first in their turn.
  void turn(std::string_view role) {
    if (role == role_)
      return;
    for (auto& block : blocks_)
      results_.push_back(std::move(block));
    if (!results_.empty())
      messages_.push_back(
        {{"role", role_}, {"content", std::exchange(results_, json::array())}});
    blocks_ = json::array();
    role_ = role;
  }

  result<void> add(const part& said, bool by_model) {
    if (said.thought) {
      if (sends_thoughts_)
        add_thought(said);
    } else if (const auto* text = said.text()) {
      // "text content blocks must contain non-whitespace text"
      if (text->find_first_not_of(wire_white_space) != std::string::npos)
        add_text(said, *text, by_model);
    } else if (const auto* call = said.call()) {
      blocks_.push_back(
        {{"type", "tool_use"},
         {"id", ids_.id_of(*call)},
         {"name", call->name},
         {"input", call->args.is_null() ? json::object() : call->args.data()}});
    } else if (const auto* answer = said.response()) {
      return add_result(*answer);
    } else if (const auto work = server_part_of(said)) {
      add_work(said, *work, by_model);
    } else {
      auto block = media_block(said, by_model);
      if (!block)
        return block.error();
      blocks_.push_back(std::move(*block));
    }
    return {};
  }

  void add_text(const part& said, const std::string& text, bool by_model) {
    json block{{"type", "text"}, {"text", text}};
    if (auto citations = mark_of(said, anthropic_marks, citations_mark);
        by_model && citations.is_array())
      block["citations"] = std::move(citations);
    blocks_.push_back(std::move(block));
  }

  // Blocks of the vendor's own tools go back unchanged. Those of another agent
  // or vendor are left out, but for code and its output, which become text.
  void add_work(const part& said, const server_part& work, bool by_model) {
    auto block = block_of_part(said);
    if (block && by_model) {
      if (const auto id = mark_of(said, anthropic_marks, container_mark);
          id.is_string())
        container_ = id.get<std::string>();
      blocks_.push_back(std::move(*block));
    } else if (auto text = text_of_code(work); !text.empty()) {
      blocks_.push_back({{"type", "text"}, {"text", std::move(text)}});
    }
  }

  // Thoughts are sent back unchanged, with their signature or not at all: a
  // turn that used tools must begin with its own thoughts.
  void add_thought(const part& said) {
    if (const auto* text = said.text()) {
      if (auto signature = text_signature_of(said.extra.data()))
        blocks_.push_back({{"type", "thinking"},
                           {"thinking", *text},
                           {"signature", std::move(*signature)}});
    } else if (const auto* body = std::get_if<value>(&said.body)) {
      if (auto data = text_signature_of(body->data()))
        blocks_.push_back(
          {{"type", "redacted_thinking"}, {"data", std::move(*data)}});
    }
  }

  // `{"result": string}` is sent as that string, everything else as JSON, as in
  // ADK. Media follow the text in a list of blocks.
  result<void> add_result(const function_response& answer) {
    const auto& held = answer.response.data();
    const bool is_one = held.is_object() && held.size() == 1;
    json result{{"type", "tool_result"}, {"tool_use_id", ids_.id_of(answer)}};
    auto text = is_one && held.contains("result") && held["result"].is_string()
                  ? held["result"].get<std::string>()
                  : object_text(answer.response);
    auto blocks = json::array();
    for (const auto& attached : attached_parts(answer)) {
      auto block = media_block(attached, false);
      if (!block)
        return block.error();
      blocks.push_back(std::move(*block));
    }
    if (blocks.empty()) {
      result["content"] = std::move(text);
      // "all content must be type `text` if `is_error` is true"
      if (is_one && held.contains("error"))
        result["is_error"] = true;
    } else {
      if (text.find_first_not_of(wire_white_space) != std::string::npos)
        blocks.insert(blocks.begin(),
                      json{{"type", "text"}, {"text", std::move(text)}});
      result["content"] = std::move(blocks);
    }
    results_.push_back(std::move(result));
    return {};
  }

  static result<json> media_block(const part& said, bool by_model) {
    const auto held = media_of(said);
    if (!held)
      return held.error();
    if (!*held || by_model)
      return bad_request(fmt::format("{} takes no {}{}",
                                     anthropic_vendor,
                                     kind_of(said),
                                     by_model ? " by the model" : ""));
    const auto& which = **held;
    constexpr std::array<std::string_view, 4> images
      = {"image/jpeg", "image/png", "image/gif", "image/webp"};
    const bool is_image
      = std::ranges::find(images, which.mime_type) != images.end();
    if (!is_image && which.mime_type != "application/pdf"
        && !(which.is_inline() && which.mime_type == "text/plain"))
      return no_such_media(anthropic_vendor, which);
    json block{{"type", is_image ? "image" : "document"},
               {"source", source_of(which)}};
    if (!is_image && !which.display_name.empty())
      block["title"] = which.display_name;
    return block;
  }

  static json source_of(const media& which) {
    if (!which.is_inline())
      return {{"type", "url"}, {"url", which.uri}};
    if (which.mime_type == "text/plain")
      return {{"type", "text"},
              {"media_type", "text/plain"},
              {"data", from_base64(which.base64).value()}};
    return {{"type", "base64"},
            {"media_type", which.mime_type},
            {"data", which.base64}};
  }

  const bool sends_thoughts_;
  json messages_ = json::array();
  std::string role_;
  std::string container_;
  json results_ = json::array(); // Results of the current turn.
  json blocks_
    = json::array(); // Other blocks of the turn; they follow the results.
  call_ids ids_{call_ids::form::plain};
};

// The versions that all models of the vendor have. Settings may name a newer
// one, such as `{"type": "web_search_20260318"}`. They need no beta header
// (anthropics/anthropic-sdk-python 2.14, types/*_tool_*_param.py).
struct own_version {
  std::string_view name;
  std::string_view type;
};

constexpr std::array own_versions{
  own_version{"web_search", "web_search_20250305"},
  own_version{"web_fetch", "web_fetch_20250910"},
  own_version{"code_execution", "code_execution_20250825"}};

json form_of(const vendor_tool& wanted) {
  auto made
    = wanted.settings.is_null() ? json::object() : wanted.settings.data();
  if (!made.contains("type"))
    made["type"]
      = std::ranges::find(own_versions, wanted.name, &own_version::name)->type;
  made["name"] = wanted.name;
  return made;
}

json anthropic_tools(const model_request& asked) {
  auto tools = json::array();
  for (const auto& tool : asked.tools)
    tools.push_back(declaration_of(tool, "input_schema"));
  for (const auto& wanted : asked.vendor_tools)
    tools.push_back(form_of(wanted));
  return tools;
}

json tool_choice_of(const tool_choice& choice) {
  switch (choice.mode) {
  case calling_mode::automatic:
    return {{"type", "auto"}};
  case calling_mode::none:
    return {{"type", "none"}};
  case calling_mode::any:
    return {{"type", "any"}};
  case calling_mode::one:
    break;
  }
  return {{"type", "tool"}, {"name", choice.function}};
}

// A budget of 0 disables thoughts, -1 leaves the choice to the model, as in
// ADK.
result<void> add_thinking(const json& config, bool has_budget, json& body) {
  if (config.is_null())
    return {};
  for (const auto& [name, field] : config.items()) {
    if (name == "thinkingBudget" || name == "thinking_budget") {
      if (field == 0)
        body["thinking"] = {{"type", "disabled"}};
      else if (field == -1 || !has_budget)
        body["thinking"] = {{"type", "adaptive"}};
      else
        body["thinking"] = {{"type", "enabled"}, {"budget_tokens", field}};
    } else if (name != "includeThoughts" && name != "include_thoughts") {
      return bad_request(
        fmt::format("generation_config: Anthropic has no '{}', but "
                    "output_config with an effort",
                    name));
    }
  }
  return {};
}

result<void> add_format(generation_settings& settings,
                        const model_request& asked,
                        json& body) {
  const auto type = settings.take("responseMimeType");
  const bool has_schema = !asked.response_schema.is_null();
  if (!type.is_null() && type != "text/plain"
      && !(has_schema && type == "application/json"))
    return bad_request(fmt::format(
      "{} answers in no {} without a schema", anthropic_vendor, type.dump()));
  if (auto config = settings.take("outputConfig"); !config.is_null())
    body["output_config"] = std::move(config);
  if (!has_schema)
    return {};
  auto& config = body["output_config"];
  if (!config.is_null() && (!config.is_object() || config.contains("format")))
    return bad_request(
      "generation_config: the format of 'output_config' is set already");
  config["format"] = {
    {"type", "json_schema"},
    {"schema", anthropic_schema(closed_schema(asked.response_schema.data()))}};
  return {};
}

// Returns true if the model continues a turn in which it has called tools. Such
// a turn must begin with its thoughts, or cannot have any ("Expected `thinking`
// or `redacted_thinking`, but found `tool_use`").
bool goes_on(const json& messages) {
  if (messages.empty())
    return false;
  const auto& last = messages.back()["content"];
  return !last.empty() && last.front()["type"] == "tool_result";
}

result<void>
add_settings(const model_request& asked, const wire_options& with, json& body) {
  auto settings = generation_settings::open(asked.generation_config);
  if (!settings)
    return settings.error();
  settings->move_to(body,
                    {{"temperature", "temperature"},
                     {"topP", "top_p"},
                     {"topK", "top_k"},
                     {"stopSequences", "stop_sequences"},
                     {"maxOutputTokens", "max_tokens"},
                     {"maxTokens", "max_tokens"}});
  const auto config = settings->take("thinkingConfig");
  if (auto own = settings->take("thinking"); !own.is_null())
    body["thinking"] = std::move(own);
  else if (auto added
           = add_thinking(config, !with.without.thinking_budget, body);
           !added)
    return added;
  if (with.without.thoughts && goes_on(body["messages"]))
    body.erase("thinking");
  if (!body.contains("max_tokens")) {
    // The budget of thoughts must be smaller than the total limit.
    const auto thinking = body.find("thinking");
    const auto budget = thinking != body.end() && thinking->is_object()
                          ? thinking->value("budget_tokens", json())
                          : json();
    body["max_tokens"]
      = max_tokens_default
        + (budget.is_number_integer() ? std::clamp<std::int64_t>(
             budget.get<std::int64_t>(), 0, 1'000'000)
                                      : 0);
  }
  if (auto added
      = add_tool_choice(*settings, body, tool_choice_of, anthropic_vendor);
      !added)
    return added;
  if (auto added = add_format(*settings, asked, body); !added)
    return added;
  if (auto none = refuse_sampling(*settings, anthropic_vendor); !none)
    return none;
  return add_other_settings(*std::move(settings), body, anthropic_vendor);
}

} // namespace

result<json> anthropic_body(const model_request& asked,
                            const wire_options& with) {
  // The rule is from error messages ("String should match pattern
  // '^[a-zA-Z0-9_-]{1,128}$'"); no reference documents it.
  if (auto known = check_tool_names(asked, {128, "_-"}, anthropic_vendor);
      !known)
    return known.error();
  message_writer writer(!with.without.thoughts);
  auto messages = writer.write(asked, with.so_far.get());
  if (!messages)
    return messages.error();
  json body{{"model", with.model}, {"messages", std::move(*messages)}};
  if (!asked.system_instruction.empty())
    body["system"] = asked.system_instruction;
  if (auto tools = anthropic_tools(asked); !tools.empty())
    body["tools"] = std::move(tools);
  if (with.streams)
    body["stream"] = true;
  if (auto added = add_settings(asked, with, body); !added)
    return added.error();
  if (!writer.container().empty() && !body.contains("container"))
    body["container"] = writer.container();
  return body;
}

} // namespace troupe
