// Builds a model's answer from a vendor's form: parts in order, and the wire
// fields of ADK's LlmResponse. Internal.

#pragma once

#include "troupe/models/formats/document.hpp"
#include "troupe/models/model.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Token counts with the meaning of ADK's `usageMetadata`.
struct token_usage {
  std::optional<std::int64_t> prompt;
  /// Includes the thoughts, as in ADK for all vendors but Gemini.
  std::optional<std::int64_t> candidates;
  std::optional<std::int64_t> thoughts;
  std::optional<std::int64_t> cached;
  std::optional<std::int64_t> total;
};

/// Makes one piece of a streamed answer.
model_response partial_answer(std::string_view words, bool thought);

/// Makes a citation with the fields of ADK; empty text is left out.
json make_citation(std::string_view title, std::string_view uri);

class answer_builder {
public:
  /// Adds text. Joins it to the last part if that has the same kind, words or
  /// thoughts.
  void add_text(std::string_view words, bool thought);

  /// Adds a part. Later text is not joined to it.
  void add_part(part made);

  /// Adds a function call. Blank arguments and null count as `{}`; half a
  /// surrogate pair in them is read as U+FFFD. `extra` are further fields of
  /// the part. Fails with `errc::model_failed`, naming the function, if
  /// `arguments` is not a JSON object that may enter content.
  result<void> add_call(std::string id,
                        std::string name,
                        std::string_view arguments,
                        value extra = {});

  /// Returns the number of parts so far.
  std::size_t parts() const { return said_.parts.size(); }

  /// Sets the finish reason, by ADK's name (`"STOP"`); empty if unknown.
  void finish(std::string_view reason, std::string_view message = {});

  /// Marks the answer as refused. The arguments become `errorCode` and
  /// `errorMessage`.
  void block(std::string_view code, std::string_view message);

  std::string_view finish_reason() const { return reason_; }

  void set_usage(const token_usage& usage);
  /// Does nothing if the list is empty.
  void set_citations(json citations);
  void set_field(std::string_view name, json field);
  /// Sets a text field; does nothing if `field` is empty.
  void set_text(std::string_view name, std::string_view field);

  /// Returns the answer. `errorCode` becomes the finish reason if the answer
  /// has no parts, or if the reason is a known one of a filter or of a failed
  /// model. An answer with parts and an unknown reason is an ordinary one. The
  /// rules are otherwise those of ADK's LlmResponse.create, and of its
  /// StreamingResponseAggregator for answers with parts.
  model_response take() &&;

private:
  content said_{"model", {}};
  bool is_open_ = false; // True if text may be joined to the last part.
  std::string reason_;
  std::string message_;
  std::string code_;
  json fields_ = json::object();
};

} // namespace troupe
