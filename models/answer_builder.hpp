// A model's answer on its way from a vendor's form to troupe's: parts in their
// order, and the wire fields that ADK's LlmResponse has. Internal; not
// installed.

#pragma once

#include "troupe/models/model.hpp"
#include "troupe/models/wire_document.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Counts as ADK's `usageMetadata` has them.
struct token_usage {
  std::optional<std::int64_t> prompt;
  /// With the thoughts, as ADK has it for all vendors but Gemini.
  std::optional<std::int64_t> candidates;
  std::optional<std::int64_t> thoughts;
  std::optional<std::int64_t> cached;
  std::optional<std::int64_t> total;
};

/// One piece of a streamed answer.
model_response partial_answer(std::string_view words, bool thought);

class answer_builder {
public:
  /// Joins what belongs together: words behind words, thoughts behind thoughts.
  void add_text(std::string_view words, bool thought);

  /// A part that nothing is joined to.
  void add_part(part made);

  /// Fails with `errc::model_failed`, naming the function, if `arguments` is no
  /// JSON object that may enter content. Blank arguments and null are `{}`.
  /// `extra` are further fields of the part.
  result<void> add_call(std::string id,
                        std::string name,
                        std::string_view arguments,
                        value extra = {});

  /// Why the answer ended, by ADK's name: `"STOP"`. Empty: unknown.
  void finish(std::string_view reason, std::string_view message = {});

  /// That it was refused: both become `errorCode` and `errorMessage`.
  void block(std::string_view code, std::string_view message);

  std::string_view finish_reason() const { return reason_; }

  void set_usage(const token_usage& usage);
  void set_field(std::string_view name, json field);
  /// Nothing is set if `field` is nothing.
  void set_text(std::string_view name, std::string_view field);

  /// `errorCode` is the finish reason of an answer that has no parts or was
  /// stopped for what it says (ADK's LlmResponse.create, and its
  /// StreamingResponseAggregator for those with parts).
  model_response take() &&;

private:
  content said_{"model", {}};
  bool is_open_ = false; // Whether words may be joined to the last part.
  std::string reason_;
  std::string message_;
  std::string code_;
  json fields_ = json::object();
};

} // namespace troupe
