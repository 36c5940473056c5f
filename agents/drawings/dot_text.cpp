#include "troupe/agents/drawings/dot_text.hpp"

#include "troupe/agents/drawings/line.hpp"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace troupe::drawings {

namespace {

constexpr std::size_t label_max = 48;
constexpr std::size_t tooltip_max = 400;

struct palette {
  std::string_view background;
  std::string_view frame;
  std::string_view fill;
  std::string_view line;
  std::string_view text;
  std::string_view quiet;                 // Text of edges.
  std::array<std::string_view, 8> states; // Fill of nodes, by `node_state`.
};

constexpr palette light_colours = {"#ffffff",
                                   "#f3f5f7",
                                   "#ffffff",
                                   "#5b6b7a",
                                   "#1b2733",
                                   "#4a5866",
                                   {"#ffffff",
                                    "#fff0c2",
                                    "#cfe4ff",
                                    "#ffdcb0",
                                    "#d3f0d6",
                                    "#e6e9ec",
                                    "#ffd3d0",
                                    "#e6e9ec"}};
constexpr palette dark_colours = {"#14191f",
                                  "#1d242c",
                                  "#26303a",
                                  "#8a9aaa",
                                  "#eef2f5",
                                  "#b4c0cc",
                                  {"#26303a",
                                   "#5a4a12",
                                   "#1f4a7a",
                                   "#6a3f0f",
                                   "#1f5130",
                                   "#181d23",
                                   "#6e2320",
                                   "#181d23"}};

std::string_view shape_of(node_kind kind) {
  constexpr std::array<std::string_view, 13> attributes = {
    "style=\"rounded,filled\"",        // llm
    "shape=box",                       // sequential
    "shape=parallelogram",             // parallel
    "shape=parallelogram",             // map
    "shape=ellipse",                   // loop
    "shape=component",                 // custom
    "shape=folder",                    // workflow
    "shape=circle",                    // start
    "shape=box",                       // function
    "shape=invtrapezium",              // join
    "style=\"rounded,filled,dashed\"", // tool
    "style=\"rounded,filled,dashed\"", // toolset
    "style=\"rounded,filled,dashed\"", // vendor_tool
  };
  return attributes.at(static_cast<std::size_t>(kind));
}

// A text in quotes. Graphviz reads entities of HTML in it, and sequences such
// as
// `\N` and `\n`; `backslash` stands for a backslash that is none of them.
std::string quoted_text(std::string_view text, std::string_view backslash) {
  std::string made = "\"";
  for (const char each : text)
    if (each == '"')
      made += "\\\"";
    else if (each == '\\')
      made += backslash;
    else if (each == '&')
      made += "&amp;";
    else if (each == '\n')
      made += "\\n";
    else
      made += each;
  return made + '"';
}

// Entities in labels are replaced before sequences are, so one would make a
// sequence.
std::string quoted_label(std::string_view text) {
  return quoted_text(text, "\\\\");
}

// Sequences in tooltips are replaced more than once, how often depends on the
// version of Graphviz. So a character that looks like a backslash stands there.
std::string quoted_tooltip(std::string_view text) {
  return quoted_text(text, "∖");
}

// The name of a node in the graph, which has no backslash. Only quotes are
// escaped there.
std::string quoted_id(std::string_view text) {
  std::string made = "\"";
  for (const char each : text)
    (made += each == '"' ? "\\" : "") += each;
  return made + '"';
}

std::string label_of(const node& shown) {
  auto label = line_of(shown.name, label_max);
  if (shown.kind == node_kind::start)
    return label;
  if (shown.kind != node_kind::tool)
    label += fmt::format("\n{}", to_string(shown.kind));
  for (const auto& each : shown.facts)
    if (!each.words.empty())
      label += '\n' + line_of(each.words, label_max);
  if (shown.state)
    label += '\n' + line_of(shown.state_words, label_max);
  return label;
}

class graph_writer {
public:
  explicit graph_writer(const palette& colours) : colours_(colours) {}

