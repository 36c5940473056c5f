#include "troupe/models/responses/request.hpp"

#include "troupe/core/support/text_in.hpp"
#include "troupe/models/formats/openai_request.hpp"
#include "troupe/models/formats/request_parts.hpp"
#include "troupe/models/wire/part_marks.hpp"
#include "troupe/models/wire/server_items.hpp"
#include "troupe/models/wire/server_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view responses_vendor = "the Responses API of OpenAI";

result<json> element_of_input(const media& which) {
  if (which.mime_type.starts_with("image/"))
    return json{{"type", "input_image"},
                {"detail", "auto"},
                {"image_url", openai_url_of(which)}};
  if (which.mime_type != "application/pdf")
    return no_such_media(responses_vendor, which);
  if (!which.is_inline())
    return json{{"type", "input_file"}, {"file_url", which.uri}};
  return json{{"type", "input_file"},
              {"filename", openai_file_name(which)},
              {"file_data", openai_url_of(which)}};
}

constexpr openai_user_form user_form{"input_text", element_of_input};

// Writes the conversation as items.
//
// Sources: openai/openai-python 3.57, types/responses/*_param.py (generated
// from the OpenAPI specification), November 2026.
class input_writer {
public:
  // `sends_items` is false if the server has refused its items.
  explicit input_writer(bool sends_items) : sends_items_(sends_items) {}

  result<json> write(const model_request& asked) {
    for (const auto& said : conversation_of(asked))
      if (auto added = is_by_model(*said) ? add_own(*said) : add_other(*said);
          !added)
        return added.error();
    return std::move(input_);
  }

private:
  result<void> add_own(const content& said) {
    for (const auto& element : said.parts) {
      if (element.thought)
        add_thought(element);
      else if (const auto* text = element.text())
        add_words(*text, mark_of(element, openai_marks, phase_mark));
      else if (const auto* call = element.call())
        add_item({{"type", "function_call"},
                  {"call_id", ids_.id_of(*call)},
                  {"name", call->name},
                  {"arguments", object_text(call->args)}});
      else if (const auto work = server_part_of(element))
        add_work(element, *work);
      else
        return bad_request(fmt::format(
          "{} takes no {} by the model", openai_vendor, kind_of(element)));
    }
    end_words();
    // An answer was cut off after these thoughts.
    thoughts_ = json::array();
    return {};
  }

  // Thoughts need their encrypted text, because the server keeps none ("Items
  // are not persisted when `store` is set to false"). They wait for the next
  // item of the same answer ("'reasoning' was provided without its required
  // following item").
  void add_thought(const part& said) {
    auto item = item_of_part(said);
    if (!sends_items_ || text_in(item, "encrypted_content").empty())
      return;
    end_words();
    thoughts_.push_back(std::move(item));
  }

  // Words of one message, or of neighbours with the same phase.
  void add_words(const std::string& text, json phase) {
    if (!words_.empty() && phase != phase_)
      end_words();
    words_ += text;
    phase_ = std::move(phase);
  }

  void end_words() {
    if (words_.empty())
      return;
    json message{{"role", "assistant"}, {"content", std::move(words_)}};
    if (phase_.is_string())
      message["phase"] = std::move(phase_);
    words_.clear();
    phase_ = json();
    push(std::move(message));
  }

  void add_item(json item) {
    end_words();
    push(std::move(item));
  }

  void push(json item) {
    for (auto& thought : std::exchange(thoughts_, json::array()))
      input_.push_back(std::move(thought));
    input_.push_back(std::move(item));
  }

  // The first part of an item has all of it. Code of another vendor is text.
  void add_work(const part& said, const server_part& work) {
    if (!sends_items_ || !is_of_item(said)) {
      if (phase_.is_string())
        end_words();
      add_text_of_code(work, words_);
    } else if (auto item = item_of_part(said); !item.is_null()) {
      add_item(std::move(item));
    }
  }

  // Responses are items of their own; other parts follow in a user message.
  result<void> add_other(const content& said) {
    auto message = user_form.message_of(
      said, [&](const function_response& answer, json& /*elements*/) {
        return add_output(answer);
      });
    if (!message)
      return message.error();
    if (!message->is_null())
      input_.push_back(std::move(*message));
    return {};
  }

  result<void> add_output(const function_response& answer) {
    json item{{"type", "function_call_output"},
              {"call_id", ids_.id_of(answer)}};
    auto text = object_text(answer.response);
    const auto attached = attached_parts(answer);
    if (attached.empty()) {
      item["output"] = std::move(text);
    } else {
      auto elements = json::array();
      elements.push_back(user_form.text(std::move(text)));
      if (auto added = user_form.add(attached, elements); !added)
        return added;
      item["output"] = std::move(elements);
    }
    input_.push_back(std::move(item));
    return {};
  }

  const bool sends_items_;
  json input_ = json::array();
  json thoughts_ = json::array(); // Thoughts that wait for the next item.
  std::string words_;
  json phase_;
  call_ids ids_{call_ids::form::plain};
};

