#include "troupe/contexts/instruction_template.hpp"

#include <fmt/format.h>

#include <optional>

namespace troupe {

namespace {

constexpr std::string_view blank = " \t\r\n\v\f";

bool is_letter(char next) {
  const auto byte = static_cast<unsigned char>(next);
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')
         || byte == '_' || byte >= 0x80;
}

bool is_digit(char next) {
  return next >= '0' && next <= '9';
}

struct placeholder {
  std::string_view key;
  bool dotted = false;
  bool optional = false;
};

enum class word : std::uint8_t { plain, dotted, none };

word classify(std::string_view name) {
  auto kind = word::plain;
  bool at_start = true;
  for (const char next : name) {
    if (next == '.' && !at_start) {
      kind = word::dotted;
      at_start = true;
      continue;
    }
    if (!is_letter(next) && (at_start || !is_digit(next)))
      return word::none;
    at_start = false;
  }
  return at_start ? word::none : kind;
}

std::optional<placeholder> parse(std::string_view inside) {
  const auto first = inside.find_first_not_of(blank);
  if (first == std::string_view::npos)
    return std::nullopt;
  inside = inside.substr(first, inside.find_last_not_of(blank) - first + 1);
  placeholder found;
  if (inside.ends_with('?')) {
    found.optional = true;
    inside.remove_suffix(1);
  }
  found.key = inside;
  const auto kind = classify(split_key(inside).name);
  if (kind == word::none)
    return std::nullopt;
  found.dotted = kind == word::dotted;
  return found;
}

std::string shown(const value& held) {
  const auto& data = held.data();
  if (data.is_null())
    return {};
  return data.is_string() ? data.get<std::string>() : to_text(data);
}

// What `{inside}` stands for, or nothing if it stands for itself.
result<std::optional<std::string>> replacement(std::string_view inside,
                                               const readonly_state& state,
                                               std::string_view agent_name) {
  const auto found = parse(inside);
  if (!found)
    return std::optional<std::string>();
  if (found->key.starts_with("artifact."))
    return error(errc::template_error,
                 fmt::format("instruction of agent '{}' asks for '{{{}}}', but "
                             "the runtime has no artifact service",
                             agent_name,
                             found->key));
  try {
    if (const auto held = state.find(found->key))
      return std::optional(shown(*held));
  } catch (const error& failure) {
    return failure; // A recorded operation that cannot be evaluated.
  }
  if (found->dotted)
    return std::optional<std::string>();
  if (found->optional)
    return std::optional(std::string());
  return error(
    errc::template_error,
    fmt::format("instruction of agent '{}' needs the state key '{}', "
                "which is missing; set it, or write {{{}?}} if it "
                "may be missing",
                agent_name,
                found->key,
                found->key));
}

} // namespace

result<std::string> inject_session_state(std::string_view instruction,
                                         const readonly_state& state,
                                         std::string_view agent_name) {
  std::string filled;
  filled.reserve(instruction.size());
  while (!instruction.empty()) {
    const auto open = instruction.find('{');
    filled += instruction.substr(0, open);
    if (open == std::string_view::npos)
      break;
    instruction.remove_prefix(open);
    if (instruction.starts_with("{{")) {
      const auto close = instruction.find_first_of("{}", 2);
      if (close != std::string_view::npos
          && instruction.substr(close).starts_with("}}")) {
        filled += instruction.substr(0, close + 2);
        instruction.remove_prefix(close + 2);
        continue;
      }
    }
    const auto end = instruction.find_first_of("{}", 1);
    if (end == std::string_view::npos || instruction[end] == '{') {
      filled += instruction.substr(0, end);
      instruction.remove_prefix(std::min(end, instruction.size()));
      continue;
    }
    auto made = replacement(instruction.substr(1, end - 1), state, agent_name);
    if (!made)
      return made.error();
    if (*made)
      filled += **made;
    else
      filled += instruction.substr(0, end + 1);
    instruction.remove_prefix(end + 1);
  }
  return filled;
}

result<std::string> inject_session_state(std::string_view instruction,
                                         const readonly_context& context) {
  return inject_session_state(
    instruction, context.state(), context.agent_name());
}

} // namespace troupe