  std::string write(const node& root) {
    text_ = fmt::format(
      "digraph {} {{\n"
      "  graph [bgcolor=\"{}\", fontname=\"Helvetica,Arial,sans-serif\", "
      "pad=0.3, nodesep=0.4, ranksep=0.5]\n"
      "  node [shape=box, style=filled, fillcolor=\"{}\", color=\"{}\", "
      "fontcolor=\"{}\", fontname=\"Helvetica,Arial,sans-serif\", "
      "fontsize=12, margin=\"0.2,0.08\"]\n"
      "  edge [color=\"{}\", fontcolor=\"{}\", "
      "fontname=\"Helvetica,Arial,sans-serif\", fontsize=10, arrowsize=0.7]\n",
      quoted_id(root.id),
      colours_.background,
      colours_.fill,
      colours_.line,
      colours_.text,
      colours_.line,
      colours_.quiet);
    write_node(root, "  ");
    text_ += edges_;
    text_ += "}\n";
    return std::move(text_);
  }

private:
  // Writes a node, its frame, and the nodes beside it, once each.
  void write_node(const node& shown, const std::string& indent) {
    if (!written_.insert(shown.id).second)
      return;
    const bool has_frame = !shown.steps.empty();
    auto inner = indent;
    if (has_frame) {
      inner += "  ";
      text_ += fmt::format(
        "{}subgraph {} {{\n"
        "{}style=\"rounded,filled\" fillcolor=\"{}\" color=\"{}\"\n",
        indent,
        quoted_id("cluster " + shown.id),
        inner,
        colours_.frame,
        colours_.line);
    }
    text_ += fmt::format("{}{} [{}, label={}, tooltip={}{}]\n",
                         inner,
                         quoted_id(shown.id),
                         shape_of(shown.kind),
                         quoted_label(label_of(shown)),
                         quoted_tooltip(tooltip_of(shown)),
                         marks_of(shown));
    for (const auto& each : shown.steps)
      write_node(each, inner);
    if (has_frame)
      text_ += indent + "}\n";
    for (const auto& each : shown.edges)
      add_edge(id_at(shown, each.from),
               id_at(shown, each.to),
               words_of(each, shown.order),
               false);
    for (const auto& each : shown.uses) {
      write_node(each.what, indent);
      add_use(shown, each);
    }
  }

  std::string marks_of(const node& shown) const {
    std::string marks;
    if (shown.state)
      marks = fmt::format(
        ", fillcolor=\"{}\"",
        colours_.states.at(static_cast<std::size_t>(*shown.state)));
    if (shown.is_current)
      marks += ", penwidth=3";
    return marks;
  }

  static std::string tooltip_of(const node& shown) {
    return shown.description.empty() ? line_of(shown.name, label_max)
                                     : line_of(shown.description, tooltip_max);
  }

  static const std::string& id_at(const node& outer,
                                  std::optional<std::size_t> place) {
    return place ? outer.steps.at(*place).id : outer.id;
  }

  void add_use(const node& from, const use& shown) {
    const bool is_tool = shown.how == relation::tool;
    const bool is_part
      = shown.how == relation::transfer || shown.how == relation::task;
    add_edge(from.id,
             shown.what.id,
             is_tool ? std::string() : std::string(to_string(shown.how)),
             !is_part);
  }

  void add_edge(const std::string& from,
                const std::string& to,
                const std::string& words,
                bool is_dashed) {
    edges_ += fmt::format("  {} -> {}", quoted_id(from), quoted_id(to));
    if (!words.empty())
      edges_
        += fmt::format(" [label={}]", quoted_label(line_of(words, label_max)));
    if (is_dashed)
      edges_ += " [style=dashed]";
    edges_ += '\n';
  }

  const palette& colours_;
  std::string text_;
  std::string edges_;
  std::set<std::string> written_;
};

} // namespace

std::string to_dot_text(const node& root, bool dark) {
  return graph_writer(dark ? dark_colours : light_colours).write(root);
}

} // namespace troupe::drawings
