#include "troupe/agents/files/static_reader.hpp"

#include "troupe/core/support/base64.hpp"
#include "troupe/core/support/blank.hpp"
#include "troupe/core/support/wire.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe {

namespace {

constexpr std::string_view static_field = "static_instruction";

constexpr std::string_view part_forms
  = "a part of static_instruction is a text, {text: …}, {inlineData: "
    "{mimeType: …, data: …}} or {fileData: {mimeType: …, fileUri: …}}";

// A file: its kind, the fields that the model is told, and its wire form.
struct file_part {
  std::string kind = {}; // "inline_data" or "file_data".
  std::string display_name = {};
  std::string uri = {};
  std::string mime_type = {};
  part wire = {};
};

// Fails for a field that was not taken.
result<void> finish(wire_reader reader, std::string_view what) {
  const auto rest = std::move(reader).rest();
  if (!rest)
    return rest.error();
  if (!rest->is_null())
    return error(
      errc::invalid_argument,
      fmt::format("{} has no field '{}'", what, rest->items().begin().key()));
  return {};
}

result<file_part> read_inline_data(const json& data) {
  auto reader = wire_reader::open(data, "inlineData");
  if (!reader)
    return reader.error();
  std::string base64;
  file_part made{.kind = "inline_data"};
  reader->take("displayName", made.display_name);
  reader->take("mimeType", made.mime_type);
  reader->take("data", base64);
  // A text of several lines in YAML has line breaks.
  std::erase_if(base64, [](char next) {
    return white_space.find(next) != std::string_view::npos;
  });
  if (base64.empty())
    reader->fail("'data' is missing");
  if (made.mime_type.empty())
    reader->fail("'mimeType' is missing");
  if (auto read = finish(std::move(*reader), "inlineData"); !read)
    return read.error();
  const auto bytes = from_base64(base64);
  if (!bytes)
    return error(errc::invalid_argument,
                 fmt::format("inlineData: {}", bytes.error().message()));
  made.wire = inline_data(*bytes, made.mime_type, made.display_name);
  return made;
}

result<file_part> read_file_data(const json& data) {
  auto reader = wire_reader::open(data, "fileData");
  if (!reader)
    return reader.error();
  file_part made{.kind = "file_data"};
  reader->take("displayName", made.display_name);
  reader->take("mimeType", made.mime_type);
  reader->take("fileUri", made.uri);
  if (made.uri.empty())
    reader->fail("'fileUri' is missing");
  if (auto read = finish(std::move(*reader), "fileData"); !read)
    return read.error();
  json wire{{"fileUri", made.uri}};
  if (!made.mime_type.empty())
    wire["mimeType"] = made.mime_type;
  if (!made.display_name.empty())
    wire["displayName"] = made.display_name;
  made.wire.body = value(json{{"fileData", std::move(wire)}});
  return made;
}

void add_text(static_parts& read, std::string_view text) {
  if (text.empty())
    return;
  if (!read.text.empty())
    read.text += "\n\n";
  read.text += text;
}

// Adds a reference to the text, and the file to the contents.
void add_file(static_parts& read, file_part file) {
  const auto id = fmt::format("{}_{}", file.kind, read.contents.size());
  std::string told;
  for (const auto& known : {file.display_name, file.uri, file.mime_type})
    if (!known.empty())
      told += (told.empty() ? "" : ", ") + known;
  add_text(read,
           fmt::format("[{}, at the start of the conversation: {}]", id, told));
  read.contents.emplace_back(
    "user", std::vector<part>{part(id + ":"), std::move(file.wire)});
}

result<void> add_part(static_parts& read, const yaml_node& node) {
  if (node.kind == yaml_node::form::scalar) {
    add_text(read, node.text);
    return {};
  }
  if (node.kind != yaml_node::form::map || node.fields.size() != 1)
    return error(errc::invalid_argument, std::string(part_forms));
  const auto& only = node.fields.front();
  const auto name = to_camel_case(only.name);
  if (name == "text" && only.value->kind == yaml_node::form::scalar) {
    add_text(read, only.value->text);
    return {};
  }
  if (name != "inlineData" && name != "fileData")
    return error(errc::invalid_argument, std::string(part_forms));
  auto file = name == "inlineData" ? read_inline_data(to_json(*only.value))
                                   : read_file_data(to_json(*only.value));
  if (!file)
    return file.error();
  add_file(read, std::move(*file));
  return {};
}

// The parts of `{role: …, parts: […]}`; null if the node has another form.
const yaml_node* parts_of(const yaml_node& node) {
  const auto* parts = node.find("parts");
  return parts != nullptr && parts->value->kind == yaml_node::form::list
           ? parts->value.get()
           : nullptr;
}

} // namespace

result<static_parts> read_static_instruction(const field_reader& fields) {
  static_parts read;
  const auto* node = fields.find(static_field);
  if (node == nullptr)
    return read;
  const auto* parts = node;
  if (const auto* held = parts_of(*node); held != nullptr) {
    for (const auto& [name, line, column, unused, is_quoted] : node->fields)
      if (name != "role" && name != "parts")
        return fail_at({&fields.file(), line},
                       fmt::format("unknown field '{}'; content has role and "
                                   "parts",
                                   name));
    parts = held;
  }
  const auto add = [&](const yaml_node& each) -> result<void> {
    if (auto added = add_part(read, each); !added)
      return fail_at({&fields.file(), each.line}, added.error().message());
    return {};
  };
  if (parts->kind != yaml_node::form::list) {
    if (auto added = add(*parts); !added)
      return added.error();
    return read;
  }
  if (parts->items.empty())
    return fail_at(fields.at(static_field),
                   "'static_instruction' has no part; leave it out");
  for (const auto& each : parts->items)
    if (auto added = add(*each); !added)
      return added.error();
  return read;
}

} // namespace troupe
