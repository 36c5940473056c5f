#include "troupe/core/support/base64.hpp"
#include "troupe/models/formats/answer_builder.hpp"
#include "troupe/models/formats/answer_stream.hpp"
#include "troupe/models/formats/anthropic_request.hpp"
#include "troupe/models/formats/document.hpp"
#include "troupe/models/formats/failure.hpp"
#include "troupe/models/formats/request_parts.hpp"
#include "troupe/models/formats/wire_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view version = "2023-06-01";
constexpr std::string_view vertex_version = "vertex-2023-10-16";

// Encodes a signature. It is text at Anthropic and bytes in ADK, so it is
// stored as base64 of the text, as ADK's AnthropicLlm does.
json kept_signature(std::string_view signature) {
  return to_base64(signature, base64_alphabet::url);
}

// The names are those of types/stop_reason.py.
std::string_view reason_of_anthropic(std::string_view reason) {
  if (reason == "end_turn" || reason == "stop_sequence" || reason == "tool_use")
    return "STOP";
  if (reason == "max_tokens" || reason == "model_context_window_exceeded")
    return "MAX_TOKENS";
  if (reason == "refusal")
    return "SAFETY";
  return "OTHER";
}

// One block of content, complete or still incoming.
struct content_block {
  enum class kind : std::uint8_t { other, text, thinking, redacted, call };

  kind is = kind::other;
  std::int64_t index = 0;
  std::string text; // Arguments in pieces, if it is a call.
  std::string signature;
  std::string id;
  std::string name;
  std::string input; // Arguments at the start of a call.
  json citations = json::array();
};

json citation_of(const wire_node& said) {
  const auto title = said["document_title"] ? said["document_title"].text()
                                            : said["title"].text();
  const auto uri = said["url"] ? said["url"].text() : said["source"].text();
  return make_citation(title, uri);
}

// Blocks of other types are work of the server and not part of content.
content_block block_of(const wire_node& said) {
  using kind = content_block::kind;
  content_block made;
  const auto type = said["type"].text();
  if (type == "text") {
    made.is = kind::text;
    made.text = said["text"].text();
    said["citations"].for_each([&made](const wire_node& each) {
      made.citations.push_back(citation_of(each));
    });
  } else if (type == "thinking") {
    made.is = kind::thinking;
    made.text = said["thinking"].text();
    made.signature = said["signature"].text();
  } else if (type == "redacted_thinking") {
    made.is = kind::redacted;
    made.signature = said["data"].text();
  } else if (type == "tool_use") {
    made.is = kind::call;
    made.id = said["id"].text();
    made.name = said["name"].text();
    made.input = said["input"].to_text();
  }
  return made;
}

class anthropic_answer {
public:
  void begin(const wire_node& message) {
    model_ = message["model"].text();
    take_usage(message["usage"]);
  }

  // Reads a whole message.
  result<void> take(const wire_node& message) {
    if (message["error"])
      return told_failure(message);
    if (!message["content"].is_list())
      return bad_answer("the answer has no content");
    begin(message);
    message["content"].for_each(
      [this](const wire_node& each) { blocks_.push_back(block_of(each)); });
    take_end(message, {});
    return {};
  }

  result<void> begin_block(const wire_node& event,
                           std::vector<model_response>& pieces) {
    constexpr std::size_t blocks_max = 10'000;
    if (blocks_.size() == blocks_max)
      return bad_answer(
        fmt::format("more than {} blocks in one answer", blocks_max));
    auto block = block_of(event["content_block"]);
    block.index = event["index"].count().value_or(
      static_cast<std::int64_t>(blocks_.size()));
    blocks_.push_back(std::move(block));
    say(blocks_.back(), blocks_.back().text, pieces);
    return {};
  }

