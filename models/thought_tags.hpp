// Thoughts that a model says in tags before its answer: `<think>…</think>`, as
// servers leave them that do not take reasoning apart (vLLM and SGLang without
// a parser, llama.cpp with `--reasoning-format none`, gateways). Internal; not
// installed.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// Splits the words of one answer, which come in pieces of any size. Only a tag
/// at the very start opens a thought, which lasts until its closing tag; tags
/// after that are words.
class thought_tags {
public:
  /// Called with what is certain, in order.
  using listener = std::function<void(std::string_view words, bool thought)>;

  /// Holds back what may yet become a tag, and blanks around tags.
  void take(std::string_view words, const listener& say);

  /// From now on all is words: the thoughts have come otherwise.
  void close(const listener& say);

  /// What is held back; of a thought that was never closed, all is thought.
  void finish(const listener& say);

  /// Whether there was a tag.
  bool has_opened() const { return !closing_.empty(); }

private:
  enum class place { start, thought, behind, words };

  // Each gives whether there may be more to do.
  bool open(const listener& say);
  bool think(const listener& say);
  bool skip_blanks();

  place at_ = place::start;
  std::string held_;
  std::string_view closing_; // A literal.
};

/// Thought and answer of the words of a model whose template has opened the tag
/// for it (DeepSeek-R1), so that they have only its end, at the start of a
/// line. No thought: the words are the answer.
std::pair<std::string_view, std::string_view>
split_at_closing_tag(std::string_view words);

} // namespace troupe
