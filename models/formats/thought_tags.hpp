// Separates thoughts in tags before an answer: `<think>…</think>`. Servers that
// do not parse reasoning send them so (vLLM and SGLang without a parser,
// llama.cpp with `--reasoning-format none`, gateways). Internal.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// Splits the text of one answer, which comes in pieces of any size. Only a tag
/// at the very start opens a thought. The thought lasts until its closing tag;
/// later tags are text.
class thought_tags {
public:
  /// Called in order, as soon as the kind of a text is certain.
  using listener = std::function<void(std::string_view words, bool thought)>;

  /// Takes the next piece. Holds back text that may become a tag, and blanks
  /// around tags.
  void take(std::string_view words, const listener& say);

  /// Treats all further text as words, because thoughts have come in a field.
  void close(const listener& say);

  /// Releases the text that was held back. Text of an unclosed thought is
  /// thought.
  void finish(const listener& say);

  /// Returns true if there was an opening tag.
  bool has_opened() const { return !closing_.empty(); }

private:
  enum class state { start, thought, behind, words };

  // Each returns true if more can be done.
  bool open(const listener& say);
  bool think(const listener& say);
  bool skip_blanks();

  state at_ = state::start;
  std::string held_;
  std::string_view closing_; // A literal.
};

/// Splits text that has only a closing tag, at the start of a line, because the
/// model's template has opened the thought itself (DeepSeek-R1). Returns
/// thought and answer; without such a tag the thought is empty.
std::pair<std::string_view, std::string_view>
split_at_closing_tag(std::string_view words);

} // namespace troupe
