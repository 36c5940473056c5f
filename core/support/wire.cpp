#include "troupe/core/support/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace troupe {

namespace {

std::string_view type_name(json::value_t type) {
  switch (type) {
  case json::value_t::object:
    return "an object";
  case json::value_t::array:
    return "a list";
  case json::value_t::string:
    return "a string";
  case json::value_t::boolean:
    return "a boolean";
  default:
    return "a number";
  }
}

bool is_of(const json& field, json::value_t type) {
  return type == json::value_t::number_float ? field.is_number()
                                             : field.type() == type;
}

} // namespace

std::string to_camel_case(std::string_view name) {
  std::string camel;
  camel.reserve(name.size());
  bool raise = false;
  const auto first = name.find_first_not_of('_');
  const auto last = name.find_last_not_of('_');
  for (std::size_t index = 0; index < name.size(); ++index) {
    const char next = name[index];
    if (next == '_' && index > first && index < last) {
      raise = true;
      continue;
    }
    camel
      += raise
           ? static_cast<char>(std::toupper(static_cast<unsigned char>(next)))
           : next;
    raise = false;
  }
  return camel;
}

result<wire_reader> wire_reader::open(json data, std::string_view what) {
  if (!data.is_object())
    return error(
      errc::invalid_argument,
      fmt::format("{} must be an object, not a {}", what, data.type_name()));
  wire_reader reader;
  reader.what_ = what;
  auto& fields = data.get_ref<json::object_t&>();
  // The usual object is in camelCase already.
  if (std::ranges::none_of(fields, [](const auto& field) {
        return field.first.find('_') != std::string::npos;
      })) {
    reader.fields_ = std::move(data);
    return reader;
  }
  reader.fields_ = json::object();
  for (auto& [name, field] : fields)
    if (!reader.fields_.emplace(to_camel_case(name), std::move(field)).second)
      return error(
        errc::invalid_argument,
        fmt::format("{} has the field '{}' in two spellings", what, name));
  return reader;
}

void wire_reader::fail(std::string why) {
  if (reason_.empty())
    reason_ = fmt::format("{}: {}", what_, why);
}

json* wire_reader::take_any(std::string_view name) {
  const auto found = fields_.find(name);
  if (found == fields_.end())
    return nullptr;
  taken_ = std::move(*found);
  fields_.erase(found);
  return taken_.is_null() ? nullptr : &taken_;
}

json* wire_reader::take(std::string_view name, json::value_t type) {
  auto* field = take_any(name);
  if (field == nullptr || is_of(*field, type))
    return field;
  fail(fmt::format(
    "'{}' must be {}, not a {}", name, type_name(type), field->type_name()));
  return nullptr;
}

void wire_reader::take(std::string_view name, std::string& target) {
  if (auto* field = take(name, json::value_t::string))
    target = std::move(field->get_ref<std::string&>());
}

void wire_reader::take(std::string_view name, bool& target) {
  if (const auto* field = take(name, json::value_t::boolean))
    target = field->get<bool>();
}

void wire_reader::expect(std::string_view name, json::value_t type) {
  const auto found = fields_.find(name);
  if (found == fields_.end())
    return;
  if (found->is_null())
    fields_.erase(found);
  else if (!is_of(*found, type))
    fail(fmt::format(
      "'{}' must be {}, not a {}", name, type_name(type), found->type_name()));
}

result<json> wire_reader::rest() && {
  if (!reason_.empty())
    return error(errc::invalid_argument, reason_);
  return fields_.empty() ? json() : std::move(fields_);
}

} // namespace troupe
