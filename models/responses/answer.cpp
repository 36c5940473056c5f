#include "troupe/models/responses/answer.hpp"

#include "troupe/core/support/text_in.hpp"
#include "troupe/models/formats/failure.hpp"
#include "troupe/models/wire/cited_pages.hpp"
#include "troupe/models/wire/part_marks.hpp"
#include "troupe/models/wire/server_items.hpp"
#include "troupe/models/wire/server_parts.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe {

namespace {

// The names are those of types/responses/response.py (IncompleteDetails).
std::string_view reason_of_response(const wire_node& response) {
  if (response["status"].text() != "incomplete")
    return "STOP";
  const auto reason = response["incomplete_details"]["reason"].text();
  if (reason == "max_output_tokens")
    return "MAX_TOKENS";
  return reason == "content_filter" ? "SAFETY" : "OTHER";
}

token_usage usage_of_response(const wire_node& usage) {
  token_usage counts;
  counts.prompt = usage["input_tokens"].count();
  counts.candidates = usage["output_tokens"].count();
  counts.thoughts = usage["output_tokens_details"]["reasoning_tokens"].count();
  counts.cached = usage["input_tokens_details"]["cached_tokens"].count();
  counts.total = usage["total_tokens"].count();
  return counts;
}

std::optional<std::int64_t> count_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer()
             && found->get<std::int64_t>() >= 0
           ? std::optional(found->get<std::int64_t>())
           : std::nullopt;
}

// Citations of files name no page.
cited_pages pages_of(const json& element) {
  cited_pages cited;
  for (const auto& note : element.value("annotations", json::array()))
    if (text_in(note, "type") == "url_citation")
      cited.add({text_in(note, "url"),
                 text_in(note, "title"),
                 count_in(note, "start_index"),
                 count_in(note, "end_index")});
  return cited;
}

} // namespace

result<void> responses_answer::take(const wire_node& response) {
  if (response["error"])
    return told_failure(response);
  const auto status = response["status"].text();
  if (status == "failed" || status == "cancelled")
    return bad_answer(fmt::format("the response is {}", status));
  if (status == "queued" || status == "in_progress")
    return bad_answer(fmt::format("the response has no end: it is {}", status));
  const auto output = response["output"];
  if (!output && items_.empty())
    return bad_answer("the answer has no output");
  result<void> taken;
  std::int64_t place = 0;
  output.for_each([&](const wire_node& item) {
    if (taken && !items_.contains(place))
      taken = take_item(item, place);
    ++place;
  });
  if (!taken)
    return taken;
  model_ = response["model"].text();
  usage_ = usage_of_response(response["usage"]);
  reason_ = reason_of_response(response);
  has_ended_ = true;
  return {};
}

result<void> responses_answer::take_item(const wire_node& item,
                                         std::optional<std::int64_t> place) {
  auto made = item.copy();
  if (!made)
    return bad_answer(fmt::format(
      "an item '{}': {}", item["type"].text(), made.error().message()));
  const auto last = items_.empty() ? -1 : items_.rbegin()->first;
  if (!place && last == INT64_MAX)
    return bad_answer("an item has no place");
  items_.insert_or_assign(place.value_or(last + 1), std::move(*made));
  return {};
}

// Items of unknown types are not part of content.
result<void> responses_answer::add_item(json item, answer_builder& answer) {
  const auto type = text_in(item, "type");
  if (type == "message") {
    add_message(item, answer);
  } else if (type == "reasoning") {
    answer.add_part(part_of_reasoning(std::move(item)));
  } else if (type == "function_call") {
    return answer.add_call(text_in(item, "call_id"),
                           text_in(item, "name"),
                           text_in(item, "arguments"));
  } else if (is_server_item(type)) {
    add_work(std::move(item), answer);
  }
  return {};
}

void responses_answer::add_message(const json& item, answer_builder& answer) {
  const auto phase = text_in(item, "phase");
  for (const auto& element : item.value("content", json::array())) {
    refusal_ += text_in(element, "refusal");
    auto words = text_in(element, "text");
    if (words.empty())
      continue;
    const auto cited = pages_of(element);
    cited.add_citations(citations_);
    cited.add_sources(answer.parts(), words, sources_);
    part made(std::move(words));
    if (!phase.empty())
      set_mark(made, openai_marks, phase_mark, phase);
    answer.add_part(std::move(made));
  }
}

void responses_answer::add_work(json item, answer_builder& answer) {
  if (const auto action = item.find("action");
      action != item.end() && action->is_object()) {
    sources_.add_query(text_in(*action, "query"));
    for (const auto& query : action->value("queries", json::array()))
      if (query.is_string())
        sources_.add_query(query.get_ref<const std::string&>());
  }
  for (auto& made : parts_of_item(std::move(item)))
    answer.add_part(std::move(made));
}

result<model_response> responses_answer::whole() && {
  answer_builder answer;
  answer.finish(reason_);
  for (auto& [unused, item] : items_)
    if (auto added = add_item(std::move(item), answer); !added)
      return added.error();
  if (!refusal_.empty()) {
    answer.finish("SAFETY");
    answer.block("SAFETY", refusal_);
  }
  answer.set_text("modelVersion", model_);
  answer.set_usage(usage_);
  answer.set_citations(std::move(citations_));
  if (auto sources = std::move(sources_).take(); !sources.is_null())
    answer.set_field("groundingMetadata", std::move(sources));
  return std::move(answer).take();
}

} // namespace troupe
