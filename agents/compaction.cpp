#include "troupe/agents/compaction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace troupe {

namespace {

constexpr std::size_t tool_bytes_max = 2'000;

// Cuts before a whole character of UTF-8.
std::string cut(std::string text) {
  if (text.size() <= tool_bytes_max)
    return text;
  auto end = tool_bytes_max;
  while ((static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  text.resize(end);
  return text + " ...";
}

std::string line_of(const std::string& author, const part& element) {
  if (const auto* words = element.text())
    return fmt::format("{}: {}\n", author, *words);
  if (const auto* call = element.call())
    return fmt::format("{} called tool `{}` with parameters: {}\n",
                       author,
                       call->name,
                       cut(to_text(call->args.data())));
  if (const auto* answer = element.response())
    return fmt::format("tool `{}` returned result: {}\n",
                       answer->name,
                       cut(to_text(answer->response.data())));
  return {};
}

bool is_question(const part& element) {
  constexpr std::string_view name = "adk_request_confirmation";
  return (element.call() != nullptr && element.call()->name == name)
         || (element.response() != nullptr && element.response()->name == name);
}

std::string lines_of(const std::string& author, const content& said) {
  std::string lines;
  for (const auto& element : said.parts)
    if (!element.thought && !is_question(element))
      lines += line_of(author, element);
  return lines;
}

error refusal(const char* why) {
  return {errc::invalid_argument, fmt::format("compaction: {}", why)};
}

} // namespace

std::string to_text(const summary_request& wanted) {
  std::string text;
  for (const auto& each : wanted.former)
    text += lines_of("summary", each);
  for (const auto& said : wanted.events)
    text += lines_of(said->author, said->content);
  return text;
}

result<void> check_compaction(const compaction_options& chosen) {
  if (!chosen.compaction_interval && !chosen.token_threshold)
    return refusal("set compaction_interval, token_threshold, or both");
  if (chosen.compaction_interval == std::uint64_t{0})
    return refusal("compaction_interval is 0; leave it unset for no window");
  if (chosen.token_threshold == std::uint64_t{0})
    return refusal("token_threshold is 0; leave it unset for no threshold");
  if (chosen.request_bytes_max == 0)
    return refusal("request_bytes_max is 0; no text would fit");
  if (!chosen.compaction_interval && chosen.overlap_size > 0)
    return refusal("overlap_size needs a compaction_interval");
  if (!chosen.token_threshold && chosen.event_retention_size > 0)
    return refusal("event_retention_size needs a token_threshold");
  return {};
}

} // namespace troupe
