// Opens a model by its name: `openai:NAME`, `openai-responses:NAME`,
// `gemini-NAME`, `claude-NAME`, `scripted:FILE`.

#pragma once

#include "troupe/core/dotenv.hpp"
#include "troupe/models/http_options.hpp"
#include "troupe/models/model.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The place of a model of Google on Vertex AI, and the access token of its
/// requests. Without `token_variable` and `token_command`, the token comes from
/// `GOOGLE_OAUTH_ACCESS_TOKEN`, else `CLOUDSDK_AUTH_ACCESS_TOKEN`, else from
/// `gcloud auth print-access-token` if `open_model_options::allowed_commands`
/// has `gcloud`.
struct vertex_place {
  /// Id of the project; empty: `GOOGLE_CLOUD_PROJECT`.
  std::string project = {};
  /// Location such as `"europe-west4"`, or `"global"`; empty:
  /// `GOOGLE_CLOUD_LOCATION`, else `"global"`.
  std::string location = {};
  /// Environment variable of the token. It must be one of the list above or of
  /// `open_model_options::allowed_variables`.
  std::string token_variable = {};
  /// Program that prints a token, with its arguments. It is started without a
  /// shell, at the first call and when its token is 45 minutes old or refused.
  /// `open_model_options::allowed_commands` must have it.
  std::vector<std::string> token_command = {};

  friend bool operator==(const vertex_place&, const vertex_place&) = default;
};

/// Describes the model to open, like `model` in an agent file. The key comes
/// from the environment or from `open_model_options::key`.
struct model_source {
  /// Name of the model in a form that `open_model` lists.
  std::string name;
  /// Replaces the vendor's base URL and that of the environment
  /// (`OPENAI_BASE_URL`, …).
  std::string base_url = {};
  /// Environment variable of the key, in place of the vendor's. It must be one
  /// of the list at `open_model` or of `open_model_options::allowed_variables`.
  std::string key_variable = {};
  /// Vertex AI in place of the vendor's other server, for models of Gemini and
  /// Claude. `base_url` and `key_variable` are then empty.
  std::optional<vertex_place> vertex = {};
  /// Headers of each request; they must not hold a key.
  http_headers headers = {};
  /// True if the model is asked for a stream, which arrives as partial
  /// responses.
  bool streams = false;
  /// Time limits of each HTTP request.
  http_timeouts timeouts = {};
  /// Rule for retries of failed requests.
  retry_rule retries = {};
  /// Limits of requests and tokens. Each opened model counts for itself.
  rate_limit_options limit = {};

  friend bool operator==(const model_source&, const model_source&) = default;
};

/// Settings of the program, which a source cannot change.
struct open_model_options {
  /// Environment variables that a source may name for its key, besides those of
  /// the list at `open_model`. A source comes from a file that another person
  /// may have written; any further variable would let the file send secrets to
  /// its own base URL.
  std::vector<std::string> allowed_variables = {};
  /// Variables that count where the environment does not have them. If the file
  /// stands beside the agent, a source may name those that the environment does
  /// not have. A base URL from here gets no key from elsewhere.
  dotenv_file dotenv = {};
  /// Programs that a source may start for its token
  /// (`vertex_place::token_command`): names, or paths, which start at the
  /// working folder.
  std::vector<std::string> allowed_commands = {};
  /// Folder of a relative `scripted:FILE`.
  std::filesystem::path base = {};
  /// Reads an environment variable; unset for the process's environment.
  std::function<std::optional<std::string>(const std::string& name)> variable
    = {};
  /// Returns the key of a model call. Called for each call, on any thread; an
  /// empty string sends no key. If it is unset, the key is read from the
  /// environment once, by `open_model`. The key goes to the base URL of the
  /// source: leave it unset for a source that another person may have written.
  std::function<std::string()> key = {};
  /// Called before the wait for each retry, on any thread. Must be short and
  /// must not throw.
  std::function<void(const model_retry&)> on_retry = {};
};

/// Opens a model. The name selects the wire format, the variables of the key
/// and the variable of the base URL:
/// - `openai:NAME`: chat completions; `OPENAI_API_KEY`; `OPENAI_BASE_URL`. At
///   OpenAI itself, requests with tools that OpenAI runs go to its Responses
///   API, except those to models for search.
/// - `openai-responses:NAME`: the Responses API; the same variables.
/// - `gemini-…` or `gemini:NAME`: generateContent; `GOOGLE_API_KEY`, else
///   `GEMINI_API_KEY`; `GOOGLE_GEMINI_BASE_URL`.
/// - `claude-…` or `anthropic:NAME`: messages; `ANTHROPIC_API_KEY`;
///   `ANTHROPIC_BASE_URL`.
/// - `projects/PROJECT/locations/LOCATION/publishers/google/models/NAME` (or
///   `…/publishers/anthropic/models/NAME`, `…/endpoints/ID`): the same at
///   Vertex AI.
/// - `scripted:FILE`: answers from the file; no key.
///
/// Gemini models are at Vertex AI, too, with `model_source::vertex`, and
/// without a base URL of the source if `GOOGLE_GENAI_USE_ENTERPRISE`, else
/// `GOOGLE_GENAI_USE_VERTEXAI`, is `true` or `1`. The base URL there is
/// `GOOGLE_VERTEX_BASE_URL`, else that of the location. Claude models are at
/// Vertex AI with `model_source::vertex` alone.
///
/// No key is needed if the base URL is not the vendor's, unless
/// `model_source::key_variable` names one. Fails with `errc::invalid_argument`
/// on an unknown name, a missing key or token, a project that is not set, a
/// variable or program that is not allowed, a base URL of a `.env` with a key
/// or token from elsewhere, a limit per minute that is not above 0, a bad URL,
/// and a URL that would expose the key: over plain `http` a key is sent to
/// loopback only. Fails as `read_script` if the script cannot be read.
result<model_ptr> open_model(const model_source& source,
                             const open_model_options& options = {});

} // namespace troupe