  result<void> take_delta(const wire_node& event,
                          std::vector<model_response>& pieces) {
    const auto index = event["index"].count();
    const auto found
      = std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const auto& block) {
          return block.index == index;
        });
    if (found == blocks_.rend())
      return bad_answer("a piece of a block that had not begun");
    const auto delta = event["delta"];
    const auto type = delta["type"].text();
    if (type == "text_delta") {
      append(*found, delta["text"].text(), pieces);
    } else if (type == "thinking_delta") {
      append(*found, delta["thinking"].text(), pieces);
    } else if (type == "input_json_delta") {
      found->text += delta["partial_json"].text();
    } else if (type == "signature_delta") {
      found->signature += delta["signature"].text();
    } else if (type == "citations_delta") {
      found->citations.push_back(citation_of(delta["citation"]));
    }
    return {};
  }

  // Reads the end from a message or from `message_delta`.
  void take_end(const wire_node& said, const wire_node& usage) {
    take_usage(usage);
    if (const auto reason = said["stop_reason"].text(); !reason.empty()) {
      reason_ = reason_of_anthropic(reason);
      is_paused_ = reason == "pause_turn";
      has_ended_ = true;
    }
    const auto details = said["stop_details"];
    if (const auto words = details["explanation"].text(); !words.empty())
      message_ = words;
    else if (const auto category = details["category"].text();
             !category.empty())
      message_ = category;
  }

  void end() { has_ended_ = true; }

  bool has_ended() const { return has_ended_; }

  result<model_response> whole() && {
    answer_builder answer;
    answer.finish(reason_, message_);
    auto citations = json::array();
    for (auto& block : blocks_) {
      if (auto added = add(std::move(block), answer, citations); !added)
        return added.error();
    }
    // Happens only with the server's own tools, whose blocks are not part of
    // content. The turn is not over, and troupe cannot continue it.
    if (is_paused_)
      answer.block("PAUSE_TURN",
                   "the server paused the turn for its own tools");
    answer.set_text("modelVersion", model_);
    answer.set_usage(usage());
    answer.set_citations(std::move(citations));
    return std::move(answer).take();
  }

private:
  using kind = content_block::kind;

  static void say(const content_block& block,
                  std::string_view words,
                  std::vector<model_response>& pieces) {
    if (!words.empty()
        && (block.is == kind::text || block.is == kind::thinking))
      pieces.push_back(partial_answer(words, block.is == kind::thinking));
  }

  static void append(content_block& block,
                     std::string_view words,
                     std::vector<model_response>& pieces) {
    block.text += words;
    say(block, words, pieces);
  }

  static result<void>
  add(content_block block, answer_builder& answer, json& citations) {
    part made;
    switch (block.is) {
    case kind::other:
      return {};
    case kind::call:
      return answer.add_call(std::move(block.id),
                             std::move(block.name),
                             block.text.empty() ? block.input : block.text);
    case kind::text:
      for (auto& citation : block.citations)
        if (!citation.empty())
          citations.push_back(std::move(citation));
      if (block.text.empty())
        return {};
      made.body = std::move(block.text);
      break;
    case kind::thinking:
      made.body = std::move(block.text);
      made.thought = true;
      if (!block.signature.empty())
        made.extra
          = json{{"thoughtSignature", kept_signature(block.signature)}};
      break;
    case kind::redacted:
      made.body
        = value(json{{"thoughtSignature", kept_signature(block.signature)}});
      made.thought = true;
      break;
    }
    answer.add_part(std::move(made));
    return {};
  }

  // Counts in `message_delta` are cumulative. A count that is missing keeps its
  // value.
  void take_usage(const wire_node& said) {
    const auto take = [](auto& count, std::optional<std::int64_t> given) {
      if (given)
        count = given;
    };
    take(input_, said["input_tokens"].count());
    take(cache_written_, said["cache_creation_input_tokens"].count());
    take(cache_read_, said["cache_read_input_tokens"].count());
    take(output_, said["output_tokens"].count());
    take(thoughts_, said["output_tokens_details"]["thinking_tokens"].count());
  }

  // "Total input tokens in a request is the summation of `input_tokens`,
  // `cache_creation_input_tokens`, and `cache_read_input_tokens`."
  token_usage usage() const {
    static constexpr std::int64_t count_max = std::int64_t{1} << 60U;
    const auto bounded = [](std::optional<std::int64_t> count) {
      return std::min(count.value_or(0), count_max);
    };
    token_usage counts;
    if (input_)
      counts.prompt
        = bounded(input_) + bounded(cache_written_) + bounded(cache_read_);
    counts.candidates = output_;
    counts.thoughts = thoughts_;
    if (cache_read_.value_or(0) > 0)
      counts.cached = cache_read_;
    return counts;
  }

  std::string model_;
  std::vector<content_block> blocks_;
  std::string reason_;
  std::string message_;
  std::optional<std::int64_t> input_;
  std::optional<std::int64_t> cache_written_;
  std::optional<std::int64_t> cache_read_;
  std::optional<std::int64_t> output_;
  std::optional<std::int64_t> thoughts_;
  bool is_paused_ = false;
  bool has_ended_ = false;
};

