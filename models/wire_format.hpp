// How a vendor's HTTP interface asks a model, and what its answers mean.
//
// Pure: no sockets, no time, no keys but the one that a request is made with.

#pragma once

#include "troupe/models/http_client.hpp"
#include "troupe/models/model.hpp"
#include "troupe/models/sse_reader.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What a request is made with; what its answer means may depend on it.
struct wire_options {
  /// Forms of a request that the server has refused, and that it does without.
  struct refused_forms {
    /// Thoughts of earlier answers.
    bool thoughts = false;
    /// A budget of tokens for thoughts: the model decides itself.
    bool thinking_budget = false;
    /// A schema that answers are held to: it is advice.
    bool strict_schema = false;
  };

  /// The vendor's name of the model.
  std::string model;
  /// As the vendor's own libraries take it, without a slash at its end:
  /// `https://api.openai.com/v1`, `https://generativelanguage.googleapis.com`,
  /// `https://api.anthropic.com`.
  std::string base_url;
  /// Empty: none is sent.
  std::string key;
  /// Whether the answer comes in pieces.
  bool streams = false;
  refused_forms without = {};
};

/// Puts the pieces of one streamed answer together. For one thread at a time.
class stream_reader {
public:
  virtual ~stream_reader() = default;

  /// Takes one event; what it says at once is added to `pieces` as partial
  /// responses. Fails with `errc::model_failed` on what is no event of the
  /// format, and on an error that the vendor sends within the stream; with
  /// `errc::busy` on one that may pass if the model is asked again. Nothing is
  /// taken after that.
  virtual result<void> take(const sse_event& next,
                            std::vector<model_response>& pieces)
    = 0;

  /// Whether the stream has said that nothing follows; not all do.
  virtual bool has_ended() const noexcept = 0;

  /// The whole answer, when the stream has ended; called once. Fails with
  /// `errc::busy` if it broke off before its end, else as `take`.
  virtual result<model_response> finish() = 0;
};

/// Immutable, thread-safe.
class wire_format {
public:
  virtual ~wire_format() = default;

  /// `"OpenAI"`, `"Gemini"`, `"Anthropic"`: what errors name.
  virtual std::string_view provider() const noexcept = 0;

  /// Fails with `errc::invalid_argument` on content or settings that the format
  /// cannot carry. Time-outs are not set.
  virtual result<http_request> make_request(const model_request& asked,
                                            const wire_options& with) const = 0;

  /// A whole answer with a status of 200 to 299. Fails with
  /// `errc::model_failed`, or `errc::busy` if that may pass.
  virtual result<model_response>
  read_answer(std::string_view body, const wire_options& asked) const = 0;

  virtual std::unique_ptr<stream_reader>
  read_stream(const wire_options& asked) const = 0;

  /// How the same can be asked in a form that this answer, whose status is no
  /// success, does not refuse. Nothing if it refuses something else, or what
  /// was left out already.
  virtual std::optional<wire_options> without_refused(
    int status, std::string_view body, const wire_options& asked) const = 0;

  /// The vendor's own words in an answer with another status, whatever the body
  /// is (JSON of the vendor, other JSON, HTML, nothing): its code or type, and
  /// its message, as one line of at most 500 bytes in which `key` is masked.
  std::string failure_of(int status,
                         std::string_view body,
                         std::string_view key = {}) const;

  /// What stood in a stream beside its events (`sse_reader::stray`). Fails as
  /// `stream_reader::take` if it is an error of the vendor.
  result<void> check_stray(std::string_view text) const;
};

using wire_format_ptr = std::shared_ptr<const wire_format>;

/// Chat completions, of OpenAI and all compatible servers.
wire_format_ptr openai_format();

/// `generateContent` and `streamGenerateContent`.
wire_format_ptr gemini_format();

/// Messages.
wire_format_ptr anthropic_format();

} // namespace troupe
