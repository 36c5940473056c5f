#include "troupe/models/formats/answer_builder.hpp"

#include "troupe/core/support/blank.hpp"
#include "troupe/models/formats/surrogates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// Returns true if a filter of the vendor or an error of the model ended the
// answer. A reason that is unknown here is none of them: the vendor may have
// added it for an ordinary end. Source: googleapis/python-genai, types.py,
// FinishReason, November 2026.
bool is_failed_finish(std::string_view reason) {
  constexpr std::array<std::string_view, 19> failures
    = {"SAFETY",
       "RECITATION",
       "LANGUAGE",
       "BLOCKLIST",
       "PROHIBITED_CONTENT",
       "SPII",
       "MALFORMED_FUNCTION_CALL",
       "IMAGE_SAFETY",
       "IMAGE_PROHIBITED_CONTENT",
       "IMAGE_OTHER",
       "NO_IMAGE",
       "IMAGE_RECITATION",
       "UNEXPECTED_TOOL_CALL",
       "TOO_MANY_TOOL_CALLS",
       "MISSING_THOUGHT_SIGNATURE",
       "MALFORMED_RESPONSE",
       "ESCALATION",
       "PUP_LIMITED_DISABLED",
       "MODEL_ARMOR"};
  return std::ranges::find(failures, reason) != failures.end();
}

part text_part(std::string_view words, bool thought) {
  part made{std::string(words)};
  made.thought = thought;
  return made;
}

} // namespace

model_response partial_answer(std::string_view words, bool thought) {
  std::vector<part> parts;
  parts.push_back(text_part(words, thought));
  model_response piece{content("model", std::move(parts))};
  piece.partial = true;
  return piece;
}

json make_citation(std::string_view title, std::string_view uri) {
  auto citation = json::object();
  if (!title.empty())
    citation["title"] = title;
  if (!uri.empty())
    citation["uri"] = uri;
  return citation;
}

void answer_builder::add_text(std::string_view words, bool thought) {
  if (words.empty())
    return;
  if (is_open_ && said_.parts.back().thought == thought) {
    std::get<std::string>(said_.parts.back().body) += words;
    return;
  }
  said_.parts.push_back(text_part(words, thought));
  is_open_ = true;
}

void answer_builder::add_part(part made) {
  said_.parts.push_back(std::move(made));
  is_open_ = false;
}

result<void> answer_builder::add_call(std::string id,
                                      std::string name,
                                      std::string_view arguments,
                                      value extra) {
  if (name.empty())
    return error(errc::model_failed, "it called a function without a name");
  json args;
  if (arguments.find_first_not_of(wire_white_space) != std::string_view::npos) {
    const auto mended = without_lone_surrogates(arguments);
    auto parsed = parse_json(mended ? std::string_view(*mended) : arguments);
    if (!parsed || !(parsed->is_object() || parsed->is_null()))
      return error(
        errc::model_failed,
        fmt::format("it called function '{}' with malformed arguments: {}{}",
                    name,
                    parsed ? "they are no JSON object"
                           : parsed.error().message(),
                    reason_ == "MAX_TOKENS"
                      ? " (the answer was cut off by the limit of tokens)"
                      : ""));
    args = std::move(*parsed);
  }
  if (args.is_null())
    args = json::object();
  part made(function_call{std::move(id), std::move(name), std::move(args)});
  made.extra = std::move(extra);
  add_part(std::move(made));
  return {};
}

void answer_builder::finish(std::string_view reason, std::string_view message) {
  reason_ = reason;
  message_ = message;
}

void answer_builder::block(std::string_view code, std::string_view message) {
  code_ = code;
  message_ = message;
}

void answer_builder::set_usage(const token_usage& usage) {
  auto counts = json::object();
  const auto set = [&counts](const char* name, auto count) {
    if (count)
      counts[name] = *count;
  };
  set("promptTokenCount", usage.prompt);
  set("candidatesTokenCount", usage.candidates);
  set("thoughtsTokenCount", usage.thoughts);
  set("cachedContentTokenCount", usage.cached);
  auto total = usage.total;
  if (!total && usage.prompt && usage.candidates
      && *usage.prompt <= INT64_MAX - *usage.candidates)
    total = *usage.prompt + *usage.candidates;
  set("totalTokenCount", total);
  if (!counts.empty())
    set_field("usageMetadata", std::move(counts));
}

void answer_builder::set_citations(json citations) {
  if (!citations.empty())
    set_field("citationMetadata", {{"citations", std::move(citations)}});
}

void answer_builder::set_field(std::string_view name, json field) {
  fields_[std::string(name)] = std::move(field);
}

void answer_builder::set_text(std::string_view name, std::string_view field) {
  if (!field.empty())
    set_field(name, std::string(field));
}

model_response answer_builder::take() && {
  set_text("finishReason", reason_);
  if (code_.empty()
      && (is_failed_finish(reason_)
          || (said_.parts.empty() && !reason_.empty() && reason_ != "STOP")))
    code_ = reason_;
  if (!code_.empty()) {
    set_text("errorCode", code_);
    set_text("errorMessage", message_);
  }
  model_response whole{std::move(said_)};
  if (!fields_.empty())
    whole.extra = std::move(fields_);
  return whole;
}

} // namespace troupe
