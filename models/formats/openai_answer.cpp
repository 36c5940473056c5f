#include "troupe/models/formats/openai_answer.hpp"

#include "troupe/core/support/blank.hpp"
#include "troupe/models/formats/failure.hpp"
#include "troupe/models/formats/openai_request.hpp"
#include "troupe/models/formats/surrogates.hpp"
#include "troupe/models/wire/grounding.hpp"
#include "troupe/models/wire/part_marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// Maps the reasons as LiteLLM's adapter in ADK does (models/lite_llm.py).
// "model_length" is Mistral's.
std::string_view reason_of_openai(std::string_view reason) {
  if (reason == "stop" || reason == "tool_calls" || reason == "function_call")
    return "STOP";
  if (reason == "length" || reason == "model_length")
    return "MAX_TOKENS";
  if (reason == "content_filter")
    return "SAFETY";
  return "OTHER";
}

// Reasons of OpenRouter ("Error Handling") and DeepSeek ("Create Chat
// Completion").
bool is_failure(std::string_view reason) {
  return reason == "error" || reason == "insufficient_system_resource";
}

std::string with_colon(const std::string& words) {
  return words.empty() ? words : ": " + words;
}

// Returns the first character that is not white space; NUL if there is none.
char first_of(std::string_view text) {
  const auto at = text.find_first_not_of(wire_white_space);
  return at == std::string_view::npos ? '\0' : text[at];
}

// Returns true if nothing can follow these arguments.
bool is_whole(std::string_view arguments) {
  const auto end = arguments.find_last_not_of(wire_white_space);
  if (end == std::string_view::npos || arguments[end] != '}')
    return false;
  const auto mended = without_lone_surrogates(arguments);
  return parse_json(mended ? std::string_view(*mended) : arguments).has_value();
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

} // namespace

result<void> openai_answer::take(const wire_node& document,
                                 std::string_view field,
                                 std::vector<model_response>* pieces) {
  if (const auto said = document["error"])
    return told_failure(document);
  // vLLM before 0.10 sends errors without the outer object.
  if (const auto kind = document["object"]; kind && kind.text() == "error")
    return told_failure(document);
  if (model_.empty())
    model_ = document["model"].text();
  if (const auto usage = document["usage"])
    usage_ = usage_of(usage);
  result<void> taken;
  bool has_choices = false;
  // The first alternative is the answer. The piece with the usage has no
  // alternatives.
  document["choices"].for_each([&](const wire_node& choice) {
    has_choices = true;
    if (taken && choice["index"].count().value_or(0) == 0)
      taken = take_choice(choice, field, pieces);
  });
  // Token counts come last, also from servers that send no finish reason.
  const bool has_said
    = !words_.empty() || !thoughts_.empty() || !calls_.empty();
  if (document["usage"] && !has_choices && has_said)
    end();
  return taken;
}

result<void> openai_answer::take_choice(const wire_node& choice,
                                        std::string_view field,
                                        std::vector<model_response>* pieces) {
  const auto said = choice[field];
  take_thoughts(said, pieces);
  take_words(said["content"], false, pieces);
  refusal_ += said["refusal"].text();
  result<void> taken;
  said["tool_calls"].for_each([&](const wire_node& call) {
    if (taken)
      taken = take_call(call);
  });
  said["annotations"].for_each(
    [this](const wire_node& note) { take_citation(note["url_citation"]); });
  const auto reason = choice["finish_reason"].text();
  if (is_failure(reason))
    return error(errc::busy,
                 fmt::format("the server gave up: {}{}",
                             reason,
                             with_colon(failure_text(choice))));
  if (!reason.empty()) {
    reason_ = reason_of_openai(reason);
    end();
  }
  return taken;
}

// DeepSeek, llama.cpp and vLLM up to 2025 use the first field, Ollama, Groq and
// newer vLLM the second, OpenRouter both. Values that are not text are ignored.
void openai_answer::take_thoughts(const wire_node& said,
                                  std::vector<model_response>* pieces) {
  for (const auto field : openai_thought_fields)
    if (const auto thoughts = said[field];
        thoughts.is_text() && !thoughts.text().empty()) {
      if (thoughts_field_.empty())
        thoughts_field_ = field;
      return take_words(thoughts, true, pieces);
    }
}

// Takes text, or Mistral's list of {"type": "text", "text"} and {"type":
// "thinking", "thinking": [...]}.
void openai_answer::take_words(const wire_node& said,
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
  if (!splits_thoughts_)
    return say(words, thought, pieces);
  const auto split = [this, pieces](std::string_view part, bool is_thought) {
    say(part, is_thought, pieces);
  };
  if (!thought)
    return tags_.take(words, split);
  tags_.close(split);
  say(words, true, pieces);
}

void openai_answer::say(std::string_view words,
                        bool thought,
                        std::vector<model_response>* pieces) {
  if (words.empty())
    return;
  (thought ? thoughts_ : words_) += words;
  if (pieces != nullptr)
    pieces->push_back(partial_answer(words, thought));
}

