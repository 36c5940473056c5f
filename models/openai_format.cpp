#include "troupe/models/openai_answer.hpp"
#include "troupe/models/openai_request.hpp"
#include "troupe/models/request_parts.hpp"
#include "troupe/models/wire_failure.hpp"
#include "troupe/models/wire_format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace troupe {

namespace {

error failed(std::string_view why) {
  return {errc::model_failed, std::string(why)};
}

error refused(std::string_view why) {
  return {errc::invalid_argument, std::string(why)};
}

// Not as a part of a longer name ("reasoning_effort").
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

class openai_stream : public stream_reader {
public:
  explicit openai_stream(const wire_options& asked)
    : answer_(!is_openai(asked.base_url)) {}

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
      return told_failure(*piece);
    if (auto taken = answer_.take(*piece, "delta", &pieces); !taken)
      return taken;
    return document_.check();
  }

  bool has_ended() const noexcept override { return is_done_; }

  // The end of a choice is enough, as not every server sends [DONE].
  result<model_response> finish() override {
    if (!answer_.has_ended())
      return broken_off();
    return std::move(answer_).whole();
  }

private:
  wire_document document_;
  openai_answer answer_;
  bool is_done_ = false;
};

// Groq, Cerebras and Mistral name the field; llama.cpp's template of gpt-oss
// fails (ggml-org/llama.cpp#17040).
bool refuses_thoughts(int status, std::string_view body) {
  constexpr std::array<std::string_view, 3> said = {
    "reasoning_content", "reasoning", "Cannot pass both content and thinking"};
  return (status == 400 || status == 422 || status == 500)
         && std::ranges::any_of(said, [body](std::string_view words) {
              return has_words(body, words);
            });
}

class openai_wire_format : public wire_format {
public:
  std::string_view provider() const noexcept override { return "OpenAI"; }

  result<http_request> make_request(const model_request& asked,
                                    const wire_options& with) const override
    try {
    const auto body = openai_body(asked, with);
    if (!body)
      return body.error();
    http_headers headers;
    if (!with.key.empty())
      headers.emplace_back("Authorization", "Bearer " + with.key);
    return json_request(with, "/chat/completions", std::move(headers), *body);

  } catch (const json::exception&) {

    return refused("the request holds text that is not UTF-8");
  }

  result<model_response> read_answer(std::string_view body,
                                     const wire_options& asked) const override {
    wire_document document;
    const auto said = document.parse(body);
    if (!said)
      return said.error();
    openai_answer answer(!is_openai(asked.base_url));
    if (auto taken = answer.take(*said, "message", nullptr); !taken)
      return taken.error();
    if (auto checked = document.check(); !checked)
      return checked.error();
    if (!(*said)["choices"].first())
      return failed("the answer has no choices");
    return std::move(answer).whole();
  }

  std::optional<wire_options>
  without_refused(int status,
                  std::string_view body,
                  const wire_options& asked) const override {
    auto with = asked;
    if (status == 400 && !asked.without.strict_schema
        && body.find("Invalid schema for response_format")
             != std::string_view::npos)
      with.without.strict_schema = true;
    else if (!asked.without.thoughts && refuses_thoughts(status, body))
      with.without.thoughts = true;
    else
      return std::nullopt;
    return with;
  }

  std::unique_ptr<stream_reader>
  read_stream(const wire_options& asked) const override {
    return std::make_unique<openai_stream>(asked);
  }
};

} // namespace

wire_format_ptr openai_format() {
  return std::make_shared<openai_wire_format>();
}

} // namespace troupe
