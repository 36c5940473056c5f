#include "troupe/models/formats/part_marks.hpp"

#include <string>
#include <utility>

namespace troupe {

namespace {

constexpr const char* field_name = "partMetadata";

json field_of(const json& object, std::string_view name) {
  return object.is_object() ? object.value(name, json()) : json();
}

} // namespace

json mark_of(const part& said, std::string_view vendor, std::string_view name) {
  return field_of(field_of(field_of(said.extra.data(), field_name), vendor),
                  name);
}

void set_mark(part& said,
              std::string_view vendor,
              std::string_view name,
              json mark) {
  auto fields = said.extra.is_null() ? json::object() : said.extra.data();
  auto& metadata = fields[field_name];
  if (!metadata.is_object())
    metadata = json::object();
  auto& marks = metadata[std::string(vendor)];
  if (!marks.is_object())
    marks = json::object();
  marks[std::string(name)] = std::move(mark);
  said.extra = std::move(fields);
}

json unmarked_metadata(const part& said) {
  auto metadata = field_of(said.extra.data(), field_name);
  if (!metadata.is_object())
    return metadata;
  metadata.erase("gemini");
  metadata.erase("openai");
  return metadata.empty() ? json() : metadata;
}

} // namespace troupe
