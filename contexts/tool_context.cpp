#include "troupe/contexts/tool_context.hpp"

#include "troupe/core/support/wire.hpp"

#include <algorithm>
#include <variant>

namespace troupe {

namespace {

// Returns true for `{"fileData": {"fileUri": string, "mimeType": string}}`, in
// either spelling.
bool is_file(const json& wire) {
  const auto has_text = [](const json& object, std::string_view name) {
    return std::ranges::any_of(
      object.get_ref<const json::object_t&>(), [name](const auto& field) {
        return to_camel_case(field.first) == name && field.second.is_string()
               && !field.second.template get_ref<const std::string&>().empty();
      });
  };
  return std::ranges::any_of(
    wire.get_ref<const json::object_t&>(), [&has_text](const auto& field) {
      return to_camel_case(field.first) == "fileData"
             && field.second.is_object() && has_text(field.second, "fileUri")
             && has_text(field.second, "mimeType");
    });
}

} // namespace

void tool_context::attach(part media) {
  const auto bytes = blob_of(media).value();
  const auto* wire = std::get_if<value>(&media.body);
  const bool is_known = bytes ? !bytes->mime_type.empty()
                              : wire != nullptr && wire->data().is_object()
                                  && is_file(wire->data());
  if (!is_known)
    throw error(errc::invalid_argument,
                "attach() takes inline data or file data with a MIME type");
  attached_.push_back(std::move(media));
}

} // namespace troupe