// Separates tagged thoughts at the end. Pieces that were delivered stay
// unchanged.
void openai_answer::split_words() {
  tags_.finish([this](std::string_view words, bool thought) {
    say(words, thought, nullptr);
  });
  if (!thoughts_.empty() || tags_.has_opened())
    return;
  const auto [thought, words] = split_at_closing_tag(words_);
  thoughts_ = thought;
  words_ = std::string(words);
}

result<void> openai_answer::take_call(const wire_node& said) {
  constexpr std::size_t calls_max = 1'000;
  const auto function = said["function"];
  const auto held = function["arguments"];
  // Servers that send the whole call at once may send an object.
  const auto arguments
    = held.is_object() ? held.to_text() : std::string(held.text());
  const call_piece piece{said["index"].count(),
                         said["id"].text(),
                         function["name"].text(),
                         arguments};
  auto& call = call_for(piece);
  if (calls_.size() > calls_max)
    return bad_answer(
      fmt::format("more than {} calls in one answer", calls_max));
  if (call.id.empty())
    call.id = piece.id;
  // Some servers repeat the name in every piece.
  if (piece.name != call.name)
    call.name += piece.name;
  call.arguments += arguments;
  // Gemini's compatible server sends its thought signature here, and wants it
  // back with the call.
  if (const auto extra = said["extra_content"]) {
    auto kept = extra.copy();
    if (!kept)
      return bad_answer(
        fmt::format("'extra_content': {}", kept.error().message()));
    call.extra_content = std::move(*kept);
  }
  return {};
}

// Returns the call that a piece belongs to: the one with its index and its id,
// as far as it has them, else the last one or a new one.
openai_answer::call_pieces& openai_answer::call_for(const call_piece& piece) {
  const auto has_index = [&piece](const call_pieces& call) {
    return !piece.index || call.index == piece.index;
  };
  if (!piece.id.empty())
    for (auto call = calls_.rbegin(); call != calls_.rend(); ++call)
      if (call->id == piece.id && has_index(*call))
        return *call;
  const auto last = std::find_if(calls_.rbegin(), calls_.rend(), has_index);
  return last == calls_.rend() || begins(piece, *last)
           ? calls_.emplace_back(call_pieces{piece.index, {}, {}, {}, {}})
           : *last;
}

// Returns true if a piece begins a call of its own, although `last` is the last
// call with its index. No call with this index has the piece's id.
bool openai_answer::begins(const call_piece& piece, const call_pieces& last) {
  const bool is_named = !piece.name.empty();
  // A new id with a name, because compatible servers of Gemini and Ollama have
  // sent index 0 for several calls. With an index, a new id alone does not
  // begin a call, because vLLM before 0.7 made a new id for each piece. Without
  // an index, only the id tells calls apart.
  if (!piece.id.empty() && !last.id.empty())
    return is_named || !piece.index;
  if (!piece.id.empty())
    return is_named && !piece.index && !last.name.empty();
  if (!is_named)
    return false;
  const bool restarts
    = first_of(piece.arguments) == '{' && is_whole(last.arguments);
  // With an index, even a name may come in pieces.
  if (piece.index)
    return restarts;
  return restarts || piece.name != last.name
         || (last.id.empty() && last.arguments.empty());
}

void openai_answer::take_citation(const wire_node& said) {
  cited_.add({std::string(said["url"].text()),
              std::string(said["title"].text()),
              said["start_index"].count(),
              said["end_index"].count()});
}

void openai_answer::add_thoughts(answer_builder& answer) {
  if (thoughts_.empty())
    return;
  part made(std::move(thoughts_));
  made.thought = true;
  if (!thoughts_field_.empty())
    set_mark(
      made, openai_marks, openai_field_mark, std::string(thoughts_field_));
  answer.add_part(std::move(made));
}

result<model_response> openai_answer::whole() && {
  if (splits_thoughts_)
    split_words();
  answer_builder answer;
  answer.finish(reason_);
  add_thoughts(answer);
  grounding sources;
  cited_.add_sources(answer.parts(), words_, sources);
  if (auto made = std::move(sources).take(); !made.is_null())
    answer.set_field("groundingMetadata", std::move(made));
  answer.add_text(words_, false);
  for (auto& call : calls_) {
    part marked;
    if (!call.extra_content.is_null())
      set_mark(
        marked, openai_marks, openai_extra_mark, std::move(call.extra_content));
    if (auto added = answer.add_call(std::move(call.id),
                                     std::move(call.name),
                                     call.arguments,
                                     std::move(marked.extra));
        !added)
      return added.error();
  }
  if (!refusal_.empty()) {
    answer.finish("SAFETY");
    answer.block("SAFETY", refusal_);
  }
  answer.set_text("modelVersion", model_);
  answer.set_usage(usage_);
  auto citations = json::array();
  cited_.add_citations(citations);
  answer.set_citations(std::move(citations));
  return std::move(answer).take();
}
} // namespace troupe
