#include "review_tools.hpp"

#include "text_analysis.hpp"
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace review {

namespace {

using troupe::json;
using troupe::tool_context;

constexpr std::size_t shown_max = 12;

std::string text_of(const tool_context& context) {
  return context.state().get<std::string>("temp:text");
}

/// `"1 word"`, `"2 words"`.
std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// The first few elements, one line each.
template <class Range, class Line>
std::string listed(const Range& range, Line line) {
  std::string text;
  std::size_t count = 0;
  for (const auto& element : range)
    if (count++ < shown_max)
      text += "\n  " + line(element);
  if (count > shown_max)
    text += fmt::format("\n  and {} more", count - shown_max);
  return text;
}

std::string shortened(const std::string& text) {
  constexpr std::size_t bytes_max = 72;
  if (text.size() <= bytes_max)
    return text;
  const auto end = text.find_last_of(' ', bytes_max);
  return end == std::string::npos ? text : text.substr(0, end) + " …";
}

json read_outline(const json& /*args*/, tool_context& context) {
  const auto headings = outline(text_of(context));
  context.state().set("headings",
                      counted(headings.size(), "heading")
                        + listed(headings, [](const heading& shown) {
                            const std::string indent(2 * (shown.level - 1),
                                                     ' ');
                            return indent + shown.title.text;
                          }));
  return {{"headings", headings.size()}};
}

json word_statistics(const json& /*args*/, tool_context& context) {
  const auto text = text_of(context);
  auto all = words(text);
  const auto parts = sentences(text);
  std::size_t in_sentences = 0;
  for (const auto& part : parts)
    in_sentences += part.word_count;
  const auto total = all.size();
  std::ranges::sort(all);
  const auto distinct
    = std::distance(all.begin(), std::unique(all.begin(), all.end()));
  const auto per_sentence
    = parts.empty()
        ? 0.0
        : static_cast<double>(in_sentences) / static_cast<double>(parts.size());
  context.state().set(
    "statistics",
    fmt::format("{}, {} of them distinct; {} of prose, {:.1f} words each",
                counted(total, "word"),
                distinct,
                counted(parts.size(), "sentence"),
                per_sentence));
  return {
    {"words", total}, {"distinct", distinct}, {"sentences", parts.size()}};
}

json check_links(const json& /*args*/, tool_context& context) {
  const auto broken = broken_links(
    text_of(context), context.state().get<std::string>("temp:folder"));
  context.state().set("broken_link_count", broken.size());
  context.state().set("links",
                      broken.empty()
                        ? std::string("all lead somewhere")
                        : counted(broken.size(), "broken link")
                            + listed(broken, [](const located& link) {
                                return fmt::format(
                                  "line {}: {}", link.line, link.text);
                              }));
  return {{"broken", broken.size()}};
}

json longest_sentences(const json& /*args*/, tool_context& context) {
  auto& state = context.state();
  auto all = sentences(text_of(context));
  const auto words_max = state.get<std::size_t>("user:sentence_words_max", 30);
  const auto shown = state.get<std::size_t>("user:sentences_shown", 3);
  std::erase_if(all, [words_max](const sentence& each) {
    return each.word_count <= words_max;
  });
  std::ranges::stable_sort(all, std::ranges::greater(), &sentence::word_count);
  const auto total = all.size();
  all.resize(std::min(total, shown));
  state.set("long_sentence_count", total);
  state.set("sentences",
            fmt::format("{} over the limit of {}{}",
                        counted(total, "sentence"),
                        counted(words_max, "word"),
                        listed(all, [](const sentence& each) {
                          return fmt::format("line {}, {} words: {}",
                                             each.words.line,
                                             each.word_count,
                                             shortened(each.words.text));
                        })));
  return {{"over_limit", total}};
}

json repeated_words(const json& /*args*/, tool_context& context) {
  const auto text = text_of(context);
  const auto doubled = doubled_words(text);
  auto frequent = std::string();
  for (const auto& [word, count] : frequent_words(text, 5))
    frequent
      += fmt::format("{}{} ({})", frequent.empty() ? "" : ", ", word, count);
  context.state().set("doubled_word_count", doubled.size());
  context.state().set("repetitions",
                      fmt::format("{} in a row; most frequent: {}{}",
                                  counted(doubled.size(), "doubled word"),
                                  frequent.empty() ? "none" : frequent,
                                  listed(doubled, [](const located& word) {
                                    return fmt::format("line {}: {} {}",
                                                       word.line,
                                                       word.text,
                                                       word.text);
                                  })));
  return {{"doubled", doubled.size()}};
}

/// Weighs the counts of the reviewers, and counts the document for the app and
/// its reader.
json merge_findings(const json& /*args*/, tool_context& context) {
  auto& state = context.state();
  std::size_t problems = 0;
  for (const auto* key :
       {"broken_link_count", "long_sentence_count", "doubled_word_count"})
    problems += state.get<std::size_t>(key);
  state.set("verdict",
            problems == 0 ? std::string("nothing to change")
                          : counted(problems, "place") + " to look at");
  state.add("app:documents_reviewed", 1);
  state.add("user:documents_reviewed", 1);
  return {{"problems", problems}};
}

troupe::tool make_tool(std::string name,
                       std::string description,
                       troupe::tool_function run) {
  return troupe::tool({.name = std::move(name),
                       .description = std::move(description),
                       .run = std::move(run)});
}

} // namespace

troupe::tool_registry make_tools() {
  return troupe::make_registry(
    {make_tool("read_outline", "Finds the headings.", read_outline),
     make_tool(
       "word_statistics", "Counts words and sentences.", word_statistics),
     make_tool("check_links", "Finds broken relative links.", check_links),
     make_tool("longest_sentences", "Finds long sentences.", longest_sentences),
     make_tool("repeated_words", "Finds repeated words.", repeated_words),
     make_tool("merge_findings", "Weighs all findings.", merge_findings)});
}

} // namespace review
