// Parts of requests that all vendors share: media, ids of calls, settings.
// Internal.

#pragma once

#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/http/client.hpp"
#include "troupe/models/model.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Returns true if the model itself has said it.
bool is_by_model(const content& said);

/// Returns the conversation without blank contents. All vendors want the last
/// content to be addressed to the model; if it is not, or there is none, `"Go
/// on."` is appended, as in ADK's BaseLlm.
std::vector<std::shared_ptr<const content>>
conversation_of(const model_request& asked);

/// A vendor's rule for names of tools.
struct tool_name_rule {
  std::size_t bytes_max;
  /// Allowed characters besides ASCII letters and digits.
  std::string_view signs;
  bool may_begin_with_any = true;
};

/// Checks the names, because some vendors accept fewer names than agents do.
/// Fails with `errc::invalid_argument`, naming the tool.
result<void> check_tool_names(const model_request& asked,
                              const tool_name_rule& rule,
                              std::string_view provider);

/// Returns the schema of the arguments; an object schema even if a tool has
/// none.
json parameters_of(const tool_declaration& tool);

/// Returns `{"name": string, "description"?: string}` and the schema of the
/// arguments under the name `schema`.
json declaration_of(const tool_declaration& tool, const char* schema);

/// Returns the JSON text of an object, `{}` for null. Throws `json::exception`
/// on text that is not UTF-8.
std::string object_text(const value& object);

/// Bytes, or the URI of bytes.
struct media {
  /// In lower case and without parameters, for example `"image/png"`.
  std::string mime_type;
  std::string base64;
  /// Used instead of `base64` if it is not empty.
  std::string uri;
  std::string display_name;

  bool is_inline() const { return uri.empty(); }
};

/// Returns the inline data or file of a part; nothing for a part of another
/// kind. Fails with `errc::invalid_argument`, also on data without a MIME type.
result<std::optional<media>> media_of(const part& said);

/// Makes the error of a request that the format cannot carry,
/// `errc::invalid_argument`.
error bad_request(std::string_view why);

/// Makes the error `"{provider} takes no {mime type} …"`.
error no_such_media(std::string_view provider, const media& which);

/// Returns a signature of Anthropic, which is text, from `{"thoughtSignature":
/// base64}`; nothing if the bytes are not text, as Gemini's are not.
std::optional<std::string> text_signature_of(const json& fields);

/// Returns the kind of a part for error messages, for example
/// `"executableCode"`.
std::string kind_of(const part& said);

/// Maps ids of calls to ids that a vendor accepts, equal for a call and its
/// response.
class call_ids {
public:
  enum class form : std::uint8_t {
    /// Keeps ids that Anthropic accepts: up to 40 characters of `A-Za-z0-9_-`.
    plain,
    /// Makes all ids nine characters of `a-z0-9`. Mistral and vLLM demand "a-z,
    /// A-Z, 0-9, with a length of 9"; all other servers accept it.
    nine,
  };

  explicit call_ids(form made) : form_(made) {}

  const std::string& id_of(const function_call& call);

  /// Returns the id for a response. A response without an id gets that of the
  /// oldest call of its name without an id.
  std::string id_of(const function_response& answer);

private:
  std::string next_free();
  const std::string& mapped(const std::string& id);

  const form form_;
  std::map<std::string, std::string> known_;
  std::set<std::string> used_;
  std::multimap<std::string, std::string> unnamed_; // Ids by function.
  std::size_t count_ = 0;
};

/// Wire fields of a generation config, in camelCase or with underscores.
class generation_settings {
public:
  /// Reads a config; null fields count as absent, and so does
  /// `automaticFunctionCalling`, which has no effect in ADK. Fails with
  /// `errc::invalid_argument` if it is not an object, has one field in two
  /// spellings, or has another setting of ADK's client, such as `httpOptions`.
  static result<generation_settings> open(const value& config);

  /// Removes and returns a field; null if it is absent.
  json take(std::string_view name);

  /// A field's name in camelCase and its name in the body.
  struct renaming {
    std::string_view from;
    const char* to;
  };

  /// Moves the fields that are present to `body`, in this order.
  void move_to(json& body, std::initializer_list<renaming> fields);

  /// Fails with `errc::invalid_argument` if one of these fields is present,
  /// because it would have no effect.
  result<void> refuse(std::initializer_list<const char*> names,
                      std::string_view provider);

  /// Returns the fields that were not taken, in their own spelling. They are
  /// extensions of the vendor.
  json rest() &&;
  json rest_in_camel_case() &&;

private:
  std::map<std::string, std::pair<std::string, json>>
    fields_; // Indexed by camelCase name.
};

enum class calling_mode : std::uint8_t { automatic, any, none, one };

/// Functions that a model may or must call.
struct tool_choice {
  calling_mode mode = calling_mode::automatic;
  /// Set only for `calling_mode::one`.
  std::string function;
};

/// Moves ADK's `toolConfig`, if it is set, to the field `tool_choice` of the
/// body, in the form that `form_of` returns. The config is
/// `{"functionCallingConfig": {"mode": "AUTO" | "ANY" | "NONE",
/// "allowedFunctionNames"?: [string]}}` with at most one name, in either
/// spelling. Fails with `errc::invalid_argument`.
result<void> add_tool_choice(generation_settings& settings,
                             json& body,
                             json (*form_of)(const tool_choice&),
                             std::string_view provider);

/// Fails with `errc::invalid_argument` if a penalty, a seed or log
/// probabilities are set.
result<void> refuse_sampling(generation_settings& settings,
                             std::string_view provider);

/// Adds the fields that were not taken to the body, as the vendor's own fields.
/// Fails with `errc::invalid_argument` if the request itself sets one of them,
/// on a field that neither OpenAI nor Anthropic supports, and on a
/// `candidateCount` above 1. The last two would have no effect.
result<void> add_other_settings(generation_settings settings,
                                json& body,
                                std::string_view provider);

/// Returns the header with the key as a bearer token; none without a key.
http_headers bearer_header(const wire_options& with);

/// Makes a request with a JSON body. Fails with `errc::invalid_argument` on a
/// key that is not the text of one header. Throws `json::exception` on text
/// that is not UTF-8.
result<http_request> json_request(const wire_options& with,
                                  std::string_view path,
                                  http_headers headers,
                                  const json& body);

} // namespace troupe
