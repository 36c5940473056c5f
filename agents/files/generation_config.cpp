#include "troupe/agents/files/generation_config.hpp"

#include "troupe/agents/files/known_settings.hpp"
#include "troupe/core/support/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

using form = setting_form;

bool is_text_value(const json& held) {
  return held.is_string();
}

bool is_in_range(const json& held, const setting& which) {
  const auto number = held.get<double>();
  return (!which.least || number >= *which.least)
         && (!which.most || number <= *which.most);
}

bool is_whole_number(const json& held, const setting& which) {
  return held.is_number_integer() && is_in_range(held, which);
}

// Not of settings and choices, whose inside is read.
bool fits(const json& held, const setting& which) {
  switch (which.holds) {
  case form::anything:
    return true;
  case form::number:
    return held.is_number() && is_in_range(held, which);
  case form::whole_number:
    return is_whole_number(held, which);
  case form::whole_numbers:
    return held.is_array()
           && std::ranges::all_of(held, [&which](const json& each) {
                return is_whole_number(each, which);
              });
  case form::whole_number_or_flag:
    return held.is_boolean() || is_whole_number(held, which);
  case form::flag:
    return held.is_boolean();
  case form::text:
  case form::text_or_settings:
    return held.is_string();
  case form::texts:
    return held.is_array() && std::ranges::all_of(held, is_text_value);
  case form::mapping:
    return held.is_object();
  case form::mapping_of_texts:
    return held.is_object() && std::ranges::all_of(held, is_text_value);
  case form::choice:
  case form::choices:
  case form::settings:
  case form::settings_list:
    return false;
  }
  return false;
}

bool is_same_word(std::string_view left, std::string_view right) {
  const auto in_lower_case = [](char sign) {
    return sign >= 'A' && sign <= 'Z' ? static_cast<char>(sign + ('a' - 'A'))
                                      : sign;
  };
  return std::ranges::equal(
    left, right, std::ranges::equal_to(), in_lower_case, in_lower_case);
}

// Writes a choice as the vendor does, since ADK accepts it in any case. Returns
// false if it is not known.
bool write_choice(json& held, const setting& which) {
  if (!held.is_string())
    return false;
  const auto found
    = std::ranges::find_if(which.values, [&held](std::string_view known) {
        return is_same_word(known, held.get_ref<const std::string&>());
      });
  if (found == which.values.end())
    return false;
  held = *found;
  return true;
}

const setting* find_setting(std::span<const setting> known,
                            std::string_view name) {
  const auto wanted = to_camel_case(name);
  const auto found = std::ranges::find_if(known, [&wanted](const auto& each) {
    return to_camel_case(each.name) == wanted;
  });
  return found == known.end() ? nullptr : &*found;
}

std::string names_of(std::span<const setting> known) {
  return known.empty()
           ? "none"
           : list_names(known, [](const setting& each) { return each.name; });
}

class config_reader {
public:
  explicit config_reader(const std::filesystem::path& file) : file_(file) {}

  // The whole configuration may have settings whose names are not known.
  result<json> read(const yaml_node& mapping) const {
    return read(mapping, known_settings(), "generate_content_config", true);
  }

private:
  // `where` names the mapping in errors.
  result<json> read(const yaml_node& mapping,
                    std::span<const setting> known,
                    const std::string& where,
                    bool may_have_others) const {
    auto made = json::object();
    std::set<std::string> names;
    for (const auto& field : mapping.fields) {
      const auto refused = [&](std::string_view why) {
        return fail_at({&file_, field.line}, fmt::format("{}: {}", where, why));
      };
      if (!names.insert(to_camel_case(field.name)).second)
        return refused(
          fmt::format("has the setting '{}' in two spellings", field.name));
      const auto* found = find_setting(known, field.name);
      if (found == nullptr && !may_have_others)
        return refused(fmt::format(
          "unknown setting '{}'; it has {}", field.name, names_of(known)));
      auto held = found == nullptr ? result<json>(to_json(*field.value))
                                   : read_value(field, *found, where);
      if (!held)
        return held;
      made[field.name] = std::move(*held);
    }
    return made;
  }

  result<json> read_value(const yaml_node::field& field,
                          const setting& which,
                          const std::string& where) const {
    const auto& node = *field.value;
    if (node.kind == yaml_node::form::null)
      return json();
    const auto inner = fmt::format("{}.{}", where, which.name);
    const bool may_be_settings
      = which.holds == form::settings || which.holds == form::text_or_settings;
    if (may_be_settings && node.kind == yaml_node::form::map)
      return read(node, which.inner, inner, false);
    const auto refused = [&] {
      return fail_at(
        {&file_, field.line},
        fmt::format(
          "{}: '{}' must be {}", where, field.name, needed_value(which)));
    };
    if (which.holds == form::settings_list) {
      if (node.kind != yaml_node::form::list)
        return refused();
      auto made = json::array();
      for (const auto& each : node.items) {
        if (each->kind != yaml_node::form::map)
          return refused();
        auto held = read(*each, which.inner, inner, false);
        if (!held)
          return held;
        made.push_back(std::move(*held));
      }
      return made;
    }
    auto held = to_json(node);
    const bool is_known
      = which.holds == form::choice ? write_choice(held, which)
        : which.holds == form::choices
          ? held.is_array()
              && std::ranges::all_of(
                held,
                [&which](json& each) { return write_choice(each, which); })
          : fits(held, which);
    if (!is_known)
      return refused();
    return held;
  }

  const std::filesystem::path& file_;
};

} // namespace

result<json> read_generation_config(const field_reader& fields) {
  constexpr std::string_view name = "generate_content_config";
  // Checks that it is a mapping.
  if (auto config = fields.object(name); !config)
    return config.error();
  const auto* found = fields.find(name);
  return found == nullptr ? result<json>(json::object())
                          : config_reader(fields.file()).read(*found);
}

} // namespace troupe
