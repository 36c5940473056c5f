#include "troupe/mcp/client/message.hpp"

#include "troupe/core/support/text_in.hpp"

#include <algorithm>
#include <array>

namespace troupe::mcp {

bool is_handshake_version(std::string_view version) noexcept {
  constexpr std::array<std::string_view, 4> known
    = {newest_handshake_version, "2025-06-18", "2025-03-26", "2024-11-05"};
  return std::ranges::find(known, version) != known.end();
}

json make_request(std::int64_t id, std::string_view method, json params) {
  return {{"jsonrpc", "2.0"},
          {"id", id},
          {"method", method},
          {"params", std::move(params)}};
}

json make_notification(std::string_view method, json params) {
  json made{{"jsonrpc", "2.0"}, {"method", method}};
  if (!params.empty())
    made["params"] = std::move(params);
  return made;
}

json make_answer(const json& id, json result) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

json make_error(const json& id, int code, std::string_view text) {
  return {{"jsonrpc", "2.0"},
          {"id", id},
          {"error", {{"code", code}, {"message", text}}}};
}

json stateless_meta() {
  return {{"io.modelcontextprotocol/protocolVersion", stateless_version},
          {"io.modelcontextprotocol/clientCapabilities", json::object()},
          {"io.modelcontextprotocol/clientInfo",
           {{"name", "troupe"}, {"version", TROUPE_VERSION}}}};
}

incoming read_message(const json& message) {
  incoming read;
  if (!message.is_object())
    return read;
  const auto find = [&message](const char* field) -> const json* {
    const auto found = message.find(field);
    return found == message.end() ? nullptr : &*found;
  };
  read.id = find("id");
  if (const auto* method = find("method");
      method != nullptr && method->is_string()) {
    read.method = method->get<std::string>();
    read.kind = read.id != nullptr ? incoming::form::request
                                   : incoming::form::notification;
    read.params = find("params");
    return read;
  }
  if (read.id == nullptr)
    return read;
  read.result = find("result");
  if (read.result != nullptr) {
    read.kind = incoming::form::answer;
  } else if (const auto* failure = find("error");
             failure != nullptr && failure->is_object()) {
    read.kind = incoming::form::answer;
    read.failure = text_in(*failure, "message");
    if (const auto code = failure->find("code");
        code != failure->end() && code->is_number_integer())
      read.code = code->get<int>();
  }
  return read;
}

} // namespace troupe::mcp
