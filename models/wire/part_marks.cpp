#include "troupe/models/wire/part_marks.hpp"

#include <string>
#include <utility>

namespace troupe {

namespace {

constexpr const char* field_name = "partMetadata";

json field_of(const json& object, std::string_view name) {
  return object.is_object() ? object.value(name, json()) : json();
}

// A part that is neither text, call nor response has all of its fields in its
// body.
value& fields_of(part& said) {
  auto* body = std::get_if<value>(&said.body);
  return body != nullptr ? *body : said.extra;
}

const value& fields_of(const part& said) {
  const auto* body = std::get_if<value>(&said.body);
  return body != nullptr ? *body : said.extra;
}

} // namespace

json mark_of(const part& said, std::string_view vendor, std::string_view name) {
  return field_of(
    field_of(field_of(fields_of(said).data(), field_name), vendor), name);
}

void set_mark(part& said,
              std::string_view vendor,
              std::string_view name,
              json mark) {
  auto& held = fields_of(said);
  auto fields = held.is_null() ? json::object() : held.data();
  auto& metadata = fields[field_name];
  if (!metadata.is_object())
    metadata = json::object();
  auto& marks = metadata[std::string(vendor)];
  if (!marks.is_object())
    marks = json::object();
  marks[std::string(name)] = std::move(mark);
  held = std::move(fields);
}

json unmarked_metadata(const part& said) {
  auto metadata = field_of(fields_of(said).data(), field_name);
  if (!metadata.is_object())
    return metadata;
  for (const auto* vendor : {"anthropic", "gemini", "openai"})
    metadata.erase(vendor);
  return metadata.empty() ? json() : metadata;
}

} // namespace troupe
