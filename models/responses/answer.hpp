// Collects an answer of OpenAI's Responses API: its items, whole or one by one.
// Internal.

#pragma once

#include "troupe/models/formats/answer_builder.hpp"
#include "troupe/models/formats/document.hpp"
#include "troupe/models/wire/grounding.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

class responses_answer {
public:
  /// Takes a whole response. Items that `take_item` has taken stay, because not
  /// every server repeats them at the end of a stream. Fails with
  /// `errc::model_failed`, also on a response that has failed; with
  /// `errc::busy` if that failure may pass.
  result<void> take(const wire_node& response);

  /// Takes an item that is complete, and its place in the answer. An item
  /// without a place comes last.
  result<void> take_item(const wire_node& item,
                         std::optional<std::int64_t> place);

  bool has_ended() const { return has_ended_; }

  /// Returns the whole answer. Fails with `errc::model_failed` on a call whose
  /// arguments are not JSON.
  result<model_response> whole() &&;

private:
  result<void> add_item(json item, answer_builder& answer);
  void add_message(const json& item, answer_builder& answer);
  void add_work(json item, answer_builder& answer);

  std::map<std::int64_t, json> items_; // By their places.
  std::string model_;
  std::string reason_;
  std::string refusal_;
  token_usage usage_;
  json citations_ = json::array();
  grounding sources_;
  bool has_ended_ = false;
};

} // namespace troupe
