#include "troupe/models/formats/answer_stream.hpp"
#include "troupe/models/formats/failure.hpp"
#include "troupe/models/formats/openai_answer.hpp"
#include "troupe/models/formats/openai_request.hpp"
#include "troupe/models/formats/request_parts.hpp"
#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/wire/tool_check.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace troupe {

namespace {

// Returns true if `words` occurs in `text` and not inside a longer name
// ("reasoning_effort").
bool has_words(std::string_view text, std::string_view words) {
  const auto is_of_name = [&text](std::size_t at) {
    return at < text.size()
           && (std::isalnum(static_cast<unsigned char>(text[at])) != 0
               || text[at] == '_');
  };
  for (auto at = text.find(words); at != std::string_view::npos;
       at = text.find(words, at + 1))
    if (!is_of_name(at - 1) && !is_of_name(at + words.size()))
      return true;
  return false;
}

class openai_stream : public answer_stream<openai_answer> {
public:
  explicit openai_stream(const wire_options& asked)
    : answer_stream(!is_openai(asked.base_url)) {}

  result<void> take(const sse_event& next,
                    std::vector<model_response>& pieces) override {
    if (is_done_)
      return {};
    if (next.data.starts_with("[DONE]")) {
      is_done_ = true;
      answer().end();
      return {};
    }
    return answer_stream::take(next, pieces);
  }

  // A finish reason ends the answer, because not every server sends [DONE]. It
  // does not end the stream: token counts follow it.
  bool has_ended() const noexcept override { return is_done_; }

private:
  result<void> take_document(const wire_node& said,
                             std::string_view event_name,
                             std::vector<model_response>& pieces) override {
    // llama.cpp's field `error`, and events of that name.
    return event_name == "error" ? told_failure(said)
                                 : answer().take(said, "delta", &pieces);
  }

  bool is_done_ = false;
};

// Groq, Cerebras and Mistral name the field in their error. llama.cpp's
// template of gpt-oss fails (ggml-org/llama.cpp#17040).
bool refuses_thoughts(int status, std::string_view body) {
  constexpr std::array<std::string_view, 3> said = {
    "reasoning_content", "reasoning", "Cannot pass both content and thinking"};
  return (status == 400 || status == 422 || status == 500)
         && std::ranges::any_of(said, [body](std::string_view words) {
              return has_words(body, words);
            });
}

bool is_for_search(std::string_view model) {
  return model.find("-search-") != std::string_view::npos;
}

class openai_wire_format : public wire_format {
public:
  std::string_view provider() const noexcept override { return "OpenAI"; }

  // All tools of OpenAI are tools of its Responses API. Chat completions search
  // the web with some models only, which are made for it
  // (developers.openai.com, "Web search").
  wire_format_ptr format_for(const std::vector<vendor_tool>& wanted,
                             const wire_options& asked) const override {
    return wanted.empty() || !is_openai(asked.base_url)
               || is_for_search(asked.model)
             ? nullptr
             : openai_responses_format();
  }

  result<void> check_tools_of(std::string_view model,
                              const std::vector<vendor_tool>& wanted,
                              bool /*beside_functions*/) const override {
    const bool searches = is_for_search(model);
    for (const auto& each : wanted) {
      if (each.name == "web_search" && !searches)
        return bad_request(
          "it has no tool 'web_search': in chat completions only models for "
          "search have it, such as gpt-5-search-api and gpt-4o-search-preview; "
          "for other models, call OpenAI's Responses API by the name "
          "openai-responses:NAME");
      if (each.name == "code_execution")
        return bad_request(
          "it has no tool 'code_execution': OpenAI runs code in its Responses "
          "API only; call it by the name openai-responses:NAME");
    }
    return searches ? check_tools(wanted, {"web_search"})
                    : check_tools(wanted, {});
  }

  result<model_response> read_answer(std::string_view body,
                                     const wire_options& asked) const override {
    bool has_choices = false;
    auto whole
      = read_document(body,
                      openai_answer(!is_openai(asked.base_url)),
                      [&](openai_answer& answer, const wire_node& said) {
                        auto taken = answer.take(said, "message", nullptr);
                        has_choices = bool(said["choices"].first());
                        return taken;
                      });
    if (whole && !has_choices)
      return bad_answer("the answer has no choices");
    return whole;
  }

  std::optional<wire_options>
  without_refused(int status,
                  std::string_view body,
                  const wire_options& asked) const override {
    return without_refused_by_openai(status, body, asked, refuses_thoughts);
  }

  std::unique_ptr<stream_reader>
  read_stream(const wire_options& asked) const override {
    return std::make_unique<openai_stream>(asked);
  }

private:
  result<http_request> build_request(const model_request& asked,
                                     const wire_options& with) const override {
    const auto body = openai_body(asked, with);
    if (!body)
      return body.error();
    return json_request(with, "/chat/completions", bearer_header(with), *body);
  }
};

} // namespace

wire_format_ptr openai_format() {
  return std::make_shared<openai_wire_format>();
}

} // namespace troupe
