#include "troupe/models/formats/failure.hpp"

#include "troupe/models/formats/wire_format.hpp"

#include <fmt/format.h>
#include <utf8.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t read_bytes_max = std::size_t{64} << 10U;

bool is_blank(char next) {
  return static_cast<unsigned char>(next) <= ' ' || next == '\x7f';
}

// Returns the first of these fields that is not empty. They are names of
// Gemini, OpenAI, Anthropic and servers compatible with OpenAI.
template <std::size_t Count>
std::string_view first_text(const wire_node& said,
                            const std::array<std::string_view, Count>& names) {
  for (const auto name : names)
    if (const auto field = said[name]; field.is_text() && !field.text().empty())
      return field.text();
  return {};
}

void replace_all(std::string& text,
                 std::string_view from,
                 std::string_view with) {
  for (auto at = text.find(from); at != std::string::npos;
       at = text.find(from, at + with.size()))
    text.replace(at, from.size(), with);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char next) {
    return static_cast<char>(std::tolower(next));
  });
  return lower;
}

// Returns the end of the tag at `at`, or the end of the element if its content
// is not shown.
std::size_t tag_end(std::string_view lower, std::size_t at) {
  for (const std::string_view name : {"script", "style", "head"}) {
    // The title of a page is skipped with its head, because the body repeats
    // it.
    if (!lower.substr(at + 1).starts_with(name))
      continue;
    const auto close = lower.find(fmt::format("</{}", name), at);
    if (close != std::string_view::npos)
      at = close;
    break;
  }
  return lower.find('>', at);
}

std::string without_tags(std::string_view page) {
  const auto lower = lower_case(page);
  std::string words;
  std::size_t at = 0;
  while (at < page.size()) {
    const auto tag = page.find('<', at);
    words += page.substr(at, tag - at);
    if (tag == std::string_view::npos)
      break;
    words += ' ';
    const auto end = tag_end(lower, tag);
    if (end == std::string_view::npos)
      break;
    at = end + 1;
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6>
    entities{{{"&nbsp;", " "},
              {"&lt;", "<"},
              {"&gt;", ">"},
              {"&quot;", "\""},
              {"&#39;", "'"},
              {"&amp;", "&"}}};
  for (const auto& [from, with] : entities)
    replace_all(words, from, with);
  return words;
}

// Gemini puts the error of a stream that did not begin into a list.
std::string_view without_brackets(std::string_view text) {
  while (!text.empty() && (text.front() == '[' || is_blank(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ']' || is_blank(text.back())))
    text.remove_suffix(1);
  return text;
}

std::int64_t number_of(const wire_node& field) {
  if (!field.is_text())
    return field.count().value_or(0);
  std::int64_t number = 0;
  const auto text = field.text();
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Returns true if the failure may pass. A stream that fails has already sent
// its status, so a failure that would have been 429, 500, 503 or 529 is
// described by a code or a name: of Anthropic ("Errors"), Gemini
// (google.rpc.Code), OpenAI and llama.cpp.
bool tells_of_passing(const wire_node& said, int depth) {
  constexpr std::array<std::string_view, 11> names = {"overloaded_error",
                                                      "api_error",
                                                      "rate_limit_error",
                                                      "timeout_error",
                                                      "UNAVAILABLE",
                                                      "INTERNAL",
                                                      "RESOURCE_EXHAUSTED",
                                                      "DEADLINE_EXCEEDED",
                                                      "server_error",
                                                      "rate_limit_exceeded",
                                                      "unavailable_error"};
  if (!said.is_object() || depth > 2)
    return false;
  for (const std::string_view field : {"code", "status", "type"})
    if (const auto told = said[field];
        (told.is_text() && std::ranges::find(names, told.text()) != names.end())
        || may_pass(number_of(told)))
      return true;
  return tells_of_passing(said["error"], depth + 1);
}

} // namespace

std::string failure_line(std::string_view text, std::string_view key) {
  std::string whole;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(whole));
  // Masks the key before anything is cut off or joined, so that no part of it
  // remains.
  if (!key.empty())
    replace_all(whole, key, "***");
  std::string line;
  for (const char next : whole) {
    if (!is_blank(next))
      line += next;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  if (line.ends_with(' '))
    line.pop_back();
  if (line.size() <= failure_bytes_max)
    return line;
  constexpr std::string_view ellipsis = "\xE2\x80\xA6";
  auto size = failure_bytes_max - ellipsis.size();
  while ((static_cast<unsigned char>(line[size]) & 0xC0U) == 0x80U)
    --size; // Cuts between characters.
  line.resize(size);
  line += ellipsis;
  return line;
}

// Handles {"error": {"code", "message", "status"}} of Gemini, {"error":
// {"message", "type", "code"}} of OpenAI, {"error": {"type", "message"}} of
// Anthropic, {"error": string} of Ollama's own interface, {"message", "type",
// "code"} of vLLM before 0.10, and {"detail": string} of FastAPI.
std::string failure_text(const wire_node& said) {
  if (!said.is_object())
    return said.is_text() ? std::string(said.text()) : std::string();
  if (const auto inner = said["error"])
    if (auto text = failure_text(inner); !text.empty())
      return text;
  const auto code = first_text<3>(said, {"status", "code", "type"});
  const auto message = first_text<3>(said, {"message", "detail", "msg"});
  if (code.empty() || message.empty() || code == message)
    return std::string(message.empty() ? code : message);
  return fmt::format("{}: {}", code, message);
}

bool may_pass(std::int64_t status) {
  return status == 408 || status == 429 || status >= 500;
}

error bad_answer(std::string_view why) {
  return {errc::model_failed, std::string(why)};
}

error told_failure(const wire_node& said) {
  return {tells_of_passing(said, 0) ? errc::busy : errc::model_failed,
          failure_text(said)};
}

error broken_off() {
  return {errc::busy, "the stream broke off before its end"};
}

std::string wire_format::failure_of(int status,
                                    std::string_view body,
                                    std::string_view key) const {
  while (!body.empty() && is_blank(body.front()))
    body.remove_prefix(1);
  std::string text;
  wire_document document;
  if (const auto said = document.parse(without_brackets(body)))
    text = failure_text(*said);
  else if (body.starts_with('<'))
    text = without_tags(body.substr(0, read_bytes_max));
  if (text.empty())
    text = body.substr(0, read_bytes_max);
  auto line = failure_line(text, key);
  return line.empty() ? fmt::format("no reason given (status {})", status)
                      : line;
}

wire_format_ptr
wire_format::format_for(const std::vector<vendor_tool>& /*wanted*/,
                        const wire_options& /*asked*/) const {
  return nullptr;
}

std::optional<wire_options>
wire_format::without_refused(int /*status*/,
                             std::string_view /*body*/,
                             const wire_options& /*asked*/) const {
  return std::nullopt;
}

std::optional<wire_options>
wire_format::continued(const model_response& /*answer*/,
                       const wire_options& /*asked*/) const {
  return std::nullopt;
}

result<void> wire_format::check_stray(std::string_view text) const {
  wire_document document;
  const auto said = document.parse(without_brackets(text));
  return said && (*said)["error"] ? told_failure(*said) : result<void>();
}

} // namespace troupe
