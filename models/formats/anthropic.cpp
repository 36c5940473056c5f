#include "troupe/core/support/base64.hpp"
#include "troupe/core/support/text_in.hpp"
#include "troupe/models/formats/answer_builder.hpp"
#include "troupe/models/formats/answer_stream.hpp"
#include "troupe/models/formats/anthropic_request.hpp"
#include "troupe/models/formats/document.hpp"
#include "troupe/models/formats/failure.hpp"
#include "troupe/models/formats/request_parts.hpp"
#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/wire/grounding.hpp"
#include "troupe/models/wire/joined_answer.hpp"
#include "troupe/models/wire/part_marks.hpp"
#include "troupe/models/wire/server_blocks.hpp"
#include "troupe/models/wire/server_parts.hpp"
#include "troupe/models/wire/tool_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view version = "2023-06-01";
constexpr std::string_view paused_code = "PAUSE_TURN";
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
  enum class kind : std::uint8_t {
    other,
    text,
    thinking,
    redacted,
    call,
    server, // The server's own tool: its call or its result.
  };

  kind is = kind::other;
  std::int64_t index = 0;
  std::string text; // Arguments in pieces, if it is a call of any tool.
  std::string signature;
  std::string id;
  std::string name;
  std::string input; // Arguments at the start of a call.
  json whole;        // The block as it came, if it is one of the server.
  std::vector<json> citations; // As they came.
};

// Returns a citation with ADK's fields.
json citation_of(const json& said) {
  const auto title = text_in(said, "document_title");
  const auto uri = text_in(said, "url");
  return make_citation(title.empty() ? text_in(said, "title") : title,
                       uri.empty() ? text_in(said, "source") : uri);
}

result<void> take_citation(const wire_node& said, content_block& block) {
  auto made = said.copy();
  if (!made)
    return bad_answer(fmt::format("a citation: {}", made.error().message()));
  block.citations.push_back(std::move(*made));
  return {};
}

// Blocks of unknown types are not part of content.
result<content_block> block_of(const wire_node& said) {
  using kind = content_block::kind;
  content_block made;
  const auto type = said["type"].text();
  if (type == "text") {
    made.is = kind::text;
    made.text = said["text"].text();
    result<void> taken;
    said["citations"].for_each([&](const wire_node& each) {
      if (taken)
        taken = take_citation(each, made);
    });
    if (!taken)
      return taken.error();
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
  } else if (is_server_use(type) || is_server_result(type)) {
    made.is = kind::server;
    auto whole = said.copy();
    if (!whole)
      return bad_answer(
        fmt::format("a block '{}': {}", type, whole.error().message()));
    made.whole = std::move(*whole);
  }
  return made;
}

