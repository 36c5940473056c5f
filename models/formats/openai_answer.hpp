// Collects an answer of chat completions, whole (`message`) or in pieces
// (`delta`). Internal.

#pragma once

#include "troupe/models/formats/answer_builder.hpp"
#include "troupe/models/formats/document.hpp"
#include "troupe/models/formats/thought_tags.hpp"
#include "troupe/models/wire/cited_pages.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class openai_answer {
public:
  /// `splits_thoughts` enables tagged thoughts. At OpenAI itself such tags are
  /// part of the text, because the model was asked for them.
  explicit openai_answer(bool splits_thoughts)
    : splits_thoughts_(splits_thoughts) {}

  /// Takes a whole answer or one piece from `document`. Text of a piece is also
  /// added to `pieces`, unless that is null. Fails with `errc::model_failed`,
  /// also on an error in place of an answer; with `errc::busy` if that error
  /// may pass.
  result<void> take(const wire_node& document,
                    std::string_view field,
                    std::vector<model_response>* pieces);

  bool has_ended() const { return has_ended_; }

  void end() { has_ended_ = true; }

  /// Returns the whole answer. Fails with `errc::model_failed` on a call whose
  /// arguments are not JSON.
  result<model_response> whole() &&;

private:
  struct call_pieces {
    std::optional<std::int64_t> index;
    std::string id;
    std::string name;
    std::string arguments;
    json extra_content;
  };

  struct call_piece {
    std::optional<std::int64_t> index;
    // Empty if the piece has none; so are the other two.
    std::string_view id;
    std::string_view name;
    std::string_view arguments;
  };

  result<void> take_choice(const wire_node& choice,
                           std::string_view field,
                           std::vector<model_response>* pieces);
  void take_words(const wire_node& said,
                  bool thought,
                  std::vector<model_response>* pieces);
  void say(std::string_view words,
           bool thought,
           std::vector<model_response>* pieces);
  void take_thoughts(const wire_node& said,
                     std::vector<model_response>* pieces);
  void split_words();
  void add_thoughts(answer_builder& answer);
  result<void> take_call(const wire_node& said);
  call_pieces& call_for(const call_piece& piece);
  static bool begins(const call_piece& piece, const call_pieces& last);
  void take_citation(const wire_node& said);

  const bool splits_thoughts_;
  thought_tags tags_;
  std::string model_;
  std::string thoughts_;
  std::string_view
    thoughts_field_; // A literal. Empty if no thoughts came in a field.
  std::string words_;
  std::string refusal_;
  std::string reason_;
  std::vector<call_pieces> calls_;
  token_usage usage_;
  cited_pages cited_;
  bool has_ended_ = false;
};

} // namespace troupe
