#include "troupe/agents/standard_tools.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// The texts of a message, except thoughts, in one line of text.
std::string joined_texts(const content& said) {
  std::string joined;
  for (const auto& each : said.parts)
    if (const auto* text = each.text();
        text != nullptr && !text->empty() && !each.thought) {
      if (!joined.empty())
        joined += ' ';
      joined += *text;
    }
  return joined;
}

std::string block_of(const std::vector<memory_entry>& found) {
  std::string block
    = "Parts of earlier conversations with this user follow. They may help to "
      "answer the present message.\n<PAST_CONVERSATIONS>\n";
  for (const auto& each : found) {
    block += fmt::format("Time: {}\n", time_text(each));
    if (!each.author.empty())
      block += fmt::format("{}: ", each.author);
    block += fmt::format("{}\n", joined_texts(each.content));
  }
  return block + "</PAST_CONVERSATIONS>\n";
}

bool is_answer(const content& said) {
  return std::ranges::any_of(
    said.parts, [](const part& each) { return each.response() != nullptr; });
}

// Stands before the user's message, but behind the answers of tools. So the
// conversation before it is the same in each request, and vendors can cache it.
task<void> add_memories(readonly_context& context, model_request& request) {
  const auto query = joined_texts(context.user_content());
  if (query.empty())
    co_return;
  const auto found = (co_await context.search_memory(query)).value();
  if (found.empty())
    co_return;
  auto& contents = request.contents;
  const bool is_first = !contents.empty() && contents.back()->role == "user"
                        && !is_answer(*contents.back());
  content block("user", {});
  block.parts.emplace_back(block_of(found));
  contents.insert(is_first ? contents.end() - 1 : contents.end(),
                  std::make_shared<const content>(std::move(block)));
}

} // namespace

tool preload_memory() {
  return tool({.name = "preload_memory",
               .description = "Shows earlier conversations with the user to "
                              "the model, without a call.",
               .prepare = add_memories});
}

} // namespace troupe
