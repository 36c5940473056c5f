#include "troupe/cli/terminal/event_text.hpp"

#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/core/support/text_in.hpp"

#include <fmt/format.h>

#include <string_view>

namespace troupe::cli {

namespace {

constexpr std::size_t shown_bytes_max = 160;

std::string shortened(std::string_view text) {
  const auto kept = shorten(text, shown_bytes_max);
  return fmt::format("{}{}", kept, kept.size() < text.size() ? "…" : "");
}

std::string compact(const value& shown) {
  return shortened(troupe::to_text(shown.data()));
}

// Further lines are indented, so that they do not look like those of another
// author.
std::string line_of(const event& said, std::string_view what) {
  while (what.ends_with('\n') || what.ends_with('\r'))
    what.remove_suffix(1);
  return fmt::format(
    "{}: {}\n", visible_text(said.author, " "), visible_text(what, "\n  "));
}

json object_in(const json& object, const char* name) {
  return object.is_object() ? object.value(name, json()) : json();
}

// The work of a tool that the model's vendor runs; empty for another part.
std::string vendor_work(const json& body) {
  if (const auto code = object_in(body, "executableCode"); code.is_object())
    return fmt::format("-> code: {}", shortened(text_in(code, "code")));
  if (const auto output = object_in(body, "codeExecutionResult");
      output.is_object())
    return fmt::format(
      "<- {}{}",
      text_in(output, "outcome") == "OUTCOME_OK" ? "code: " : "code failed: ",
      shortened(text_in(output, "output")));
  if (const auto call = object_in(body, "toolCall"); call.is_object())
    return fmt::format(
      "-> {}({})", text_in(call, "toolType"), compact(object_in(call, "args")));
  if (const auto answer = object_in(body, "toolResponse"); answer.is_object())
    return fmt::format("<- {} {}",
                       text_in(answer, "toolType"),
                       compact(object_in(answer, "response")));
  return {};
}

} // namespace

std::string show_words(const event& said) {
  const auto words = said.text();
  return words.empty() ? std::string() : line_of(said, words);
}

std::string show_work(const event& said) {
  std::string lines;
  const auto line
    = [&](std::string_view what) { lines += line_of(said, what); };
  for (const auto& element : said.content.parts) {
    if (const auto* call = element.call())
      line(fmt::format("-> {}({})", call->name, compact(call->args)));
    else if (const auto* answer = element.response())
      line(fmt::format("<- {} {}", answer->name, compact(answer->response)));
    else if (const auto* body = std::get_if<value>(&element.body))
      if (const auto work = vendor_work(body->data()); !work.empty())
        line(work);
  }
  for (const auto& chunk :
       object_in(object_in(said.extra.data(), "groundingMetadata"),
                 "groundingChunks")) {
    const auto page = object_in(chunk, "web");
    const auto title = text_in(page, "title");
    if (const auto uri = text_in(page, "uri"); !uri.empty())
      line(
        fmt::format("   source: {}{}{}", title, title.empty() ? "" : " ", uri));
  }
  for (const auto& done : said.actions.state_delta.operations()) {
    const auto key = visible_text(join_key(done.where, done.name), " ");
    line(done.kind == operation_kind::erase
           ? fmt::format("   {} erased", key)
           : fmt::format("   {} = {}", key, compact(done.operand)));
  }
  if (said.actions.escalate)
    line("   escalates");
  return lines;
}

std::string show_failure(const event& said) {
  const auto code = said.field("errorCode");
  if (code.empty())
    return {};
  const auto why = said.field("errorMessage");
  return line_of(
    said, fmt::format("failed, {}{}{}", code, why.empty() ? "" : ": ", why));
}

std::string show(const event& said) {
  return show_words(said) + show_failure(said) + show_work(said);
}

} // namespace troupe::cli
