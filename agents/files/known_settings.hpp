// The settings of google-genai's GenerateContentConfig: the type, the values
// and the range of each one.
//
// Settings that hold settings are described down to the last level. Names are
// written with underscores here.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

enum class setting_form : std::uint8_t {
  anything,
  number,
  whole_number,
  whole_numbers, // A list.
  whole_number_or_flag,
  flag,
  text,
  texts,
  choice, // One of `values`, in any case of letters.
  choices,
  mapping, // Of any names.
  mapping_of_texts,
  settings, // A mapping with the names of `inner`.
  settings_list,
  text_or_settings,
};

struct setting {
  std::string_view name;
  setting_form holds;
  std::span<const setting> inner = {};
  std::span<const std::string_view> values = {};
  std::optional<int> least = {};
  std::optional<int> most = {};
};

/// The settings of the whole configuration. They live as long as the program.
std::span<const setting> known_settings();

/// The value that a setting must have, for errors: "a number from 0 to 1",
/// "one of AUTO, ANY".
std::string needed_value(const setting& which);

} // namespace troupe
