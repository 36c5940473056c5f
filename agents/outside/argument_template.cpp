#include "troupe/agents/outside/argument_template.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool continues_name(char c) {
  return begins_name(c) || (c >= '0' && c <= '9') || c == '-';
}

// The name in `{NAME}` at the start of the text; empty if there is none.
std::string_view placeholder_at(std::string_view text) {
  if (text.size() < 3 || text[0] != '{' || !begins_name(text[1]))
    return {};
  std::size_t end = 2;
  while (end < text.size() && continues_name(text[end]))
    ++end;
  return end < text.size() && text[end] == '}' ? text.substr(1, end - 1)
                                               : std::string_view();
}

std::string shown(const json& argument) {
  return argument.is_string() ? argument.get<std::string>() : to_text(argument);
}

bool is_required(const std::string& name, const json& parameters) {
  const auto names = parameters.find("required");
  return names != parameters.end() && names->is_array()
         && std::ranges::find(*names, json(name)) != names->end();
}

} // namespace

argument_template::argument_template(const std::vector<std::string>& words,
                                     const json& parameters) {
  const auto properties = parameters.find("properties");
  for (const std::string_view text : words) {
    word made;
    std::string plain;
    for (std::size_t at = 0; at < text.size();) {
      const auto rest = text.substr(at);
      if (const auto name = placeholder_at(rest.substr(1));
          rest[0] == '{' && !name.empty()
          && rest.substr(name.size() + 3).starts_with('}')) {
        plain += fmt::format("{{{}}}", name);
        at += name.size() + 4;
      } else if (const auto place = placeholder_at(rest); !place.empty()) {
        if (properties == parameters.end()
            || !properties->contains(std::string(place)))
          throw error(
            errc::invalid_argument,
            fmt::format("the command has '{{{}}}', but the parameters have no "
                        "property '{}'; '{{{{{}}}}}' stands for that text",
                        place,
                        place,
                        place));
        if (!plain.empty())
          made.push_back({std::exchange(plain, {}), false});
        made.push_back({std::string(place), true});
        has_placeholders_ = true;
        at += place.size() + 2;
      } else {
        plain += text[at++];
      }
    }
    if (!plain.empty() || made.empty())
      made.push_back({std::move(plain), false});
    check_option(made, parameters);
    words_.push_back(std::move(made));
  }
}

// Without its word, an option would take the next one.
void argument_template::check_option(const word& next,
                                     const json& parameters) const {
  if (words_.empty())
    return;
  const auto& before = words_.back();
  const bool is_option = before.size() == 1 && !before.front().is_placeholder
                         && before.front().text.starts_with('-')
                         && before.front().text != "--";
  if (!is_option)
    return;
  for (const auto& [text, is_placeholder] : next)
    if (is_placeholder && !is_required(text, parameters))
      throw error(
        errc::invalid_argument,
        fmt::format("'{{{}}}' follows the option '{}' and may be left out, so "
                    "the option would take the next word: name '{}' in "
                    "'required', or write both in one word",
                    text,
                    before.front().text,
                    text));
}

result<std::vector<std::string>>
argument_template::fill(const json& args) const {
  std::vector<std::string> filled;
  bool takes_options = true;
  for (const auto& each : words_) {
    std::optional<std::string> text(std::in_place);
    for (const auto& [part, is_placeholder] : each) {
      if (!is_placeholder) {
        *text += part;
        continue;
      }
      const auto found = args.find(part);
      if (found == args.end()) {
        text.reset();
        break;
      }
      *text += shown(*found);
    }
    if (!text)
      continue;
    if (text->find('\0') != std::string::npos)
      return error(errc::invalid_argument,
                   "an argument of a command cannot hold a NUL");
    if (takes_options && each.front().is_placeholder && text->starts_with('-'))
      return error(errc::invalid_argument,
                   fmt::format("the argument '{}' begins with '-', so the "
                               "program would take it for an option",
                               each.front().text));
    if (*text == "--")
      takes_options = false;
    filled.push_back(std::move(*text));
  }
  return filled;
}

} // namespace troupe
