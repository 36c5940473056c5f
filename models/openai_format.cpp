#include "troupe/models/answer_builder.hpp"
#include "troupe/models/answer_schema.hpp"
#include "troupe/models/request_parts.hpp"
#include "troupe/models/wire_document.hpp"
#include "troupe/models/wire_failure.hpp"
#include "troupe/models/wire_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view vendor = "OpenAI";

error failed(std::string_view why) {
  return {errc::model_failed, std::string(why)};
}

error refused(std::string_view why) {
  return {errc::invalid_argument, std::string(why)};
}

// Other servers know fields that OpenAI's does not, and the other way round.
bool is_openai(std::string_view base_url) {
  return base_url.find("://api.openai.com") != std::string_view::npos
         || base_url.find(".openai.azure.com") != std::string_view::npos;
}

// -- requests ----

// Sources: openai/openai-python, types/chat (generated from the OpenAPI
// specification), August 2026.
class message_writer {
public:
  result<json> write(const model_request& asked) {
    // Not "developer": servers with a chat template know only "system", and
    // OpenAI takes it for "developer" where a model wants that.
    if (!asked.system_instruction.empty())
      messages_.push_back(
        {{"role", "system"}, {"content", asked.system_instruction}});
    for (const auto& said : conversation_of(asked))
      if (auto added = is_by_model(*said) ? add_own(*said) : add_other(*said);
          !added)
        return added.error();
    return std::move(messages_);
  }

private:
  // Thoughts are left out: the reference has no field for them, and servers
  // that send `reasoning_content` ignore or refuse it in requests.
  result<void> add_own(const content& said) {
    std::string words;
    auto calls = json::array();
    for (const auto& element : said.parts) {
      if (element.thought)
        continue;
      if (const auto* text = element.text())
        words += *text;
      else if (const auto* call = element.call())
        calls.push_back(
          {{"id", ids_.id_of(*call)},
           {"type", "function"},
           {"function",
            {{"name", call->name}, {"arguments", object_text(call->args)}}}});
      else
        return refused(
          fmt::format("{} takes no {} by the model", vendor, kind_of(element)));
    }
    if (words.empty() && calls.empty())
      return {};
    json message{{"role", "assistant"}, {"content", nullptr}};
    if (!words.empty())
      message["content"] = std::move(words);
    if (!calls.empty())
      message["tool_calls"] = std::move(calls);
    messages_.push_back(std::move(message));
    return {};
  }

  // A message of the role "tool" for each response, right behind the calls;
  // what else was said comes behind them.
  result<void> add_other(const content& said) {
    auto elements = json::array();
    for (const auto& element : said.parts) {
      if (element.thought)
        continue;
      if (const auto* answer = element.response()) {
        messages_.push_back({{"role", "tool"},
                             {"tool_call_id", ids_.id_of(*answer)},
                             {"content", object_text(answer->response)}});
        continue;
      }
      auto made = element_of(element);
      if (!made)
        return made.error();
      elements.push_back(std::move(*made));
    }
    if (elements.empty())
      return {};
    // Plain text stays a string, which every server takes.
    if (elements.size() == 1 && elements[0]["type"] == "text")
      elements = json(elements[0]["text"]);
    messages_.push_back({{"role", "user"}, {"content", std::move(elements)}});
    return {};
  }

  static result<json> element_of(const part& said) {
    if (const auto* text = said.text())
      return json{{"type", "text"}, {"text", *text}};
    const auto held = media_of(said);
    if (!held)
      return held.error();
    if (!*held)
      return refused(fmt::format("{} takes no {}", vendor, kind_of(said)));
    const auto& which = **held;
    const auto data_url
      = fmt::format("data:{};base64,{}", which.mime_type, which.base64);
    if (which.mime_type.starts_with("image/"))
      return json{
        {"type", "image_url"},
        {"image_url", {{"url", which.is_inline() ? data_url : which.uri}}}};
    if (which.is_inline())
      if (const auto format = audio_format(which.mime_type); !format.empty())
        return json{
          {"type", "input_audio"},
          {"input_audio", {{"data", which.base64}, {"format", format}}}};
    if (which.is_inline() && which.mime_type == "application/pdf")
      return json{
        {"type", "file"},
        {"file",
         {{"filename",
           which.display_name.empty() ? "document.pdf" : which.display_name},
          {"file_data", data_url}}}};
    return no_such_media(vendor, which);
  }

