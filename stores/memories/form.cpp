#include "troupe/stores/memories/form.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe {

std::string memory_body(const memory_entry& entry) {
  auto body = json::object();
  body["author"] = entry.author;
  body["content"] = to_json(entry.content);
  return to_text(body);
}

result<void> read_memory_body(memory_entry& entry, std::string_view body) {
  const auto refuse = [&entry](std::string_view why) {
    return error(
      errc::corrupt,
      fmt::format("the memory '{}' cannot be read back: {}", entry.id, why));
  };
  const auto data = parse_json(body);
  if (!data)
    return refuse(data.error().message());
  if (!data->is_object() || !data->contains("content")
      || !data->contains("author") || !(*data)["author"].is_string())
    return refuse("a field is missing");
  auto said = content_from_json((*data)["content"]);
  if (!said)
    return refuse(said.error().message());
  entry.author = (*data)["author"].get<std::string>();
  entry.content = std::move(*said);
  return {};
}

} // namespace troupe