// Without `strict`, the server would rewrite schemas to strict ones, and refuse
// those that it cannot rewrite.
json tools_of_request(const model_request& asked) {
  auto tools = json::array();
  for (const auto& tool : asked.tools) {
    auto made = declaration_of(tool, "parameters");
    made["type"] = "function";
    made["strict"] = false;
    tools.push_back(std::move(made));
  }
  // The two tools that `check_tools_of` lets pass.
  for (const auto& wanted : asked.vendor_tools) {
    auto made
      = wanted.settings.is_null() ? json::object() : wanted.settings.data();
    const bool is_code = wanted.name == "code_execution";
    if (!made.contains("type"))
      made["type"] = is_code ? "code_interpreter" : "web_search";
    if (is_code && !made.contains("container"))
      made["container"] = {{"type", "auto"}};
    tools.push_back(std::move(made));
  }
  return tools;
}

json choice_in_responses(const tool_choice& choice) {
  return openai_tool_choice(choice,
                            {{"type", "function"}, {"name", choice.function}});
}

// These models have no thoughts, and refuse a request for encrypted ones
// ("Encrypted content is not supported with this model").
bool has_thoughts(std::string_view model) {
  constexpr std::array<std::string_view, 3> without
    = {"gpt-3", "gpt-4", "chatgpt-4"};
  return std::ranges::none_of(without, [model](std::string_view start) {
    return model.starts_with(start);
  });
}

// Adds the list of further data that the answer shall have.
result<void> add_include(generation_settings& settings,
                         const model_request& asked,
                         const wire_options& with,
                         json& body) {
  auto list = settings.take("include");
  if (list.is_null())
    list = json::array();
  if (!list.is_array())
    return bad_request("generation_config: 'include' must be a list");
  const auto add = [&list](const char* name) {
    if (std::find(list.begin(), list.end(), name) == list.end())
      list.push_back(name);
  };
  if (!with.without.thoughts && has_thoughts(with.model))
    add("reasoning.encrypted_content");
  if (std::ranges::any_of(asked.vendor_tools, [](const auto& each) {
        return each.name == "code_execution";
      }))
    add("code_interpreter_call.outputs");
  if (!list.empty())
    body["include"] = std::move(list);
  return {};
}

// The vendor's own `reasoning` replaces the other config.
result<void> add_reasoning(generation_settings& settings, json& body) {
  const auto config = settings.take("thinkingConfig");
  auto effort = openai_effort(config);
  if (!effort)
    return effort.error();
  auto made = json::object();
  if (!effort->is_null())
    made["effort"] = std::move(*effort);
  for (const auto* name : {"includeThoughts", "include_thoughts"})
    if (config.is_object() && config.value(name, json()) == true)
      made["summary"] = "auto";
  if (auto own = settings.take("reasoning"); !own.is_null())
    made = std::move(own);
  if (!made.empty())
    body["reasoning"] = std::move(made);
  return {};
}

result<void> add_text_form(generation_settings& settings,
                           const model_request& asked,
                           const wire_options& with,
                           json& body) {
  auto text = settings.take("text");
  if (text.is_null())
    text = json::object();
  if (!text.is_object())
    return bad_request("generation_config: 'text' must be an object");
  auto form = openai_answer_form(settings, asked, with);
  if (!form)
    return form.error();
  if (!form->is_null()) {
    if (text.contains("format"))
      return bad_request(
        "generation_config: the format of 'text' is set already");
    text["format"] = std::move(*form);
  }
  if (!text.empty())
    body["text"] = std::move(text);
  return {};
}

result<void> add_settings_of_responses(const model_request& asked,
                                       const wire_options& with,
                                       json& body) {
  auto settings = generation_settings::open(asked.generation_config);
  if (!settings)
    return settings.error();
  settings->move_to(body,
                    {{"temperature", "temperature"},
                     {"topP", "top_p"},
                     {"maxOutputTokens", "max_output_tokens"},
                     {"store", "store"}});
  if (auto none = settings->refuse({"topK", "stopSequences"}, responses_vendor);
      !none)
    return none;
  if (auto none = refuse_sampling(*settings, responses_vendor); !none)
    return none;
  if (const auto later = settings->take("background");
      !later.is_null() && later != false)
    return bad_request("generation_config: 'background' cannot be used, "
                       "because the answer would not come with the request");
  if (auto added
      = add_tool_choice(*settings, body, choice_in_responses, openai_vendor);
      !added)
    return added;
  if (auto added = add_include(*settings, asked, with, body); !added)
    return added;
  if (auto added = add_reasoning(*settings, body); !added)
    return added;
  if (auto added = add_text_form(*settings, asked, with, body); !added)
    return added;
  return add_other_settings(*std::move(settings), body, openai_vendor);
}

} // namespace

result<json> responses_body(const model_request& asked,
                            const wire_options& with) {
  if (auto named = check_openai_tool_names(asked); !named)
    return named.error();
  auto input = input_writer(!with.without.thoughts).write(asked);
  if (!input)
    return input.error();
  // The session has the conversation, so the vendor need not keep it.
  json body{
    {"model", with.model}, {"input", std::move(*input)}, {"store", false}};
  if (!asked.system_instruction.empty())
    body["instructions"] = asked.system_instruction;
  if (auto tools = tools_of_request(asked); !tools.empty())
    body["tools"] = std::move(tools);
  if (with.streams)
    body["stream"] = true;
  if (auto added = add_settings_of_responses(asked, with, body); !added)
    return added.error();
  return body;
}

} // namespace troupe
