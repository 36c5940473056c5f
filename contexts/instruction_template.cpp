#include "troupe/contexts/instruction_template.hpp"

#include "troupe/core/content.hpp"
#include "troupe/core/support/blank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

namespace {

constexpr std::string_view artifact_prefix = "artifact.";

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
  bool artifact = false;
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

std::optional<placeholder> parse(std::string_view inside,
                                 template_braces braces) {
  inside = trimmed(inside);
  if (inside.empty())
    return std::nullopt;
  placeholder found;
  if (inside.ends_with('?')) {
    found.optional = true;
    inside.remove_suffix(1);
  }
  found.key = inside;
  found.artifact = inside.starts_with(artifact_prefix)
                   && inside.size() > artifact_prefix.size();
  if (found.artifact)
    return found;
  const auto kind = classify(split_key(inside).name);
  if (kind == word::none
      || (kind == word::dotted && braces == template_braces::any))
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

error missing(const placeholder& found,
              std::string_view what,
              std::string_view agent_name) {
  return {errc::template_error,
          fmt::format("instruction of agent '{}' needs the {}, which is "
                      "missing; set it, or write {{{}?}} if it may be missing",
                      agent_name,
                      what,
                      found.key)};
}

// Returns the text of the artifact with that name; nothing if it is missing.
using artifact_texts
  = std::function<result<std::optional<std::string>>(const std::string&)>;

// Returns the text that replaces a placeholder.
class filling {
public:
  filling(const readonly_state& state,
          std::string_view agent_name,
          template_braces braces,
          artifact_texts artifacts)
    : state_(state),
      agent_name_(agent_name),
      braces_(braces),
      artifacts_(std::move(artifacts)) {}

  // Returns the value of `{inside}`; nothing if it is not a placeholder.
  result<std::optional<std::string>> operator()(std::string_view inside) const {
    const auto found = parse(inside, braces_);
    if (!found)
      return std::optional<std::string>();
    return found->artifact ? of_artifact(*found) : of_key(*found);
  }

private:
  result<std::optional<std::string>>
  of_artifact(const placeholder& found) const {
    const std::string name(found.key.substr(artifact_prefix.size()));
    auto text = artifacts_(name);
    if (!text)
      return error(text.error().code(),
                   fmt::format("instruction of agent '{}', '{{{}}}': {}",
                               agent_name_,
                               found.key,
                               text.error().message()));
    if (*text || found.optional)
      return std::optional(std::move(*text).value_or(std::string()));
    return missing(found, fmt::format("artifact '{}'", name), agent_name_);
  }

  result<std::optional<std::string>> of_key(const placeholder& found) const {
    try {
      if (const auto held = state_.find(found.key))
        return std::optional(shown(*held));
    } catch (const error& failure) {
      return failure; // A recorded operation that cannot be evaluated.
    }
    if (found.dotted)
      return std::optional<std::string>();
    if (found.optional)
      return std::optional(std::string());
    return missing(
      found, fmt::format("state key '{}'", found.key), agent_name_);
  }

  const readonly_state& state_;
  const std::string_view agent_name_;
  const template_braces braces_;
  const artifact_texts artifacts_;
};

// Braces with text between them. Positions are in the template.
struct braced {
  std::size_t begin;       // Of the first brace.
  std::size_t end;         // Behind the last brace.
  std::string_view inside; // The text without these braces.
};

// Finds the next text in single braces.
std::optional<braced> find_single(std::string_view text, std::size_t from) {
  for (auto open = text.find('{', from); open != std::string_view::npos;
       open = text.find('{', from)) {
    if (text.substr(open).starts_with("{{")) {
      const auto close = text.find_first_of("{}", open + 2);
      if (close != std::string_view::npos
          && text.substr(close).starts_with("}}")) {
        from = close + 2;
        continue;
      }
    }
    const auto close = text.find_first_of("{}", open + 1);
    if (close == std::string_view::npos)
      return std::nullopt;
    if (text[close] == '}')
      return braced{open, close + 1, text.substr(open + 1, close - open - 1)};
    from = close;
  }
  return std::nullopt;
}

// Finds the next text in any number of braces. A run of `{` is opening braces
// as a whole or not at all, as in the regular expression of ADK.
std::optional<braced> find_any(std::string_view text, std::size_t from) {
  for (auto open = text.find('{', from); open != std::string_view::npos;
       open = text.find('{', from)) {
    const auto inside = text.find_first_not_of('{', open);
    const auto close = text.find_first_of("{}", inside);
    if (close == std::string_view::npos)
      return std::nullopt;
    const bool guarded
      = open > 0 && (text[open - 1] == '$' || text[open - 1] == '\\');
    if (text[close] == '}' && !guarded)
      return braced{open,
                    std::min(text.find_first_not_of('}', close), text.size()),
                    text.substr(inside, close - inside)};
    from = close;
  }
  return std::nullopt;
}

// Copies `text` and replaces each text in braces by the result of `fill`.
template <class Fill>
result<std::string> replace_placeholders(std::string_view text,
                                         template_braces braces,
                                         const Fill& fill) {
  const auto find = braces == template_braces::single ? find_single : find_any;
  std::string filled;
  filled.reserve(text.size());
  std::size_t copied = 0;
  while (const auto found = find(text, copied)) {
    filled += text.substr(copied, found->begin - copied);
    result<std::optional<std::string>> made = fill(found->inside);
    if (!made)
      return made.error();
    if (*made)
      filled += **made;
    else
      filled += text.substr(found->begin, found->end - found->begin);
    copied = found->end;
  }
  filled += text.substr(copied);
  return filled;
}

bool is_text(const blob& data) {
  const std::string_view type = data.mime_type;
  return (type.starts_with("text/") || type == "application/json"
          || type == "application/xml" || type == "application/yaml")
         && is_utf8(data.bytes);
}

// Returns the text of an artifact, if it is text.
result<std::optional<std::string>> text_of(const std::optional<part>& loaded) {
  if (!loaded)
    return std::optional<std::string>();
  if (const auto* words = loaded->text())
    return std::optional(*words);
  auto data = blob_of(*loaded);
  if (!data)
    return data.error();
  if (!*data || !is_text(**data))
    return error(errc::template_error,
                 fmt::format("it is {} and no text",
                             *data && !(*data)->mime_type.empty()
                               ? (*data)->mime_type
                               : "of another kind"));
  return std::optional(std::move((*data)->bytes));
}

// A missing artifact store is an error in the template, not in the input.
error as_template_error(const error& failure) {
  return failure.code() == errc::invalid_argument
           ? error(errc::template_error, failure.message())
           : failure;
}

std::vector<std::string> artifacts_in(std::string_view text,
                                      template_braces braces) {
  std::vector<std::string> names;
  static_cast<void>(
    replace_placeholders(text, braces, [&](std::string_view inside) {
      if (const auto found = parse(inside, braces); found && found->artifact)
        names.emplace_back(found->key.substr(artifact_prefix.size()));
      return result<std::optional<std::string>>(std::string());
    }));
  return names;
}

using text = std::optional<std::string>;

// The text of a loaded artifact, or the error of loading it.
result<text> text_or_error(const result<std::optional<part>>& loaded) {
  return loaded ? text_of(*loaded)
                : result<text>(as_template_error(loaded.error()));
}

// Loads all artifacts of a template first, and fills it then.
task<> load_and_fill(std::string instruction,
                     const readonly_context& context,
                     template_braces braces,
                     completion<std::string> done) {
  result<std::string> filled = std::string();
  try {
    std::map<std::string, result<text>> texts;
    for (const auto& name : artifacts_in(instruction, braces)) {
      const auto loaded = co_await context.artifacts().load(name);
      texts.insert_or_assign(name, text_or_error(loaded));
    }
    filled = replace_placeholders(
      instruction,
      braces,
      filling(context.state(),
              context.agent_name(),
              braces,
              [&texts](const std::string& name) { return texts.at(name); }));
  } catch (const std::exception& failure) {
    filled = error(errc::internal, failure.what());
  }
  done(std::move(filled));
}

class injection final : public detail::call<std::string> {
public:
  injection(std::string instruction,
            const readonly_context& context,
            template_braces braces)
    : instruction_(std::move(instruction)),
      context_(context),
      braces_(braces) {}

  void start(completion<std::string> done) override {
    // Most templates name no artifact, and are filled at once.
    if (instruction_.find(artifact_prefix) == std::string::npos)
      return done(wait());
    troupe::start(
      load_and_fill(
        std::move(instruction_), context_, braces_, std::move(done)),
      [](const std::exception_ptr&) {});
  }

  result<std::string> wait() override {
    return replace_placeholders(
      instruction_,
      braces_,
      filling(context_.state(),
              context_.agent_name(),
              braces_,
              [this](const std::string& name) {
                return text_or_error(context_.artifacts().load(name).get());
              }));
  }

private:
  std::string instruction_;
  const readonly_context& context_;
  const template_braces braces_;
};

} // namespace

result<std::string> inject_session_state(std::string_view instruction,
                                         const readonly_state& state,
                                         std::string_view agent_name,
                                         template_braces braces) {
  return replace_placeholders(
    instruction,
    braces,
    filling(state, agent_name, braces, [](const std::string&) {
      return result<std::optional<std::string>>(
        error(errc::template_error, "there are no artifacts here"));
    }));
}

pending<std::string> inject_session_state(std::string instruction,
                                          const readonly_context& context,
                                          template_braces braces) {
  return pending<std::string>(
    std::make_unique<injection>(std::move(instruction), context, braces));
}

} // namespace troupe
