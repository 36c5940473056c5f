#include "troupe/core/content.hpp"
#include "troupe/core/support/base64.hpp"
#include "troupe/core/support/wire.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

// Returns the field in either spelling, or null. Does not use `wire_reader`,
// which copies: data may be large.
result<const json*> field_of(const json& object, std::string_view name) {
  const json* found = nullptr;
  for (const auto& [spelling, field] : object.get_ref<const json::object_t&>())
    if (to_camel_case(spelling) == name) {
      if (found != nullptr)
        return error(
          errc::invalid_argument,
          fmt::format("inlineData has the field '{}' in two spellings", name));
      found = &field;
    }
  return found != nullptr && found->is_null() ? nullptr : found;
}

// Returns the text of the field; empty if it is absent.
result<std::string_view> text_in(const json& object, std::string_view name) {
  const auto field = field_of(object, name);
  if (!field)
    return field.error();
  if (*field == nullptr)
    return std::string_view();
  if (!(*field)->is_string())
    return error(errc::invalid_argument,
                 fmt::format("inlineData: '{}' must be a string, not a {}",
                             name,
                             (*field)->type_name()));
  return std::string_view((*field)->get_ref<const std::string&>());
}

} // namespace

part inline_data(std::string_view bytes,
                 std::string mime_type,
                 std::string display_name) {
  json fields{{"mimeType", std::move(mime_type)}, {"data", to_base64(bytes)}};
  if (!display_name.empty())
    fields["displayName"] = std::move(display_name);
  auto wire = json::object();
  wire["inlineData"] = std::move(fields);
  part made;
  made.body = value(std::move(wire));
  return made;
}

result<std::optional<blob>> blob_of(const part& said) {
  const auto* body = std::get_if<value>(&said.body);
  if (body == nullptr || !body->data().is_object())
    return std::nullopt;
  const auto fields = field_of(body->data(), "inlineData");
  if (!fields)
    return fields.error();
  if (*fields == nullptr)
    return std::nullopt;
  if (!(*fields)->is_object())
    return error(errc::invalid_argument,
                 fmt::format("inlineData must be an object, not a {}",
                             (*fields)->type_name()));
  const auto mime_type = text_in(**fields, "mimeType");
  if (!mime_type)
    return mime_type.error();
  const auto display_name = text_in(**fields, "displayName");
  if (!display_name)
    return display_name.error();
  const auto data = text_in(**fields, "data");
  if (!data)
    return data.error();
  auto bytes = from_base64(*data);
  if (!bytes)
    return error(errc::invalid_argument,
                 fmt::format("inlineData: {}", bytes.error().message()));
  return blob{
    std::move(*bytes), std::string(*mime_type), std::string(*display_name)};
}

} // namespace troupe
