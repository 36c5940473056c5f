#include "troupe/mcp/server/exchange.hpp"

#include "troupe/core/support/text_in.hpp"
#include "troupe/mcp/server/run_answer.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::mcp {

namespace {

constexpr std::string_view meta_version
  = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view meta_capabilities
  = "io.modelcontextprotocol/clientCapabilities";

// The agent does not change while the server runs.
constexpr int list_lifetime_ms = 3'600'000;

// A field of an object; null if there is none.
const json* field_of(const json* object, std::string_view name) {
  if (object == nullptr || !object->is_object())
    return nullptr;
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

bool is_id(const json& id) {
  return id.is_string() || id.is_number_integer();
}

// The span that a request names in `_meta`, as MCP's rules for traces say.
trace_context read_trace(const json* meta) {
  if (meta == nullptr || !meta->is_object())
    return {};
  return accept_trace_context(text_in(*meta, "traceparent"),
                              text_in(*meta, "tracestate"));
}

json server_info(const agent& root) {
  return {{"name", root.name()}, {"version", TROUPE_VERSION}};
}

json tool_capability() {
  json made = json::object();
  made["tools"] = json::object();
  return made;
}

// The fields that each result of the stateless version has.
json result_fields(bool is_stateless) {
  json made = json::object();
  if (is_stateless)
    made["resultType"] = "complete";
  return made;
}

void add_lifetime(json& result) {
  result["cacheScope"] = "private";
  result["ttlMs"] = list_lifetime_ms;
}

} // namespace

void exchange::refuse(const json& id, int code, std::string_view why) {
  output_.write(make_error(id, code, why));
}

void exchange::refuse_long_message(std::size_t bytes_max) {
  refuse(nullptr,
         invalid_request,
         fmt::format("a message has more than {} bytes", bytes_max));
}

void exchange::take(std::string_view line) {
  const auto parsed = parse_json(line);
  if (!parsed) {
    refuse(nullptr, parse_error, parsed.error().message());
    return;
  }
  if (parsed->is_array()) {
    refuse(nullptr,
           invalid_request,
           "batches are not supported: send each message in a line");
    return;
  }
  const auto message = read_message(*parsed);
  switch (message.kind) {
  case incoming::form::request:
    if (!is_id(*message.id) || text_in(*parsed, "jsonrpc") != "2.0")
      refuse(is_id(*message.id) ? *message.id : json(),
             invalid_request,
             "a request has \"jsonrpc\": \"2.0\", and an id that is a text "
             "or an integer");
    else
      answer(message);
    return;
  case incoming::form::notification:
    take_notification(message);
    return;
  // The server has no requests under way.
  case incoming::form::answer:
    return;
  case incoming::form::unknown:
    refuse(nullptr,
           invalid_request,
           "expected a request or a notification of JSON-RPC 2.0");
  }
}

void exchange::take_notification(const incoming& notice) {
  if (notice.method != "notifications/cancelled")
    return;
  if (const auto* id = field_of(notice.params, "requestId"))
    calls_.cancel(*id);
}

void exchange::answer(const incoming& request) {
  if (request.params != nullptr && !request.params->is_object()) {
    refuse(*request.id, invalid_params, "params is not an object");
    return;
  }
  if (calls_.knows(*request.id)) {
    refuse(
      *request.id,
      invalid_request,
      fmt::format("a request with id {} is under way", to_text(*request.id)));
    return;
  }
  if (request.method == "initialize") {
    answer_initialize(request);
    return;
  }
  const auto* meta = field_of(request.params, "_meta");
  const auto* version = field_of(meta, meta_version);
  if (version == nullptr) {
    if (!is_initialized_ && request.method != "ping")
      refuse(*request.id,
             invalid_params,
             fmt::format("send initialize first, or name the version {} in "
                         "params._meta[\"{}\"]",
                         stateless_version,
                         meta_version));
    else
      answer_method(request, false);
    return;
  }
  if (*version != stateless_version) {
    auto refused = make_error(*request.id,
                              unsupported_version,
                              version->is_string()
                                ? "unsupported version of the protocol"
                                : "the version of the protocol is not a text");
    refused["error"]["data"] = {{"supported", json::array({stateless_version})},
                                {"requested", *version}};
    output_.write(refused);
    return;
  }
  const auto* capabilities = field_of(meta, meta_capabilities);
  if (capabilities == nullptr || !capabilities->is_object())
    refuse(*request.id,
           invalid_params,
           fmt::format("params._meta has no object \"{}\"", meta_capabilities));
  else
    answer_method(request, true);
}

void exchange::answer_initialize(const incoming& request) {
  const auto* wanted = field_of(request.params, "protocolVersion");
  if (wanted == nullptr || !wanted->is_string()) {
    refuse(*request.id,
           invalid_params,
           "params.protocolVersion is missing, or not a text");
    return;
  }
  if (is_initialized_) {
    refuse(*request.id, invalid_request, "initialize was sent before");
    return;
  }
  is_initialized_ = true;
  const auto& version = wanted->get_ref<const std::string&>();
  json result = json::object();
  result["protocolVersion"] = is_handshake_version(version)
                                ? std::string_view(version)
                                : newest_handshake_version;
  result["capabilities"] = tool_capability();
  result["serverInfo"] = server_info(offered_.root());
  output_.write(make_answer(*request.id, std::move(result)));
}

void exchange::answer_method(const incoming& request, bool is_stateless) {
  auto fields = result_fields(is_stateless);
  if (request.method == "tools/list") {
    answer_list(request, fields);
  } else if (request.method == "tools/call") {
    start_call(request, std::move(fields));
  } else if (request.method == "ping" && !is_stateless) {
    output_.write(make_answer(*request.id, json::object()));
  } else if (request.method == "server/discover" && is_stateless) {
    fields["supportedVersions"] = json::array({stateless_version});
    fields["capabilities"] = tool_capability();
    fields["_meta"]
      = {{"io.modelcontextprotocol/serverInfo", server_info(offered_.root())}};
    add_lifetime(fields);
    output_.write(make_answer(*request.id, std::move(fields)));
  } else {
    refuse(*request.id,
           method_not_found,
           fmt::format("unknown method '{}'", request.method));
  }
}

void exchange::answer_list(const incoming& request,
                           const json& version_fields) {
  // All tools fit on the first page, which has no cursor.
  if (field_of(request.params, "cursor") != nullptr) {
    refuse(*request.id, invalid_params, "unknown cursor: there is one page");
    return;
  }
  auto result = version_fields;
  result["tools"] = json::array({offered_.entry()});
  if (!version_fields.empty())
    add_lifetime(result);
  output_.write(make_answer(*request.id, std::move(result)));
}

void exchange::start_call(const incoming& request, json version_fields) {
  const auto refuse_params = [this, &request](std::string_view why) {
    refuse(*request.id, invalid_params, why);
  };
  const auto* name = field_of(request.params, "name");
  if (name == nullptr || !name->is_string())
    return refuse_params("params.name is missing, or not a text");
  if (*name != offered_.root().name())
    return refuse_params(fmt::format("unknown tool {}; there is one tool, '{}'",
                                     to_text(*name),
                                     offered_.root().name()));
  const auto* args = field_of(request.params, "arguments");
  if (args != nullptr && !args->is_object())
    return refuse_params("params.arguments is not an object");
  const auto* token
    = field_of(field_of(request.params, "_meta"), "progressToken");
  if (token != nullptr && !is_id(*token))
    return refuse_params(
      "params._meta.progressToken is neither a text nor an integer");
  auto asked = offered_.read(args != nullptr ? *args : json::object());
  auto started = result<void>();
  if (asked)
    asked->trace = read_trace(field_of(request.params, "_meta"));
  if (asked)
    started = calls_.start({.id = *request.id,
                            .progress_token = token ? *token : json(),
                            .asked = std::move(*asked),
                            .version_fields = version_fields});
  else
    started = asked.error();
  if (started)
    return;
  // A failed result and no error of the protocol, so that the model of the
  // client sees the reason.
  auto failed = failed_result(to_string(started.error()));
  failed.update(version_fields);
  output_.write(make_answer(*request.id, std::move(failed)));
}

} // namespace troupe::mcp
