// What the requests of all vendors are made of: media, ids of calls, settings.
// Internal; not installed.

#pragma once

#include "troupe/models/http_client.hpp"
#include "troupe/models/model.hpp"
#include "troupe/models/wire_format.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Whether the model that is asked has said it itself.
bool is_by_model(const content& said);

/// The conversation, which all vendors want to end with words to the model: if
/// it is empty or ends with the model's own, `"Go on."` follows (ADK's
/// BaseLlm does the same). Contents that say nothing but blanks are left out.
std::vector<std::shared_ptr<const content>>
conversation_of(const model_request& asked);

/// What a vendor takes as the name of a tool.
struct tool_name_rule {
  std::size_t bytes_max;
  /// Besides letters and digits of ASCII.
  std::string_view signs;
  bool may_begin_with_any = true;
};

/// Fails with `errc::invalid_argument`, naming the tool: agents take names that
/// not every vendor does.
result<void> check_tool_names(const model_request& asked,
                              const tool_name_rule& rule,
                              std::string_view provider);

/// Schema of the arguments, an object schema even if a tool has none.
json parameters_of(const tool_declaration& tool);

/// The JSON text of an object; of null, `{}`. Throws what nlohmann throws on
/// text that is not UTF-8.
std::string object_text(const value& object);

/// Bytes or a place to get them from.
struct media {
  /// Lower case, without parameters: `"image/png"`.
  std::string mime_type;
  std::string base64;
  /// Instead of `base64`.
  std::string uri;
  std::string display_name;

  bool is_inline() const { return uri.empty(); }
};

/// The inline data or file of a part, or nothing if it is of another kind.
/// Fails with `errc::invalid_argument`, also on one without a MIME type.
result<std::optional<media>> media_of(const part& said);

/// `"{provider} takes no {mime type} …"`.
error no_such_media(std::string_view provider, const media& which);

/// A signature as Anthropic gives it, which is text; or nothing. Those of
/// Gemini are bytes. `{"thoughtSignature": base64}`
std::optional<std::string> text_signature_of(const json& fields);

/// What a part is, for reasons: `"executableCode"`.
std::string kind_of(const part& said);

/// Ids that a vendor accepts, the same for a call and its response.
class call_ids {
public:
  enum class form : std::uint8_t {
    /// Those that Anthropic accepts stay: up to 40 of `A-Za-z0-9_-`.
    plain,
    /// All become nine of `a-z0-9`: Mistral's "must be a-z, A-Z, 0-9, with a
    /// length of 9", also of vLLM; no other server refuses them.
    nine,
  };

  explicit call_ids(form made) : form_(made) {}

  const std::string& id_of(const function_call& call);

  /// One without an id answers the oldest call of its name without one.
  std::string id_of(const function_response& answer);

private:
  std::string next_free();
  const std::string& mapped(const std::string& id);

  const form form_;
  std::map<std::string, std::string> known_;
  std::set<std::string> used_;
  std::multimap<std::string, std::string> unnamed_; // By function.
  std::size_t count_ = 0;
};

/// Wire fields of a generation config, in ADK's spelling or with underscores.
class generation_settings {
public:
  /// Null fields count as absent. Fails with `errc::invalid_argument` on what
  /// is no object, and on one field in two spellings.
  static result<generation_settings> open(const value& config);

  /// The field, or null.
  json take(std::string_view name);

  /// What nobody took, as it was spelled: fields of the vendor's own.
  json rest() &&;
  json rest_in_camel_case() &&;

private:
  std::map<std::string, std::pair<std::string, json>> fields_; // By camelCase.
};

enum class calling_mode : std::uint8_t { automatic, any, none, one };

/// Which functions a model may or has to call.
struct tool_choice {
  calling_mode mode = calling_mode::automatic;
  /// Of `calling_mode::one`.
  std::string function;
};

/// ADK's `toolConfig`, or nothing: `{"functionCallingConfig": {"mode": "AUTO" |
/// "ANY" | "NONE", "allowedFunctionNames"?: [string]}}`, of names at most one.
/// Fails with `errc::invalid_argument`.
result<std::optional<tool_choice>>
take_tool_choice(generation_settings& settings, std::string_view provider);

/// Fields of ADK's generation config that neither OpenAI nor Anthropic has, and
/// a `candidateCount` above 1. Fails with `errc::invalid_argument` if one of
/// them is set: what would have no effect is told.
result<void> refuse_gemini_fields(generation_settings& settings,
                                  std::string_view provider);

/// Fails with `errc::invalid_argument` if an own field of the vendor is one
/// that the request itself makes.
result<void> add_own_fields(json rest, json& body, std::string_view provider);

/// A request with a JSON body. Fails with `errc::invalid_argument` on text that
/// is not UTF-8, and on a header or path that could be taken for two.
result<http_request> json_request(const wire_options& with,
                                  std::string_view path,
                                  http_headers headers,
                                  const json& body);

} // namespace troupe
