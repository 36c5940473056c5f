#include "troupe/models/formats/thought_tags.hpp"

#include "troupe/core/support/blank.hpp"

#include <algorithm>
#include <array>

namespace troupe {

namespace {

struct tag_pair {
  std::string_view opening;
  std::string_view closing;
};

constexpr std::array<tag_pair, 2> tags
  = {{{"<think>", "</think>"}, {"<thinking>", "</thinking>"}}};

std::string_view without_leading_blanks(std::string_view text) {
  text.remove_prefix(
    std::min(text.find_first_not_of(wire_white_space), text.size()));
  return text;
}

// Returns the number of bytes at the end of `text` that may be the start of
// `tag`.
std::size_t partial_tag_size(std::string_view text, std::string_view tag) {
  auto size = std::min(text.size(), tag.size() - 1);
  while (!tag.starts_with(text.substr(text.size() - size)))
    --size;
  return size;
}

} // namespace

void thought_tags::take(std::string_view words, const listener& say) {
  if (at_ == state::words) {
    say(words, false);
    return;
  }
  held_ += words;
  while ((at_ == state::start && open(say))
         || (at_ == state::thought && think(say))
         || (at_ == state::behind && skip_blanks())) {
  }
  if (at_ == state::words)
    finish(say);
}

bool thought_tags::open(const listener& say) {
  const auto said = without_leading_blanks(held_);
  if (said.empty())
    return false;
  for (const auto& [opening, closing] : tags) {
    if (said.starts_with(opening)) {
      closing_ = closing;
      at_ = state::thought;
      held_ = said.substr(opening.size());
      return true;
    }
    if (opening.starts_with(said))
      return false;
  }
  close(say);
  return false;
}

bool thought_tags::think(const listener& say) {
  const auto end = held_.find(closing_);
  if (end == std::string::npos) {
    const auto size = held_.size() - partial_tag_size(held_, closing_);
    say(std::string_view(held_).substr(0, size), true);
    held_.erase(0, size);
    return false;
  }
  say(std::string_view(held_).substr(0, end), true);
  held_.erase(0, end + closing_.size());
  at_ = state::behind;
  return true;
}

bool thought_tags::skip_blanks() {
  held_.erase(0, held_.size() - without_leading_blanks(held_).size());
  if (!held_.empty())
    at_ = state::words;
  return false;
}

void thought_tags::close(const listener& say) {
  if (at_ == state::start) {
    at_ = state::words;
    finish(say);
  }
}

void thought_tags::finish(const listener& say) {
  say(std::exchange(held_, {}), at_ == state::thought);
}

std::pair<std::string_view, std::string_view>
split_at_closing_tag(std::string_view words) {
  auto first = std::string_view::npos;
  std::size_t size = 0;
  for (const auto& [opening, closing] : tags) {
    for (auto at = words.find(closing); at < first;
         at = words.find(closing, at + 1)) {
      const auto before = words.find_last_not_of(" \t", at - 1);
      if (at > 0 && before != std::string_view::npos && words[before] != '\n')
        continue; // The tag is inside a sentence.
      first = at;
      size = closing.size();
    }
  }
  const auto thought = words.substr(0, first);
  // A closing tag with its opening tag in the text is part of the text.
  if (first == std::string_view::npos
      || std::ranges::any_of(tags, [thought](const tag_pair& each) {
           return thought.find(each.opening) != std::string_view::npos;
         }))
    return {{}, words};
  return {thought, without_leading_blanks(words.substr(first + size))};
}

} // namespace troupe
