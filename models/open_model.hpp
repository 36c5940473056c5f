// From a name to a model: `openai:NAME`, `gemini-NAME`, `claude-NAME`,
// `scripted:FILE`.

#pragma once

#include "troupe/models/http_model.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What is asked for, as `model` of an agent file says it. Keys come from the
/// environment alone.
struct model_source {
  std::string name;
  /// In place of the vendor's, and of `OPENAI_BASE_URL` and its like.
  std::string base_url = {};
  /// The environment variable of the key, in place of the vendor's; one of the
  /// table below or of `open_model_options::allowed_variables`.
  std::string key_variable = {};
  /// Sent with each request; none of them holds a key.
  http_headers headers = {};
  bool streams = false;
  http_timeouts timeouts = {};
  retry_rule retries = {};
  rate_limit_options limit = {};

  friend bool operator==(const model_source&, const model_source&) = default;
};

struct open_model_options {
  /// Environment variables that a source may name for its key, besides those of
  /// the table below. A source comes from a file that others may have written;
  /// any further variable would let the file send secrets to its own base URL.
  std::vector<std::string> allowed_variables = {};
  /// Where a relative `scripted:FILE` starts.
  std::filesystem::path base = {};
  /// Reads an environment variable; unset: the process's.
  std::function<std::optional<std::string>(const std::string& name)> variable
    = {};
  /// Null: the one that all models share.
  std::shared_ptr<http_client> client = {};
};

/// Opens a model.
///
/// | name | format | key | base URL |
/// | --- | --- | --- | --- |
/// | `openai:NAME` | chat completions | `OPENAI_API_KEY` | `OPENAI_BASE_URL` |
/// | `gemini-…`, `gemini:NAME` | generateContent | `GOOGLE_API_KEY`, else
/// `GEMINI_API_KEY` | `GOOGLE_GEMINI_BASE_URL` | | `claude-…`, `anthropic:NAME`
/// | messages | `ANTHROPIC_API_KEY` | `ANTHROPIC_BASE_URL` | | `scripted:FILE`
/// | none: answers from the file | | |
///
/// A base URL that is not the vendor's needs no key. Fails with
/// `errc::invalid_argument` on an unknown name, a missing key, a variable that
/// is not allowed, a URL that is none and one that would show the key to others
/// (`http_model_options::key`), and with what reading the script failed with.
result<model_ptr> open_model(const model_source& source,
                             const open_model_options& options = {});

} // namespace troupe