class anthropic_answer {
public:
  // `so_far` is the paused answer that goes on, or null.
  explicit anthropic_answer(std::shared_ptr<const model_response> so_far)
    : so_far_(std::move(so_far)) {}

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
    result<void> taken;
    message["content"].for_each([&](const wire_node& each) {
      auto block = block_of(each);
      if (taken && block)
        blocks_.push_back(std::move(*block));
      else if (taken)
        taken = block.error();
    });
    take_end(message, {});
    return taken;
  }

  result<void> begin_block(const wire_node& event,
                           std::vector<model_response>& pieces) {
    constexpr std::size_t blocks_max = 10'000;
    if (blocks_.size() == blocks_max)
      return bad_answer(
        fmt::format("more than {} blocks in one answer", blocks_max));
    auto block = block_of(event["content_block"]);
    if (!block)
      return block.error();
    block->index = event["index"].count().value_or(
      static_cast<std::int64_t>(blocks_.size()));
    blocks_.push_back(std::move(*block));
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
      return take_citation(delta["citation"], *found);
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
    if (const auto id = said["container"]["id"].text(); !id.empty())
      container_ = id;
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
    for (auto& block : blocks_) {
      if (auto added = add(std::move(block), answer); !added)
        return added.error();
    }
    // Happens only with the server's own tools. The turn goes on with the next
    // request.
    if (is_paused_)
      answer.block(paused_code, "the server paused the turn for its own tools");
    answer.set_text("modelVersion", model_);
    answer.set_usage(usage());
    answer.set_citations(std::move(citations_));
    if (auto sources = std::move(sources_).take(); !sources.is_null())
      answer.set_field("groundingMetadata", std::move(sources));
    auto made = std::move(answer).take();
    return so_far_ ? joined(*so_far_, std::move(made)) : std::move(made);
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

  result<void> add(content_block block, answer_builder& answer) {
    part made;
    switch (block.is) {
    case kind::other:
      return {};
    case kind::call:
      return answer.add_call(std::move(block.id),
                             std::move(block.name),
                             block.text.empty() ? block.input : block.text);
    case kind::server:
      return add_work(std::move(block), answer);
    case kind::text:
      return add_text(std::move(block), answer);
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

  // Citations of searches go back with their text ("encrypted_index": docs of
  // the web search tool).
  result<void> add_text(content_block block, answer_builder& answer) {
    auto kept = json::array();
    std::vector<std::size_t> pages;
    for (auto& each : block.citations) {
      if (auto citation = citation_of(each); !citation.empty())
        citations_.push_back(std::move(citation));
      if (const auto uri = text_in(each, "url"); !uri.empty())
        pages.push_back(sources_.add_page(uri, text_in(each, "title")));
      if (text_in(each, "type") == "web_search_result_location")
        kept.push_back(std::move(each));
    }
    if (block.text.empty())
      return {};
    if (!pages.empty())
      sources_.add_support(
        answer.parts(), 0, block.text.size(), block.text, pages);
    part made(std::move(block.text));
    if (!kept.empty())
      set_mark(made, anthropic_marks, citations_mark, std::move(kept));
    answer.add_part(std::move(made));
    return {};
  }

  result<void> add_work(content_block block, answer_builder& answer) {
    if (!block.text.empty()) {
      auto input = parse_json(block.text);
      if (!input)
        return bad_answer(
          fmt::format("it called the tool '{}' of the vendor with malformed "
                      "arguments: {}",
                      text_in(block.whole, "name"),
                      input.error().message()));
      block.whole["input"] = std::move(*input);
    }
    if (text_in(block.whole, "name") == "web_search")
      sources_.add_query(text_in(block.whole.value("input", json()), "query"));
    auto made = part_of_block(std::move(block.whole));
    if (!container_.empty())
      set_mark(made, anthropic_marks, container_mark, container_);
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

  std::shared_ptr<const model_response> so_far_;
  std::string model_;
  std::string container_;
  std::vector<content_block> blocks_;
  json citations_ = json::array();
  grounding sources_;
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
public:
  using answer_stream::answer_stream;

private:
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

  // Vertex has no other tool of the vendor (cloud.google.com, "Web search with
  // Anthropic Claude models").
  result<void> check_tools_of(std::string_view /*model*/,
                              const std::vector<vendor_tool>& wanted,
                              bool /*beside_functions*/) const override {
    if (auto known = host_ == anthropic_host::vertex
                       ? check_tools(wanted, {"web_search"})
                       : check_tools(
                         wanted, {"web_search", "web_fetch", "code_execution"});
        !known)
      return known;
    for (const auto& each : wanted)
      if (const auto type = each.settings.is_null()
                              ? json()
                              : each.settings->value("type", json());
          !type.is_null()
          && !(
            type.is_string()
            && type.get_ref<const std::string&>().starts_with(each.name + "_")))
        return bad_request(
          fmt::format("the 'type' of the tool '{}' is {}; it must begin with "
                      "'{}_' and end with a version, or be left out for the "
                      "default",
                      each.name,
                      type.dump(),
                      each.name));
    return {};
  }

  // The paused answer has to stay the last message of the next request.
  std::optional<wire_options>
  continued(const model_response& answer,
            const wire_options& asked) const override {
    if (answer.extra.is_null()
        || text_in(answer.extra.data(), "errorCode") != paused_code)
      return std::nullopt;
    auto with = asked;
    with.so_far = std::make_shared<const model_response>(answer);
    return with;
  }

  result<model_response> read_answer(std::string_view body,
                                     const wire_options& asked) const override {
    return read_document(body,
                         anthropic_answer(asked.so_far),
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
  read_stream(const wire_options& asked) const override {
    return std::make_unique<anthropic_stream>(asked.so_far);
  }

private:
  result<http_request> build_request(const model_request& asked,
                                     const wire_options& with) const override {
    auto body = anthropic_body(asked, with);
    if (!body)
      return body.error();
    if (host_ == anthropic_host::vertex)
      return vertex_request(
        with, std::move(*body), !asked.vendor_tools.empty());
    http_headers headers{{"anthropic-version", std::string(version)}};
    if (!with.key.empty())
      headers.emplace_back("x-api-key", with.key);
    return json_request(with, "/v1/messages", std::move(headers), *body);
  }

  // The model is in the path, and the version in the body (platform.claude.com,
  // "Claude on Vertex AI"). The search needs a beta header there, and not at
  // Anthropic itself (BerriAI/litellm, messages at Vertex AI).
  static result<http_request>
  vertex_request(const wire_options& with, json body, bool searches) {
    body.erase("model");
    body["anthropic_version"] = vertex_version;
    auto headers = bearer_header(with);
    if (searches)
      headers.emplace_back("anthropic-beta", "web-search-2025-03-05");
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
