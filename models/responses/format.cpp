#include "troupe/models/formats/answer_stream.hpp"
#include "troupe/models/formats/failure.hpp"
#include "troupe/models/formats/openai_request.hpp"
#include "troupe/models/formats/request_parts.hpp"
#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/responses/answer.hpp"
#include "troupe/models/responses/request.hpp"
#include "troupe/models/wire/tool_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace troupe {

namespace {

// Events of types/responses/*_event.py. Words come as deltas; items come whole
// once more when they are done, so arguments of calls need no deltas.
class responses_stream : public answer_stream<responses_answer> {
public:
  result<void> take(const sse_event& next,
                    std::vector<model_response>& pieces) override {
    // Compatible servers end as chat completions do.
    if (next.data.starts_with("[DONE]"))
      return {};
    return answer_stream::take(next, pieces);
  }

private:
  result<void> take_document(const wire_node& said,
                             std::string_view event_name,
                             std::vector<model_response>& pieces) override {
    const auto told = said["type"].text();
    const auto type = told.empty() ? event_name : told;
    if (type == "error" || (told.empty() && said["error"]))
      return told_failure(said);
    if (type == "response.output_text.delta") {
      if (const auto words = said["delta"].text(); !words.empty())
        pieces.push_back(partial_answer(words, false));
    } else if (type == "response.reasoning_summary_text.delta") {
      take_thought(said, said["summary_index"], false, pieces);
    } else if (type == "response.reasoning_text.delta") {
      take_thought(said, said["content_index"], true, pieces);
    } else if (type == "response.output_item.done") {
      return answer().take_item(said["item"], said["output_index"].count());
    } else if (type == "response.completed" || type == "response.incomplete") {
      return answer().take(said["response"]);
    } else if (type == "response.failed" || type == "response.cancelled") {
      const auto response = said["response"];
      return response["error"]
               ? told_failure(response)
               : bad_answer(fmt::format("the server sent '{}'", type));
    }
    return {};
  }

  // A thought has several texts, with a blank line between them.
  void take_thought(const wire_node& said,
                    const wire_node& index,
                    bool is_content,
                    std::vector<model_response>& pieces) {
    const auto words = said["delta"].text();
    if (words.empty())
      return;
    const thought_place place{said["output_index"].count().value_or(0),
                              is_content,
                              index.count().value_or(0)};
    const bool goes_on = last_thought_ && last_thought_->item == place.item
                         && (last_thought_->is_content != place.is_content
                             || last_thought_->index != place.index);
    last_thought_ = place;
    pieces.push_back(
      partial_answer((goes_on ? "\n\n" : "") + std::string(words), true));
  }

  struct thought_place {
    std::int64_t item;
    bool is_content;
    std::int64_t index;
  };

  std::optional<thought_place> last_thought_;
};

// The server refuses its own items, or the request for encrypted thoughts: of
// another model or account, of a model without thoughts, or because an item
// that belongs to them is missing.
bool refuses_items(int status, std::string_view body) {
  constexpr std::array<std::string_view, 5> said
    = {"Encrypted content is not supported",
       "invalid_encrypted_content",
       "Reasoning input items can only be provided",
       "was provided without its required",
       "Items are not persisted"};
  return (status == 400 || status == 404)
         && std::ranges::any_of(said, [body](std::string_view words) {
              return body.find(words) != std::string_view::npos;
            });
}

class responses_wire_format : public wire_format {
public:
  std::string_view provider() const noexcept override { return "OpenAI"; }

  result<void> check_tools_of(std::string_view /*model*/,
                              const std::vector<vendor_tool>& wanted,
                              bool /*beside_functions*/) const override {
    return check_tools(wanted, {"web_search", "code_execution"});
  }

  result<model_response>
  read_answer(std::string_view body,
              const wire_options& /*asked*/) const override {
    return read_document(body,
                         responses_answer(),
                         [](responses_answer& answer, const wire_node& said) {
                           return answer.take(said);
                         });
  }

  std::optional<wire_options>
  without_refused(int status,
                  std::string_view body,
                  const wire_options& asked) const override {
    return without_refused_by_openai(status, body, asked, refuses_items);
  }

  std::unique_ptr<stream_reader>
  read_stream(const wire_options& /*asked*/) const override {
    return std::make_unique<responses_stream>();
  }

private:
  result<http_request> build_request(const model_request& asked,
                                     const wire_options& with) const override {
    const auto body = responses_body(asked, with);
    if (!body)
      return body.error();
    return json_request(with, "/responses", bearer_header(with), *body);
  }
};

} // namespace

wire_format_ptr openai_responses_format() {
  return std::make_shared<responses_wire_format>();
}

} // namespace troupe
