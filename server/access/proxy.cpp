#include "troupe/server/access/proxy.hpp"

#include "troupe/core/support/blank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe::serving {

namespace {

constexpr std::string_view scheme_header = "x-forwarded-proto";
constexpr std::string_view forwarded_header = "forwarded";

// The last element of a list, which is that of the nearest proxy.
std::string_view last_of(std::string_view list) {
  const auto comma = list.rfind(',');
  return trimmed(comma == list.npos ? list : list.substr(comma + 1));
}

// The scheme in `for=192.0.2.60;proto=https;by=203.0.113.43`.
std::optional<std::string> proto_in(std::string_view element) {
  while (!element.empty()) {
    const auto end = std::min(element.find(';'), element.size());
    const auto pair = lower_case(trimmed(element.substr(0, end)));
    constexpr std::string_view name = "proto=";
    if (pair.starts_with(name))
      return std::string(
        trimmed(std::string_view(pair).substr(name.size()), "\""));
    element.remove_prefix(std::min(end + 1, element.size()));
  }
  return std::nullopt;
}

} // namespace

proxy::proxy(address_range addresses, std::string user_header)
  : addresses_(addresses),
    user_header_(std::move(user_header)) {}

result<proxy> proxy::make(const std::string& address,
                          const std::string& user_header) {
  auto addresses = address_range::parse(address);
  if (!addresses)
    return error(errc::invalid_argument,
                 "the trusted proxy: " + addresses.error().message());
  return proxy(*addresses, lower_case(user_header));
}

std::optional<std::string> proxy::scheme_of(const request& asked) {
  if (const auto* scheme = asked.header(scheme_header))
    return lower_case(last_of(*scheme));
  if (const auto* forwarded = asked.header(forwarded_header))
    return proto_in(last_of(*forwarded));
  return std::nullopt;
}

std::optional<response> proxy::check_headers(const request& asked) const {
  for (const std::string_view name :
       {std::string_view(user_header_), scheme_header, forwarded_header})
    if (std::ranges::count(
          asked.headers,
          name,
          [](const auto& field) { return std::string_view(field.first); })
        > 1)
      return json_response(
        {{"detail", fmt::format("the header {} comes twice", name)}}, 400);
  return std::nullopt;
}

} // namespace troupe::serving
