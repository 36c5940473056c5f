#include "troupe/agents/standard_tools.hpp"
#include "troupe/agents/turns/shown_memory.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace troupe {

namespace {

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
  auto searched = co_await context.search_memory(query);
  const auto found = shown_memories(std::move(searched).value());
  if (found.empty())
    co_return;
  auto& contents = request.contents;
  const bool is_first = !contents.empty() && contents.back()->role == "user"
                        && !is_answer(*contents.back());
  content block("user", {});
  block.parts.emplace_back(memory_block(found));
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
