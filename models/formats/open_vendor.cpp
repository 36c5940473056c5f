#include "troupe/models/formats/open_vendor.hpp"

#include "troupe/models/formats/http_model.hpp"
#include "troupe/models/formats/key_rule.hpp"
#include "troupe/models/vertex/command_output.hpp"
#include "troupe/models/vertex/target.hpp"
#include "troupe/models/vertex/token_command.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe {

namespace {

struct known_vendor {
  vendor which;
  std::string_view name;
  std::array<std::string_view, 2>
    key_variables; // The first one that is set counts.
  std::string_view url_variable;
  std::string_view url;
};

constexpr std::array vendors = {
  known_vendor{vendor::openai,
               "OpenAI",
               {"OPENAI_API_KEY", ""},
               "OPENAI_BASE_URL",
               "https://api.openai.com/v1"},
  known_vendor{vendor::gemini,
               "Gemini",
               {"GOOGLE_API_KEY", "GEMINI_API_KEY"},
               "GOOGLE_GEMINI_BASE_URL",
               "https://generativelanguage.googleapis.com"},
  known_vendor{vendor::anthropic,
               "Anthropic",
               {"ANTHROPIC_API_KEY", ""},
               "ANTHROPIC_BASE_URL",
               "https://api.anthropic.com"},
  known_vendor{vendor::openai_responses,
               "OpenAI",
               {"OPENAI_API_KEY", ""},
               "OPENAI_BASE_URL",
               "https://api.openai.com/v1"},
};

std::optional<std::string> process_variable(const std::string& name) {
  // Safe as long as no thread changes the environment.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* held = std::getenv(name.c_str());
  return held != nullptr ? std::optional<std::string>(held) : std::nullopt;
}

std::string without_slash(std::string url) {
  while (url.ends_with('/'))
    url.pop_back();
  return url;
}

// Checks the URL here, so that a typing error does not fail every call later.
result<std::string> read_url(const model_source& source, std::string text) {
  text = without_slash(std::move(text));
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(
    curl_url(), &curl_url_cleanup);
  if (!parsed
      || curl_url_set(parsed.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK
      || !(text.starts_with("http://") || text.starts_with("https://")))
    return refused_model(
      source, "its base URL does not start with http:// or https://");
  char* user = nullptr;
  if (curl_url_get(parsed.get(), CURLUPART_USER, &user, 0) == CURLUE_OK) {
    curl_free(user);
    return refused_model(source,
                         "a base URL must not hold a user or a password");
  }
  // The path of each request is appended, and a query is no place for a key.
  if (text.find_first_of("?#") != std::string::npos)
    return refused_model(source,
                         "a base URL must not hold a query or a fragment");
  return text;
}

// A name of a file beside the agent, unless it would give a value of the
// environment.
bool is_own_variable(const std::string& name,
                     const open_model_options& options) {
  if (!options.dotenv.is_beside_agent || !options.dotenv.values.contains(name))
    return false;
  return !(options.variable ? options.variable(name) : process_variable(name));
}

// Checks before the variable is read, so that the error does not show whether
// it is set.
result<void> check_allowed(const model_source& source,
                           const open_model_options& options) {
  std::vector<std::string_view> usual;
  for (const auto& known : vendors)
    for (const auto name : known.key_variables)
      if (!name.empty() && std::ranges::find(usual, name) == usual.end())
        usual.push_back(name);
  const auto& name = source.key_variable;
  if (std::ranges::find(usual, name) != usual.end()
      || std::ranges::find(options.allowed_variables, name)
           != options.allowed_variables.end()
      || is_own_variable(name, options))
    return {};
  return refused_model(
    source,
    fmt::format("key_env may not name {}; there are {} and those that the user "
                "allows: --allow-env {}, or allowed_variables in a program",
                name,
                fmt::join(usual, ", "),
                name));
}

wire_format_ptr format_of(vendor which) {
  switch (which) {
  case vendor::openai:
    return openai_format();
  case vendor::openai_responses:
    return openai_responses_format();
  case vendor::gemini:
    return gemini_format();
  default:
    return anthropic_format();
  }
}

std::optional<std::string> outside_variable(const open_model_options& options,
                                            const std::string& name) {
  return options.variable ? options.variable(name) : process_variable(name);
}

bool is_of_dotenv(const open_model_options& options, const std::string& name) {
  return options.dotenv.values.contains(name)
         && !outside_variable(options, name);
}

// The options outlive the reader.
variable_reader reader_of(const open_model_options& options) {
  return [&options](std::string_view wanted) -> std::optional<std::string> {
    const std::string name(wanted);
    if (name.empty())
      return std::nullopt;
    auto held = outside_variable(options, name);
    if (is_of_dotenv(options, name))
      held = options.dotenv.values.at(name);
    return held && !held->empty() ? held : std::nullopt;
  };
}

// The settings that do not depend on the vendor.
http_model_options settings_of(const model_source& source,
                               const open_model_options& options) {
  http_model_options chosen;
  chosen.name = source.name;
  chosen.headers = source.headers;
  chosen.streams = source.streams;
  chosen.timeouts = source.timeouts;
  chosen.retries = source.retries;
  chosen.on_retry = options.on_retry;
  if (source.limit.requests_per_minute || source.limit.tokens_per_minute)
    chosen.limit
      = std::make_shared<rate_limit>(source.limit, system_environment());
  return chosen;
}

// -- Vertex AI ----

constexpr std::array<std::string_view, 2> token_variables
  = {"GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"};
constexpr std::chrono::minutes token_command_limit{1};

bool is_at_vertex(const model_source& source,
                  vendor which,
                  const std::string& model,
                  const variable_reader& variable) {
  return source.vertex || is_full_name(model)
         || (which == vendor::gemini && source.base_url.empty()
             && source.key_variable.empty() && is_vertex_wanted(variable));
}

// A path is compared with the paths that the user allows; both start at the
// working folder.
bool is_allowed_command(const std::string& command,
                        const std::vector<std::string>& allowed) {
  namespace fs = std::filesystem;
  const auto place = [](const std::string& path) {
    std::error_code failed;
    return fs::weakly_canonical(fs::absolute(path, failed), failed);
  };
  const bool is_path = command.find('/') != std::string::npos;
  return std::ranges::any_of(allowed, [&](const std::string& each) {
    return is_path
             ? each.find('/') != std::string::npos && !place(command).empty()
                 && place(each) == place(command)
             : each == command;
  });
}

result<void> check_token_command(const model_source& source,
                                 const std::vector<std::string>& command,
                                 const open_model_options& options) {
  if (is_allowed_command(command.front(), options.allowed_commands))
    return {};
  return refused_model(
    source,
    fmt::format("token_command wants to start the program '{}'; allow it with "
                "--allow-command {}, or allowed_commands in a program",
                command.front(),
                command.front()));
}

void take_token_command(const std::vector<std::string>& command,
                        http_model_options& chosen) {
  chosen.token
    = std::make_shared<token_command>([command](const std::stop_token& stop) {
        return command_output(command, token_command_limit, stop);
      });
}

// Sets the source of the access token.
result<void> choose_token(const model_source& source,
                          const open_model_options& options,
                          const variable_reader& variable,
                          http_model_options& chosen) {
  const auto place = source.vertex.value_or(vertex_place());
  if (!place.token_variable.empty() && !place.token_command.empty())
    return refused_model(source,
                         "'vertex' has one of token_env and token_command");
  if (options.key) {
    chosen.key = options.key;
    return {};
  }
  if (!place.token_command.empty()) {
    if (auto allowed
        = check_token_command(source, place.token_command, options);
        !allowed)
      return allowed;
    take_token_command(place.token_command, chosen);
    return {};
  }
  std::optional<std::string> token;
  if (!place.token_variable.empty()) {
    const auto& name = place.token_variable;
    if (std::ranges::find(token_variables, name) == token_variables.end()
        && std::ranges::find(options.allowed_variables, name)
             == options.allowed_variables.end())
      return refused_model(
        source,
        fmt::format("token_env may not name {}; there are {} and those that "
                    "the user allows: --allow-env {}, or allowed_variables in "
                    "a program",
                    name,
                    fmt::join(token_variables, ", "),
                    name));
    token = variable(name);
    if (!token)
      return refused_model(
        source, fmt::format("the environment variable {} is not set", name));
  } else {
    for (const auto name : token_variables)
      if (!token)
        token = variable(name);
  }
  if (token) {
    chosen.key = [held = std::move(*token)] { return held; };
    return {};
  }
  const std::vector<std::string> usual{"gcloud", "auth", "print-access-token"};
  if (!is_allowed_command(usual.front(), options.allowed_commands))
    return refused_model(
      source,
      fmt::format("Vertex AI needs an access token: set {}, or allow {} with "
                  "--allow-command gcloud (allowed_commands in a program)",
                  token_variables.front(),
                  fmt::join(usual, " ")));
  take_token_command(usual, chosen);
  return {};
}

result<model_ptr> open_at_vertex(const model_source& source,
                                 vendor which,
                                 const std::string& model,
                                 const open_model_options& options,
                                 const variable_reader& variable) {
  if (which == vendor::openai || which == vendor::openai_responses)
    return refused_model(source, "'vertex' is for models of Gemini and Claude");
  // A token of Google opens more than models, so it goes to no URL of a file.
  if (!source.base_url.empty())
    return refused_model(source,
                         "a model at Vertex AI has no base_url; another "
                         "address is set by GOOGLE_VERTEX_BASE_URL");
  if (!source.key_variable.empty())
    return refused_model(source,
                         "a model at Vertex AI has no key_env, but token_env "
                         "in 'vertex'");
  if (is_of_dotenv(options, "GOOGLE_VERTEX_BASE_URL"))
    return refused_model(
      source,
      fmt::format(
        "{} names a base URL by GOOGLE_VERTEX_BASE_URL, which does not "
        "get a token of Google: set it in the environment",
        options.dotenv.file.string()));
  auto chosen = settings_of(source, options);
  const auto key = variable("GOOGLE_API_KEY") ? variable("GOOGLE_API_KEY")
                                              : variable("GEMINI_API_KEY");
  const bool is_express = !source.vertex && !is_full_name(model)
                          && !variable("GOOGLE_CLOUD_PROJECT") && key
                          && !options.key;
  auto found = is_express
                 ? result<vertex_target>(express_target(model, variable))
                 : find_target(source.vertex.value_or(vertex_place()),
                               which == vendor::gemini ? "google" : "anthropic",
                               model,
                               variable);
  if (!found)
    return refused_model(source, found.error().message());
  auto base_url = read_url(source, std::move(found->base_url));
  if (!base_url)
    return base_url.error();
  if (const auto flaw = key_flaw(*base_url); !flaw.empty())
    return refused_model(source, flaw);
  if (is_express)
    chosen.key = [held = *key] { return held; };
  else if (auto token = choose_token(source, options, variable, chosen); !token)
    return token.error();
  if (which == vendor::anthropic)
    chosen.format = anthropic_format(anthropic_host::vertex);
  else
    chosen.format
      = gemini_format(is_express ? gemini_host::express : gemini_host::vertex);
  chosen.model = std::move(found->resource);
  chosen.base_url = std::move(*base_url);
  return model_ptr(std::make_shared<http_model>(std::move(chosen)));
}

} // namespace

result<model_ptr> open_vendor_model(const model_source& source,
                                    vendor which,
                                    const std::string& model,
                                    const open_model_options& options) {
  for (const auto& limit :
       {source.limit.requests_per_minute, source.limit.tokens_per_minute})
    if (limit && !(*limit > 0))
      return refused_model(source, "a limit per minute must be above 0");
  const auto& known = vendors[static_cast<std::size_t>(which)];
  const auto variable = reader_of(options);
  if (is_at_vertex(source, which, model, variable))
    return open_at_vertex(source, which, model, options, variable);
  const auto is_of_file = [&options](std::string_view name) {
    return is_of_dotenv(options, std::string(name));
  };

  // Sends a vendor's key only to the vendor or to the URL that the same
  // environment names, never to a URL of a file.
  const auto own_url = without_slash(
    variable(known.url_variable).value_or(std::string(known.url)));
  auto url = source.base_url.empty() ? own_url : source.base_url;
  auto base_url = read_url(source, std::move(url));
  if (!base_url)
    return base_url.error();

  if (!source.key_variable.empty())
    if (auto allowed = check_allowed(source, options); !allowed)
      return allowed.error();
  std::optional<std::string> key;
  if (options.key) {
    // Called for each model call.
    if (source.base_url.empty() && is_of_file(known.url_variable))
      return refused_model(
        source,
        fmt::format("{} names a base URL by {}, which does not get the key of "
                    "the program: set {} in the environment",
                    options.dotenv.file.string(),
                    known.url_variable,
                    known.url_variable));
  } else if (!source.key_variable.empty()) {
    key = variable(source.key_variable);
    if (!key)
      return refused_model(source,
                           fmt::format("the environment variable {} is not set",
                                       source.key_variable));
    if (source.base_url.empty() && is_of_file(known.url_variable)
        && !is_of_file(source.key_variable))
      return refused_model(
        source,
        fmt::format("{} names a base URL by {}, which does not get the key {} "
                    "of the environment: set {} in the environment",
                    options.dotenv.file.string(),
                    known.url_variable,
                    source.key_variable,
                    known.url_variable));
  } else if (source.base_url.empty() || *base_url == known.url
             || *base_url == own_url) {
    auto named = known.key_variables[0];
    key = variable(named);
    if (!key) {
      named = known.key_variables[1];
      key = variable(named);
    }
    if (key && *base_url != known.url && is_of_file(known.url_variable)
        && !is_of_file(named))
      return refused_model(
        source,
        fmt::format("{} names a base URL by {}, which does not get the key of "
                    "the environment: set the key there, too, or set {} in the "
                    "environment",
                    options.dotenv.file.string(),
                    known.url_variable,
                    known.url_variable));
    if (!key && *base_url == known.url)
      return refused_model(
        source,
        fmt::format("the environment variable {} is not set: it holds the key "
                    "for {}",
                    known.key_variables[0],
                    known.name));
  }

  if (key || options.key)
    if (const auto flaw = key_flaw(*base_url); !flaw.empty())
      return refused_model(source, flaw);

  auto chosen = settings_of(source, options);
  chosen.format = format_of(which);
  chosen.model = model;
  chosen.base_url = std::move(*base_url);
  if (options.key)
    chosen.key = options.key;
  else if (key)
    chosen.key = [held = std::move(*key)] { return held; };
  return model_ptr(std::make_shared<http_model>(std::move(chosen)));
}

} // namespace troupe
