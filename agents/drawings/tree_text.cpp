#include "troupe/agents/drawings/tree_text.hpp"

#include "troupe/agents/drawings/line.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace troupe::drawings {

namespace {

constexpr std::size_t name_max = 80;
constexpr std::size_t fact_max = 120;

std::string step_words(flow order, std::size_t index) {
  switch (order) {
  case flow::in_order:
    return fmt::format("{}. ", index + 1);
  case flow::at_once:
    return "lane: ";
  case flow::per_item:
    return "each item: ";
  case flow::routed:
    break;
  }
  return {};
}

// The kind is left out where the words before the name tell it.
std::string use_words(const use& shown) {
  if (shown.what.kind == node_kind::toolset
      || shown.what.kind == node_kind::vendor_tool)
    return fmt::format("{}: ", to_string(shown.what.kind));
  return fmt::format("{}: ", to_string(shown.how));
}

std::string brackets_of(const node& shown, bool with_kind) {
  std::string words;
  const auto add = [&words](std::string_view more) {
    words += (words.empty() ? "" : ", ") + line_of(more, fact_max);
  };
  if (with_kind)
    add(to_string(shown.kind));
  for (const auto& each : shown.facts)
    if (!each.words.empty())
      add(each.words);
  if (shown.state)
    add(shown.state_words);
  if (shown.is_repeated)
    add("drawn above");
  return words.empty() ? words : fmt::format(" ({})", words);
}

class tree_writer {
public:
  void write(const node& root) {
    write_node(root, "", brackets_of(root, true));
    write_below(root, "");
  }

  std::string take() { return std::move(text_); }

private:
  void write_node(const node& shown,
                  std::string_view words,
                  std::string_view brackets,
                  std::string_view routes = {}) {
    text_ += words;
    text_ += line_of(shown.name, name_max);
    text_ += brackets;
    text_ += routes;
    text_ += '\n';
  }

  void write_below(const node& outer, const std::string& indent) {
    const auto count = outer.steps.size() + outer.uses.size();
    std::size_t written = 0;
    const auto begin = [&] {
      const bool is_last = ++written == count;
      text_ += indent + (is_last ? "└─ " : "├─ ");
      return indent + (is_last ? "   " : "│  ");
    };
    for (const auto& each : outer.uses) {
      const auto below = begin();
      const bool is_agent = each.how != relation::tool;
      write_node(each.what, use_words(each), brackets_of(each.what, is_agent));
      write_below(each.what, below);
    }
    for (std::size_t index = 0; index < outer.steps.size(); ++index) {
      const auto& step = outer.steps[index];
      const auto below = begin();
      write_node(step,
                 step_words(outer.order, index),
                 brackets_of(step, true),
                 outer.order == flow::routed ? routes_from(outer, index) : "");
      write_below(step, below);
    }
  }

  // The edges that leave a step: " → review on ok, failure by default".
  static std::string routes_from(const node& outer, std::size_t index) {
    std::string routes;
    for (const auto& each : outer.edges) {
      if (each.from != std::optional(index) || !each.to)
        continue;
      routes += routes.empty() ? " → " : ", ";
      routes += line_of(outer.steps.at(*each.to).name, name_max);
      if (const auto words = words_of(each, outer.order); !words.empty())
        routes += ' ' + line_of(words, fact_max);
    }
    return routes;
  }

  std::string text_;
};

} // namespace

std::string to_tree_text(const node& root) {
  tree_writer writer;
  writer.write(root);
  return writer.take();
}

} // namespace troupe::drawings
