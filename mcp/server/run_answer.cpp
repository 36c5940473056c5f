#include "troupe/mcp/server/run_answer.hpp"

#include "troupe/core/support/base64.hpp"

#include <fmt/format.h>
#include <utf8.h>

#include <cctype>
#include <iterator>
#include <optional>
#include <utility>

namespace troupe::mcp {

namespace {

json text_block(std::string_view text) {
  return {{"type", "text"}, {"text", text}};
}

// Bytes other than letters, digits and a few marks as `%XX`.
std::string in_uri(std::string_view text) {
  constexpr std::string_view marks = "-._~";
  std::string made;
  for (const char next : text) {
    const auto byte = static_cast<unsigned char>(next);
    if ((byte < 0x80 && std::isalnum(byte) != 0)
        || marks.find(next) != marks.npos)
      made += next;
    else
      made += fmt::format("%{:02X}", byte);
  }
  return made;
}

// The blocks of an answer, with the room for their bytes.
class blocks {
public:
  explicit blocks(std::size_t media_bytes_max) : left_(media_bytes_max) {}

  void add_text(std::string_view text) {
    if (!text.empty())
      list_.push_back(text_block(text));
  }

  // `uri` and `name` are those of a file.
  void
  add_media(const blob& media, const std::string& uri, std::string_view name) {
    if (!takes(media.bytes.size(), name))
      return;
    const std::string type
      = media.mime_type.empty() ? "application/octet-stream" : media.mime_type;
    auto data = to_base64(media.bytes);
    if (type.starts_with("image/") || type.starts_with("audio/"))
      list_.push_back({{"type", type.substr(0, 5)},
                       {"data", std::move(data)},
                       {"mimeType", type}});
    else
      add_resource(
        {{"uri", uri}, {"mimeType", type}, {"blob", std::move(data)}});
  }

  void add_text_file(const std::string& text,
                     const std::string& uri,
                     std::string_view name) {
    if (takes(text.size(), name))
      add_resource({{"uri", uri}, {"mimeType", "text/plain"}, {"text", text}});
  }

  json take() { return std::move(list_); }

private:
  void add_resource(json resource) {
    json block{{"type", "resource"}};
    block["resource"] = std::move(resource);
    list_.push_back(std::move(block));
  }

  bool takes(std::size_t bytes, std::string_view name) {
    if (bytes <= left_) {
      left_ -= bytes;
      return true;
    }
    add_text(fmt::format(
      "{} is left out: it has {} bytes, and {} are left for media in this "
      "answer",
      name,
      bytes,
      left_));
    return false;
  }

  json list_ = json::array();
  std::size_t left_;
};

// Adds the parts in their order; texts that follow each other are one block.
void add_parts(const content& said, blocks& into) {
  std::string words;
  std::size_t number = 0;
  for (const auto& element : said.parts) {
    if (element.thought)
      continue;
    if (const auto* text = element.text()) {
      words += *text;
      continue;
    }
    into.add_text(std::exchange(words, {}));
    if (const auto* response = element.response())
      into.add_text(to_text(response->response.data()));
    // An event with data that is not base64 was stored as it came.
    else if (const auto media = blob_of(element); media && *media)
      into.add_media(
        **media, fmt::format("answer://media/{}", ++number), "a file");
  }
  into.add_text(words);
}

void add_artifact(const std::string& name,
                  std::int64_t version,
                  const session_key& session,
                  artifact_store& kept,
                  blocks& into) {
  const auto shown = fmt::format("artifact '{}' (version {})", name, version);
  const auto uri = fmt::format(
    "artifact://{}/{}?version={}", in_uri(session.id), in_uri(name), version);
  const auto loaded = kept.load(session, name, version);
  if (!loaded) {
    into.add_text(
      fmt::format("{} cannot be loaded: {}", shown, loaded.error().message()));
    return;
  }
  // The run may have removed it again.
  if (!*loaded)
    return;
  if (const auto* text = (*loaded)->text()) {
    into.add_text_file(*text, uri, shown);
    return;
  }
  const auto media = blob_of(**loaded);
  if (media && *media)
    into.add_media(**media, uri, shown);
}

// A failure of the model that the run has tolerated. Codes of agents are in
// lower case.
std::optional<std::string> failure_of(const event& said) {
  const auto code = said.field("errorCode");
  if (code.empty() || code == "MODEL_RETURNED_NO_CONTENT"
      || std::isupper(static_cast<unsigned char>(code.front())) == 0)
    return std::nullopt;
  const auto why = said.field("errorMessage");
  return fmt::format("the model gave no answer to agent '{}': {}{}{}",
                     said.author,
                     code,
                     why.empty() ? "" : ": ",
                     why);
}

} // namespace

json failed_result(std::string_view why) {
  // The text of an exception may be anything.
  std::string valid;
  utf8::replace_invalid(why.begin(), why.end(), std::back_inserter(valid));
  return {{"content", json::array({text_block(valid)})}, {"isError", true}};
}

void run_answer::take(const event_ptr& said) {
  if (said->partial)
    return;
  for (const auto& [name, version] : said->actions.artifact_delta)
    artifacts_[name] = version;
  if (!said->content.parts.empty() || failure_of(*said))
    last_ = said;
}

json run_answer::result_of(const offered_agent& offered,
                           const session_key& session,
                           artifact_store* kept,
                           std::size_t media_bytes_max) const {
  if (last_)
    if (const auto failure = failure_of(*last_))
      return failed_result(*failure);
  blocks made(media_bytes_max);
  if (last_)
    add_parts(last_->content, made);
  if (kept != nullptr)
    for (const auto& [name, version] : artifacts_)
      add_artifact(name, version, session, *kept, made);
  json result = json::object();
  if (const auto* schema = offered.output_schema()) {
    auto data = parse_json(last_ ? last_->text() : std::string());
    auto fits
      = data ? schema->check(*data) : troupe::result<void>(data.error());
    if (!fits)
      return failed_result(fmt::format(
        "the answer does not fit the output schema of agent '{}': {}",
        offered.root().name(),
        fits.error().message()));
    result["structuredContent"] = std::move(*data);
  }
  result["content"] = made.take();
  return result;
}

} // namespace troupe::mcp
