#include "troupe/mcp/client/tool_answer.hpp"

#include "troupe/core/support/base64.hpp"
#include "troupe/core/support/text_in.hpp"
#include "troupe/mcp/client/message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace troupe::mcp {

namespace {

error failed(std::string why) {
  return {errc::tool_failed, std::move(why)};
}

std::string extension_of(std::string_view mime_type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> known
    = {{{"image/png", ".png"},
        {"image/jpeg", ".jpg"},
        {"image/gif", ".gif"},
        {"image/webp", ".webp"},
        {"image/svg+xml", ".svg"},
        {"audio/wav", ".wav"},
        {"audio/mpeg", ".mp3"},
        {"application/pdf", ".pdf"},
        {"text/plain", ".txt"}}};
  const auto found = std::ranges::find(
    known, mime_type, &std::pair<std::string_view, std::string_view>::first);
  return found != known.end() ? std::string(found->second) : ".bin";
}

bool is_for_models(std::string_view mime_type) {
  constexpr std::array<std::string_view, 4> known
    = {"image/png", "image/jpeg", "image/gif", "image/webp"};
  return std::ranges::find(known, mime_type) != known.end();
}

// Text of all text blocks.
std::string text_of_blocks(const json& blocks) {
  std::string joined;
  for (const auto& block : blocks)
    if (const auto text = text_in(block, "text"); !text.empty()) {
      if (!joined.empty())
        joined += '\n';
      joined += text;
    }
  return joined;
}

// Takes the bytes out of `holder[field]`, if there are some.
result<void> take_bytes(json& holder,
                        const char* field,
                        std::size_t index,
                        tool_answer& into) {
  const auto found = holder.find(field);
  if (found == holder.end() || !found->is_string())
    return {};
  const auto bytes = from_base64(found->get_ref<const std::string&>());
  if (!bytes)
    return failed(fmt::format("block {} of the answer has bytes that are not "
                              "base64",
                              index));
  auto type = text_in(holder, "mimeType");
  if (type.empty())
    type = "application/octet-stream";
  holder.erase(found);
  into.media.push_back({inline_data(*bytes, type),
                        bytes->size(),
                        extension_of(type),
                        is_for_models(type),
                        index});
  return {};
}

} // namespace

result<tool_answer> read_answer(const json& result) {
  if (!result.is_object())
    return failed("the answer is not an object");
  if (const auto kind = text_in(result, "resultType");
      !kind.empty() && kind != "complete")
    return failed(fmt::format("the server needs more than the call ('{}'), "
                              "which is not supported",
                              kind));
  auto blocks = result.value("content", json::array());
  if (!blocks.is_array())
    return failed("the answer has a content that is not a list");
  const auto error_flag = result.find("isError");
  if (error_flag != result.end() && *error_flag == json(true)) {
    const auto text = text_of_blocks(blocks);
    return failed(text.empty() ? "the tool has failed" : text);
  }
  tool_answer made;
  for (std::size_t index = 0; index < blocks.size(); ++index) {
    auto& block = blocks[index];
    if (!block.is_object())
      return failed(
        fmt::format("block {} of the answer is not an object", index));
    const auto kind = text_in(block, "type");
    auto taken = troupe::result<void>();
    if (kind == "image" || kind == "audio")
      taken = take_bytes(block, "data", index, made);
    else if (kind == "resource" && block.contains("resource")
             && block["resource"].is_object())
      taken = take_bytes(block["resource"], "blob", index, made);
    if (!taken)
      return taken.error();
    if (made.media.size() > media_max)
      return error(errc::too_large,
                   fmt::format("the answer has more than {} blocks with bytes",
                               media_max));
  }
  made.result = json::object();
  made.result["content"] = std::move(blocks);
  if (const auto structured = result.find("structuredContent");
      structured != result.end() && !structured->is_null())
    made.result["structuredContent"] = *structured;
  const auto size = check_json(made.result, "the answer");
  if (!size)
    return failed(size.error().message());
  if (*size > answer_bytes_max)
    return error(errc::too_large,
                 fmt::format("the answer has {} bytes, and at most {} are "
                             "allowed; ask for less",
                             *size,
                             answer_bytes_max));
  return made;
}

} // namespace troupe::mcp