class anthropic_stream : public answer_stream<anthropic_answer> {
  // Unknown events must be ignored (docs.anthropic.com, "Streaming messages").
  // `ping` and `content_block_stop` have no content.
  result<void> take_document(const wire_node& event,
                             std::string_view /*event_name*/,
                             std::vector<model_response>& pieces) override {
    const auto type = event["type"].text();
    if (type == "content_block_delta")
      return answer().take_delta(event, pieces);
    if (type == "content_block_start")
      return answer().begin_block(event, pieces);
    if (type == "message_start")
      answer().begin(event["message"]);
    else if (type == "message_delta")
      answer().take_end(event["delta"], event["usage"]);
    else if (type == "message_stop")
      answer().end();
    else if (type == "error" || event["error"])
      return told_failure(event);
    return {};
  }
};

class anthropic_wire_format : public wire_format {
public:
  explicit anthropic_wire_format(anthropic_host host) : host_(host) {}

  std::string_view provider() const noexcept override { return "Anthropic"; }

  result<model_response>
  read_answer(std::string_view body,
              const wire_options& /*asked*/) const override {
    return read_document(body,
                         anthropic_answer(),
                         [](anthropic_answer& answer, const wire_node& said) {
                           return answer.take(said);
                         });
  }

  // Thoughts are bound to everything before them. Instructions that contain
  // state, or tools that come and go, make them invalid permanently
  // (platform.claude.com, "Preserved thinking"). From Claude 4.7 on a budget is
  // refused ("Adaptive thinking").
  std::optional<wire_options>
  without_refused(int status,
                  std::string_view body,
                  const wire_options& asked) const override {
    auto with = asked;
    if (status == 400 && !asked.without.thoughts
        && body.find("Invalid `signature` in `thinking` block")
             != std::string_view::npos)
      with.without.thoughts = true;
    else if (status == 400 && !asked.without.thinking_budget
             && body.find("thinking.type.enabled") != std::string_view::npos)
      with.without.thinking_budget = true;
    else
      return std::nullopt;
    return with;
  }

  std::unique_ptr<stream_reader>
  read_stream(const wire_options& /*asked*/) const override {
    return std::make_unique<anthropic_stream>();
  }

private:
  result<http_request> build_request(const model_request& asked,
                                     const wire_options& with) const override {
    auto body = anthropic_body(asked, with);
    if (!body)
      return body.error();
    if (host_ == anthropic_host::vertex)
      return vertex_request(with, std::move(*body));
    http_headers headers{{"anthropic-version", std::string(version)}};
    if (!with.key.empty())
      headers.emplace_back("x-api-key", with.key);
    return json_request(with, "/v1/messages", std::move(headers), *body);
  }

  // The model is in the path, and the version in the body (platform.claude.com,
  // "Claude on Vertex AI").
  static result<http_request> vertex_request(const wire_options& with,
                                             json body) {
    body.erase("model");
    body["anthropic_version"] = vertex_version;
    http_headers headers;
    if (!with.key.empty())
      headers.emplace_back("Authorization", "Bearer " + with.key);
    return json_request(
      with,
      fmt::format("/v1/{}:{}",
                  with.model,
                  with.streams ? "streamRawPredict" : "rawPredict"),
      std::move(headers),
      body);
  }

  const anthropic_host host_;
};

} // namespace

wire_format_ptr anthropic_format(anthropic_host host) {
  return std::make_shared<anthropic_wire_format>(host);
}

wire_format_ptr anthropic_format() {
  return anthropic_format(anthropic_host::anthropic);
}

} // namespace troupe
