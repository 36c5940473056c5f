#include "troupe/models/open_model.hpp"

#include "troupe/core/support/text_file.hpp"
#include "troupe/models/formats/open_vendor.hpp"
#include "troupe/models/recording_model.hpp"
#include "troupe/models/scripted_model.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t script_bytes_max = std::size_t{16} << 20U;

struct model_name {
  std::optional<vendor> which; // Unset for a script.
  std::string name;            // The vendor's name of the model, or a file.
};

// Parses `"openai:gpt-x"`, or a name that only one vendor uses.
std::optional<model_name> read_name(std::string_view text) {
  using known_prefix = std::pair<std::string_view, std::optional<vendor>>;
  constexpr std::array prefixes = {
    known_prefix{"openai:", vendor::openai},
    known_prefix{"openai-responses:", vendor::openai_responses},
    known_prefix{"gemini:", vendor::gemini},
    known_prefix{"anthropic:", vendor::anthropic},
    known_prefix{"scripted:", std::nullopt},
  };
  for (const auto& [prefix, which] : prefixes)
    if (text.starts_with(prefix))
      return model_name{which, std::string(text.substr(prefix.size()))};
  if (text.starts_with("gemini-"))
    return model_name{vendor::gemini, std::string(text)};
  if (text.starts_with("projects/"))
    return model_name{text.find("/publishers/anthropic/") != text.npos
                        ? vendor::anthropic
                        : vendor::gemini,
                      std::string(text)};
  if (text.starts_with("claude-"))
    return model_name{vendor::anthropic, std::string(text)};
  return std::nullopt;
}

result<model_ptr> open_script(const model_source& source,
                              const std::string& name,
                              const std::filesystem::path& base) {
  if (name.empty() || name.find('\0') != std::string::npos)
    return refused_model(source, "expected a file after scripted:");
  auto text = read_regular_file(base / name, script_bytes_max);
  if (!text)
    return refused_model(source, text.error().message());
  auto replies = read_script(*text);
  if (!replies)
    return refused_model(source, replies.error().message());
  return model_ptr(
    std::make_shared<scripted_model>(std::move(*replies), source.name));
}

} // namespace

result<model_ptr> open_model(const model_source& source,
                             const open_model_options& options) {
  const auto named = read_name(source.name);
  if (!named)
    return refused_model(source,
                         "expected openai:NAME, openai-responses:NAME, "
                         "gemini-NAME, claude-NAME, projects/… (Vertex AI) or "
                         "scripted:FILE");
  if (!named->which)
    return open_script(source, named->name, options.base);
  if (named->name.empty())
    return refused_model(source, "expected a name after the colon");
  return open_vendor_model(source, *named->which, named->name, options);
}

} // namespace troupe