  static std::string_view audio_format(std::string_view mime_type) {
    if (mime_type == "audio/wav" || mime_type == "audio/x-wav"
        || mime_type == "audio/wave")
      return "wav";
    if (mime_type == "audio/mpeg" || mime_type == "audio/mp3")
      return "mp3";
    return {};
  }

  json messages_ = json::array();
  call_ids ids_{call_ids::form::nine};
};

json tools_of(const model_request& asked) {
  auto tools = json::array();
  for (const auto& tool : asked.tools) {
    json function{{"name", tool.name}, {"parameters", parameters_of(tool)}};
    if (!tool.description.empty())
      function["description"] = tool.description;
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

// `strict` holds the model to the schema, but takes a part of JSON Schema only;
// other schemas are sent as they are, as advice.
json response_format(const json& schema) {
  auto closed = closed_schema(schema);
  const bool strict = is_strict_schema(closed);
  return {{"type", "json_schema"},
          {"json_schema",
           {{"name", "answer"},
            {"strict", strict},
            {"schema", strict ? std::move(closed) : schema}}}};
}

json tool_choice_of(const tool_choice& choice) {
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
  return {{"type", "function"}, {"function", {{"name", choice.function}}}};
}

result<void> add_thinking(const json& config, json& body) {
  if (config.is_null())
    return {};
  for (const auto& [name, field] : config.items()) {
    if (name == "thinkingLevel" || name == "thinking_level") {
      if (!field.is_string())
        return refused("generation_config: 'thinkingLevel' is no string");
      auto level = field.get<std::string>();
      std::ranges::transform(level, level.begin(), [](unsigned char next) {
        return static_cast<char>(std::tolower(next));
      });
      body["reasoning_effort"] = std::move(level);
    } else if (name != "includeThoughts" && name != "include_thoughts") {
      return refused(fmt::format(
        "generation_config: OpenAI has no '{}', only thinkingLevel", name));
    }
  }
  return {};
}

result<void> add_format(generation_settings& settings,
                        const model_request& asked,
                        json& body) {
  const auto type = settings.take("responseMimeType");
  if (!type.is_null() && type != "application/json" && type != "text/plain")
    return refused(fmt::format("{} answers in no {}", vendor, type.dump()));
  if (!asked.response_schema.is_null())
    body["response_format"] = response_format(asked.response_schema.data());
  else if (type == "application/json")
    body["response_format"] = {{"type", "json_object"}};
  return {};
}

result<void>
add_settings(const model_request& asked, const wire_options& with, json& body) {
  auto settings = generation_settings::open(asked.generation_config);
  if (!settings)
    return settings.error();
  const bool openai = is_openai(with.base_url);
  const auto move = [&](std::string_view name, const char* field) {
    if (auto held = settings->take(name); !held.is_null())
      body[field] = std::move(held);
  };
  move("temperature", "temperature");
  move("topP", "top_p");
  move("stopSequences", "stop");
  move("presencePenalty", "presence_penalty");
  move("frequencyPenalty", "frequency_penalty");
  move("seed", "seed");
  move("responseLogprobs", "logprobs");
  // A number in ADK, a boolean in OpenAI.
  if (auto held = settings->take("logprobs"); held.is_boolean())
    body["logprobs"] = std::move(held);
  else if (!held.is_null())
    body["top_logprobs"] = std::move(held);
  // OpenAI has deprecated max_tokens, and its reasoning models refuse it;
  // Ollama reads nothing else.
  move("maxOutputTokens", openai ? "max_completion_tokens" : "max_tokens");
  if (auto count = settings->take("topK"); !count.is_null()) {
    if (openai)
      return refused("generation_config: OpenAI has no 'topK'");
    body["top_k"] = std::move(count); // Of vLLM, llama.cpp and others.
  }
  const auto choice = take_tool_choice(*settings, vendor);
  if (!choice)
    return choice.error();
  if (*choice)
    body["tool_choice"] = tool_choice_of(**choice);
  if (auto added = add_thinking(settings->take("thinkingConfig"), body); !added)
    return added;
  if (auto added = add_format(*settings, asked, body); !added)
    return added;
  if (auto none = refuse_gemini_fields(*settings, vendor); !none)
    return none;
  return add_own_fields(std::move(*settings).rest(), body, vendor);
}

// -- answers ----

// The names of LiteLLM's adapter in ADK (models/lite_llm.py); "model_length" is
// Mistral's.
std::string_view adk_reason(std::string_view reason) {
  if (reason == "stop" || reason == "tool_calls" || reason == "function_call")
    return "STOP";
  if (reason == "length" || reason == "model_length")
    return "MAX_TOKENS";
  if (reason == "content_filter")
    return "SAFETY";
  return "OTHER";
}

token_usage usage_of(const wire_node& usage) {
  token_usage counts;
  counts.prompt = usage["prompt_tokens"].count();
  counts.candidates = usage["completion_tokens"].count();
  counts.thoughts
    = usage["completion_tokens_details"]["reasoning_tokens"].count();
  counts.cached = usage["prompt_tokens_details"]["cached_tokens"].count();
  counts.total = usage["total_tokens"].count();
  return counts;
}

// What an answer says so far, whether it comes at once (`message`) or in pieces
// (`delta`).
class openai_answer {
public:
  /// `document` holds one whole answer or one piece; words of a piece go to
  /// `pieces` too, if there are any.
  result<void> take(const wire_node& document,
                    std::string_view field,
                    std::vector<model_response>* pieces) {
    if (const auto said = document["error"])
      return failed(failure_line(failure_text(document)));
    // vLLM before 0.10 sends errors without a frame.
    if (const auto kind = document["object"]; kind && kind.text() == "error")
      return failed(failure_line(failure_text(document)));
    if (model_.empty())
      model_ = document["model"].text();
    if (const auto usage = document["usage"])
      usage_ = usage_of(usage);
    result<void> taken;
    // Of several alternatives the first is the answer; the piece with the usage
    // has none.
    document["choices"].for_each([&](const wire_node& choice) {
      if (taken && choice["index"].count().value_or(0) == 0)
        taken = take_choice(choice, field, pieces);
    });
    return taken;
  }

  bool has_ended() const { return has_ended_; }

  void end() { has_ended_ = true; }

  result<model_response> whole() && {
    answer_builder answer;
    answer.finish(reason_);
    answer.add_text(thoughts_, true);
    answer.add_text(words_, false);
    for (auto& call : calls_)
      if (auto added = answer.add_call(
            std::move(call.id), std::move(call.name), call.arguments);
          !added)
        return added.error();
    if (!refusal_.empty()) {
      answer.finish("SAFETY");
      answer.block("SAFETY", refusal_);
    }
    answer.set_text("modelVersion", model_);
    answer.set_usage(usage_);
    if (!citations_.empty())
      answer.set_field("citationMetadata",
                       {{"citations", std::move(citations_)}});
    return std::move(answer).take();
  }

private:
  struct call_pieces {
    std::optional<std::int64_t> index;
    std::string id;
    std::string name;
    std::string arguments;
  };

  result<void> take_choice(const wire_node& choice,
                           std::string_view field,
                           std::vector<model_response>* pieces) {
    const auto said = choice[field];
    // vLLM and DeepSeek call it reasoning_content, Ollama and newer servers
    // reasoning; some send both.
    auto thoughts = said["reasoning_content"];
    if (!thoughts)
      thoughts = said["reasoning"];
    take_words(thoughts, true, pieces);
    take_words(said["content"], false, pieces);
    refusal_ += said["refusal"].text();
    result<void> taken;
    said["tool_calls"].for_each([&](const wire_node& call) {
      if (taken)
        taken = take_call(call);
    });
    said["annotations"].for_each(
      [this](const wire_node& note) { take_citation(note["url_citation"]); });
    if (const auto reason = choice["finish_reason"].text(); !reason.empty()) {
      reason_ = adk_reason(reason);
      end();
    }
    return taken;
  }

  // Text, or Mistral's list of {"type": "text", "text"} and {"type":
  // "thinking", "thinking": [...]}.
  void take_words(const wire_node& said,
                  bool thought,
                  std::vector<model_response>* pieces) {
    if (said.is_list()) {
      said.for_each([&](const wire_node& element) {
        take_words(element["text"], thought, pieces);
        take_words(element["thinking"], true, pieces);
      });
      return;
    }
    const auto words = said.text();
    if (words.empty())
      return;
    (thought ? thoughts_ : words_) += words;
    if (pieces != nullptr)
      pieces->push_back(partial_answer(words, thought));
  }

  result<void> take_call(const wire_node& said) {
    constexpr std::size_t calls_max = 1'000;
    const auto function = said["function"];
    const auto index = said["index"].count();
    auto& call = call_for(index, said["id"].text(), function["name"].text());
    if (calls_.size() > calls_max)
      return failed(fmt::format("more than {} calls in one answer", calls_max));
    if (call.id.empty())
      call.id = said["id"].text();
    // Some servers repeat it in every piece.
    if (const auto name = function["name"].text(); name != call.name)
      call.name += name;
    // Servers that answer with the whole call may send an object.
    const auto arguments = function["arguments"];
    if (arguments.is_object())
      call.arguments += arguments.to_text();
    else
      call.arguments += arguments.text();
    return {};
  }

  // A piece belongs to the call with its index; without one, to the last. A new
  // id with a name begins a call whatever the index: Gemini's and Ollama's
  // compatible servers have sent 0 for each of several calls. A new id alone
  // does not: vLLM before 0.7 drew one for each piece.
  call_pieces& call_for(std::optional<std::int64_t> index,
                        std::string_view id,
                        std::string_view name) {
    const auto known = std::find_if(
      calls_.rbegin(), calls_.rend(), [&](const call_pieces& call) {
        return !index || call.index == index;
      });
    const bool begins = known == calls_.rend()
                        || (!id.empty() && !known->id.empty() && id != known->id
                            && !name.empty())
                        || (!index && id.empty() && !name.empty());
    return begins ? calls_.emplace_back(call_pieces{index, {}, {}, {}})
                  : *known;
  }

  void take_citation(const wire_node& said) {
    auto citation = json::object();
    const auto set = [&citation](const char* name, std::string_view text) {
      if (!text.empty())
        citation[name] = text;
    };
    set("title", said["title"].text());
    set("uri", said["url"].text());
    if (const auto start = said["start_index"].count())
      citation["startIndex"] = *start;
    if (const auto end = said["end_index"].count())
      citation["endIndex"] = *end;
    if (!citation.empty())
      citations_.push_back(std::move(citation));
  }

  std::string model_;
  std::string thoughts_;
  std::string words_;
  std::string refusal_;
  std::string reason_;
  std::vector<call_pieces> calls_;
  token_usage usage_;
  json citations_ = json::array();
  bool has_ended_ = false;
};

class openai_stream : public stream_reader {
public:
  result<void> take(const sse_event& next,
                    std::vector<model_response>& pieces) override {
    // An empty event keeps the connection alive.
    if (is_done_ || next.data.empty())
      return {};
    if (next.data.starts_with("[DONE]")) {
      is_done_ = true;
      answer_.end();
      return {};
    }
    const auto piece = document_.parse(next.data);
    if (!piece)
      return piece.error();
    // The field of llama.cpp, and events of that name.
    if (next.name == "error")
      return failed(failure_line(failure_text(*piece)));
    if (auto taken = answer_.take(*piece, "delta", &pieces); !taken)
      return taken;
    return document_.check();
  }

  // The end of a choice is enough, as not every server sends [DONE].
  result<model_response> finish() override {
    if (!answer_.has_ended())
      return failed("the stream broke off before its end");
    return std::move(answer_).whole();
  }

private:
  wire_document document_;
  openai_answer answer_;
  bool is_done_ = false;
};

class openai_wire_format : public wire_format {
public:
  std::string_view provider() const noexcept override { return vendor; }

  result<http_request> make_request(const model_request& asked,
                                    const wire_options& with) const override
    try {
    auto messages = message_writer().write(asked);
    if (!messages)
      return messages.error();
    json body{{"model", with.model}, {"messages", std::move(*messages)}};
    if (!asked.tools.empty())
      body["tools"] = tools_of(asked);
    if (with.streams)
      body.update(
        {{"stream", true}, {"stream_options", {{"include_usage", true}}}});
    if (auto added = add_settings(asked, with, body); !added)
      return added.error();
    http_headers headers;
    if (!with.key.empty())
      headers.emplace_back("Authorization", "Bearer " + with.key);
    return json_request(with, "/chat/completions", std::move(headers), body);

  } catch (const json::exception&) {

    return refused("the request holds text that is not UTF-8");
  }

  result<model_response> read_answer(std::string_view body) const override {
    wire_document document;
    const auto said = document.parse(body);
    if (!said)
      return said.error();
    openai_answer answer;
    if (auto taken = answer.take(*said, "message", nullptr); !taken)
      return taken.error();
    if (auto checked = document.check(); !checked)
      return checked.error();
    if (!(*said)["choices"].first())
      return failed("the answer has no choices");
    return std::move(answer).whole();
  }

  std::unique_ptr<stream_reader> read_stream() const override {
    return std::make_unique<openai_stream>();
  }
};

} // namespace

wire_format_ptr openai_format() {
  return std::make_shared<openai_wire_format>();
}

} // namespace troupe
