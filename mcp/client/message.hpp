// JSON-RPC 2.0 messages of MCP.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::mcp {

inline constexpr std::string_view newest_handshake_version = "2025-11-25";
inline constexpr std::string_view stateless_version = "2026-07-28";

// Codes of JSON-RPC errors.
inline constexpr int parse_error = -32700;
inline constexpr int invalid_request = -32600;
inline constexpr int method_not_found = -32601;
inline constexpr int invalid_params = -32602;
inline constexpr int unsupported_version = -32022;

/// Returns true for the versions that begin with `initialize`.
bool is_handshake_version(std::string_view version) noexcept;

json make_request(std::int64_t id, std::string_view method, json params);
json make_notification(std::string_view method, json params = empty_object());
json make_answer(const json& id, json result);
json make_error(const json& id, int code, std::string_view text);

/// The part of `params._meta` that each request of the stateless version has.
json stateless_meta();

/// A message of the other side. The pointers refer to the parsed message.
struct incoming {
  enum class form : std::uint8_t { unknown, request, notification, answer };

  form kind = form::unknown;
  /// Of a request or an answer; any JSON.
  const json* id = nullptr;
  std::string method;
  /// Of a request or notification; null if there are none.
  const json* params = nullptr;
  /// Of an answer: the result or the error's message.
  const json* result = nullptr;
  std::string failure;
  int code = 0;
};

/// Reads a message; the kind is `unknown` for any other JSON. `message`
/// must outlive the returned object.
incoming read_message(const json& message);

} // namespace troupe::mcp
