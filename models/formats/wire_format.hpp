// The interface of a vendor's HTTP form: it builds requests and reads answers.
//
// It is pure: no sockets, no time, and no key but the one of the request.

#pragma once

#include "troupe/models/http/client.hpp"
#include "troupe/models/http/sse_reader.hpp"
#include "troupe/models/model.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Options of a request. The meaning of its answer may depend on them.
struct wire_options {
  /// Optional forms of a request that the server has refused and that are left
  /// out.
  struct refused_forms {
    /// Thoughts of earlier answers.
    bool thoughts = false;
    /// A budget of tokens for thoughts; the model decides itself without it.
    bool thinking_budget = false;
    /// A schema that is enforced; without it the schema is only advice.
    bool strict_schema = false;
  };

  /// The vendor's name of the model.
  std::string model;
  /// Base URL in the form of the vendor's own libraries, without a slash at its
  /// end: `https://api.openai.com/v1`,
  /// `https://generativelanguage.googleapis.com`, `https://api.anthropic.com`.
  std::string base_url;
  /// Empty for no key.
  std::string key;
  /// True if the answer comes in pieces.
  bool streams = false;
  refused_forms without = {};
  /// An answer that the server has paused. The request lets it continue, and
  /// the answer is both together. Null for a new answer.
  std::shared_ptr<const model_response> so_far = {};
};

/// Joins the pieces of one streamed answer. Used by one thread at a time.
class stream_reader {
public:
  virtual ~stream_reader() = default;

  /// Takes one event and adds its text to `pieces` as partial responses. Fails
  /// with `errc::model_failed` if the event does not have the form of the
  /// vendor, or is an error; with `errc::busy` if that error may pass. Not
  /// called again after a failure.
  virtual result<void> take(const sse_event& next,
                            std::vector<model_response>& pieces)
    = 0;

  /// Returns true if the stream has declared its end. Not all streams do.
  virtual bool has_ended() const noexcept = 0;

  /// Returns the whole answer; called once, after the end of the stream. Fails
  /// with `errc::busy` if the stream broke off before its end, otherwise as
  /// `take`.
  virtual result<model_response> finish() = 0;
};

/// Immutable and thread-safe.
class wire_format {
public:
  virtual ~wire_format() = default;

  /// `"OpenAI"`, `"Gemini"` or `"Anthropic"`, for error messages.
  virtual std::string_view provider() const noexcept = 0;

  /// Checks the tools that the vendor runs for `model`, its own name of the
  /// model. Fails with `errc::invalid_argument`, naming the tool but not the
  /// model.
  virtual result<void> check_tools_of(std::string_view model,
                                      const std::vector<vendor_tool>& wanted,
                                      bool beside_functions) const = 0;

  /// Returns the format that a request with these tools of the vendor needs in
  /// place of this one, by the model and the base URL of `asked`; null for this
  /// one. The default is null.
  virtual std::shared_ptr<const wire_format>
  format_for(const std::vector<vendor_tool>& wanted,
             const wire_options& asked) const;

  /// Builds a request; time-outs are not set. Fails with
  /// `errc::invalid_argument` on tools, content or settings that the format
  /// cannot carry, and on text that is not UTF-8.
  result<http_request> make_request(const model_request& asked,
                                    const wire_options& with) const;

  /// Reads a whole answer with a status of 200 to 299. Fails with
  /// `errc::model_failed`, or with `errc::busy` if the failure may pass.
  virtual result<model_response>
  read_answer(std::string_view body, const wire_options& asked) const = 0;

  virtual std::unique_ptr<stream_reader>
  read_stream(const wire_options& asked) const = 0;

  /// Returns options that avoid the form which this answer refuses; its status
  /// is an error. Returns nothing if the answer refuses something else, or the
  /// form was left out already. The default has no such form.
  virtual std::optional<wire_options> without_refused(
    int status, std::string_view body, const wire_options& asked) const;

  /// Returns options of a request that continues the answer if the server has
  /// paused it, or nothing if it is complete. The default returns nothing.
  virtual std::optional<wire_options>
  continued(const model_response& answer, const wire_options& asked) const;

  /// Returns the vendor's description of a failure (code or type, and message)
  /// as one line of at most 500 bytes in which `key` is masked. The body may be
  /// anything: JSON of the vendor, other JSON, HTML, or nothing.
  std::string failure_of(int status,
                         std::string_view body,
                         std::string_view key = {}) const;

  /// Checks text found outside SSE events (`sse_reader::stray`). Fails as
  /// `stream_reader::take` does if it is an error of the vendor.
  result<void> check_stray(std::string_view text) const;

private:
  // Builds the request. May throw `json::exception` on text that is not UTF-8.
  virtual result<http_request>
  build_request(const model_request& asked, const wire_options& with) const = 0;
};

using wire_format_ptr = std::shared_ptr<const wire_format>;

/// Chat completions, for OpenAI and all compatible servers.
wire_format_ptr openai_format();

/// The Responses API of OpenAI, for servers that have it.
wire_format_ptr openai_responses_format();

/// The servers of Google that have Gemini models.
enum class gemini_host : std::uint8_t {
  developer, ///< generativelanguage.googleapis.com, with an API key.
  vertex,    ///< Vertex AI, with an access token.
  express,   ///< Vertex AI, with an API key.
};

/// `generateContent` and `streamGenerateContent`. At Vertex AI, the name of the
/// model is its resource, `"projects/…"` or `"publishers/…"`.
wire_format_ptr gemini_format(gemini_host host);

/// The same at `gemini_host::developer`.
wire_format_ptr gemini_format();

/// The servers that have Claude models.
enum class anthropic_host : std::uint8_t {
  anthropic, ///< api.anthropic.com, with an API key.
  vertex,    ///< Vertex AI, with an access token.
};

/// Messages. At Vertex AI, the name of the model is its resource,
/// `"projects/…"`.
wire_format_ptr anthropic_format(anthropic_host host);

/// The same at `anthropic_host::anthropic`.
wire_format_ptr anthropic_format();

} // namespace troupe
