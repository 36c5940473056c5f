#include "troupe/stores/artifacts/form.hpp"

#include "troupe/core/support/base64.hpp"
#include "troupe/core/support/wire.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

namespace troupe {

namespace {

using kind = json::value_t;

constexpr int format_version = 1;

// Copies the object without one field. The field is never copied, since it may
// be large.
json without(const json& object, std::string_view left_out) {
  auto rest = json::object();
  for (const auto& [name, field] : object.get_ref<const json::object_t&>())
    if (name != left_out)
      rest[name] = field;
  return rest;
}

// Returns the text in `inlineData.data`, or null.
const std::string* data_in(const json& body) {
  const auto fields = body.find("inlineData");
  if (fields == body.end() || !fields->is_object())
    return nullptr;
  const auto data = fields->find("data");
  return data == fields->end() ? nullptr : data->get_ptr<const std::string*>();
}

// Decodes the inline data and describes it in `metadata`. Returns nothing if
// encoding the bytes would give another text, as for base64 without padding.
std::optional<std::string> bytes_in(const json& body, json& metadata) {
  const auto* text = data_in(body);
  if (text == nullptr)
    return std::nullopt;
  const auto alphabet = text->find_first_of("-_") == std::string::npos
                          ? base64_alphabet::standard
                          : base64_alphabet::url;
  auto bytes = from_base64(*text);
  if (!bytes || to_base64(*bytes, alphabet) != *text)
    return std::nullopt;
  if (alphabet == base64_alphabet::url)
    metadata["alphabet"] = "url";
  auto fields = without(body, "inlineData");
  fields["inlineData"] = without(body["inlineData"], "data");
  metadata["fields"] = std::move(fields);
  return std::move(*bytes);
}

error damaged(std::string_view why) {
  return {errc::corrupt, std::string(why)};
}

// Rebuilds the body of the form "bytes".
result<value> body_from_bytes(std::string_view bytes,
                              json fields,
                              const std::string& alphabet) {
  const auto target = fields.find("inlineData");
  if (target == fields.end() || !target->is_object())
    return damaged("'fields' has no 'inlineData'");
  if (!alphabet.empty() && alphabet != "url")
    return damaged("'alphabet' is unknown");
  (*target)["data"] = to_base64(
    bytes, alphabet.empty() ? base64_alphabet::standard : base64_alphabet::url);
  return value(std::move(fields));
}

// Rebuilds the body of the form "json".
result<value> body_from_json(std::string_view data) {
  auto body = parse_json(data);
  if (!body)
    return damaged("data: " + body.error().message());
  if (!body->is_object())
    return damaged("data is not an object");
  return value(std::move(*body));
}

// The content of `metadata.json`.
struct description {
  std::string form;
  std::string alphabet;
  json fields;
  bool thought = false;
  value extra;
};

result<description> read_metadata(const std::string& text,
                                  std::size_t data_bytes) {
  // Parses without the depth limit of `parse_json`: a saved field may be as
  // deep as the limit allows and is nested deeper here. So each field is
  // checked by itself before it is copied.
  const auto parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object())
    return damaged("it is not a JSON object");
  for (const auto& [name, field] : parsed.items())
    if (auto checked = check_json(field, name); !checked)
      return damaged(checked.error().message());
  auto reader = wire_reader::open(parsed, "metadata");
  if (!reader)
    return damaged(reader.error().message());
  const auto* format = reader->take("format", kind::number_float);
  if (format == nullptr || *format != format_version)
    return damaged(fmt::format("its format is not {}", format_version));
  const auto* bytes = reader->take("bytes", kind::number_float);
  if (bytes == nullptr || *bytes != data_bytes)
    return damaged(fmt::format(
      "data has {} bytes, but 'bytes' is another number", data_bytes));
  description made;
  reader->take("form", made.form);
  reader->take("alphabet", made.alphabet);
  reader->take("thought", made.thought);
  if (const auto* fields = reader->take("fields", kind::object))
    made.fields = *fields;
  if (const auto* extra = reader->take("extra", kind::object))
    made.extra = *extra;
  if (auto rest = std::move(*reader).rest(); !rest)
    return damaged(rest.error().message());
  return made;
}

} // namespace

artifact_files to_files(std::string_view name, const part& content) {
  artifact_files files;
  json metadata{{"format", format_version}, {"name", name}};
  if (const auto* text = content.text()) {
    metadata["form"] = "text";
    files.data = *text;
  } else if (const auto& body = std::get<value>(content.body).data();
             auto bytes = bytes_in(body, metadata)) {
    metadata["form"] = "bytes";
    files.data = std::move(*bytes);
  } else {
    metadata["form"] = "json";
    files.data = to_text(body);
  }
  metadata["bytes"] = files.data.size();
  if (content.thought)
    metadata["thought"] = true;
  if (!content.extra.is_null())
    metadata["extra"] = content.extra.data();
  files.metadata = to_text(metadata);
  return files;
}

result<part> part_from_files(artifact_files files) {
  auto described = read_metadata(files.metadata, files.data.size());
  if (!described)
    return described.error();
  part made;
  made.thought = described->thought;
  made.extra = std::move(described->extra);
  if (described->form == "text") {
    if (!is_utf8(files.data))
      return damaged("data is not UTF-8");
    made.body = std::move(files.data);
    return made;
  }
  auto body = described->form == "bytes" ? body_from_bytes(
                files.data, std::move(described->fields), described->alphabet)
              : described->form == "json"
                ? body_from_json(files.data)
                : result<value>(damaged("'form' is unknown"));
  if (!body)
    return body.error();
  made.body = std::move(*body);
  return made;
}

} // namespace troupe
