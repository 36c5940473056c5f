#include "troupe/server/access/origin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace troupe::serving {

namespace {

bool is_dotted_loopback(std::string_view name) {
  constexpr std::string_view digits = "0123456789.";
  return name.starts_with("127.") && name.find_first_not_of(digits) == name.npos
         && std::ranges::count(name, '.') == 3;
}

bool is_local_name(std::string_view given) {
  const auto name = lower_case(given);
  return name == "localhost" || name == "::1" || is_dotted_loopback(name);
}

// The part of an origin behind the scheme.
std::string_view authority_of(std::string_view origin) {
  const auto mark = origin.find("://");
  return mark == origin.npos ? std::string_view() : origin.substr(mark + 3);
}

bool is_named(const std::string& origin, const origin_rules& rules) {
  return std::ranges::any_of(rules.allowed, [&origin](const auto& each) {
    return lower_case(each) == lower_case(origin);
  });
}

bool is_allowed(const std::string& origin, const origin_rules& rules) {
  return is_named(origin, rules)
         || std::ranges::find(rules.allowed, "*") != rules.allowed.end();
}

// Returns true for the site of a proxy, which `*` does not name.
bool is_allowed_host(std::string_view host, const origin_rules& rules) {
  if (is_local_name(host_name(host)))
    return true;
  return rules.is_behind_proxy
         && std::ranges::any_of(rules.allowed, [host](const auto& each) {
              const auto site = authority_of(each);
              return !site.empty() && lower_case(site) == lower_case(host);
            });
}

response refused(std::string_view why, const origin_rules& rules) {
  std::string text(why);
  if (rules.is_behind_proxy)
    text += "; behind a proxy, X-Forwarded-Proto names the scheme, and "
            "--allow-origin the site";
  return text_response(403, text);
}

} // namespace

std::string_view host_name(std::string_view authority) {
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    return end == authority.npos ? std::string_view()
                                 : authority.substr(1, end - 1);
  }
  return authority.substr(0, authority.find(':'));
}

std::optional<response> check_origin(const request& asked,
                                     std::string_view scheme,
                                     const origin_rules& rules) {
  const auto* named = asked.header("host");
  const std::string host = named == nullptr ? "" : *named;
  if (rules.loopback_only && !is_allowed_host(host, rules))
    return refused("Forbidden: host not allowed", rules);
  const auto* origin = asked.header("origin");
  if (origin == nullptr || is_allowed(*origin, rules))
    return std::nullopt;
  // A page of this server itself. Its host was checked above.
  if (lower_case(*origin) == lower_case(fmt::format("{}://{}", scheme, host)))
    return std::nullopt;
  return refused("Forbidden: origin not allowed", rules);
}

std::optional<response> allow_origin(const request& asked,
                                     const origin_rules& rules,
                                     header_list& headers) {
  const auto* origin = asked.header("origin");
  if (origin == nullptr || !is_allowed(*origin, rules))
    return std::nullopt;
  // `*` stands for sites without a name here, so they get no credentials.
  const bool has_name = is_named(*origin, rules);
  headers.emplace_back("access-control-allow-origin",
                       has_name ? *origin : std::string("*"));
  if (has_name)
    headers.emplace_back("access-control-allow-credentials", "true");
  headers.emplace_back("access-control-expose-headers",
                       "etag, troupe-error, troupe-invocation-id, "
                       "troupe-next-cursor");
  headers.emplace_back("vary", "origin");
  if (asked.method != "OPTIONS"
      || asked.header("access-control-request-method") == nullptr)
    return std::nullopt;
  auto answer = text_response(200, "OK").with("access-control-allow-methods",
                                              "GET, POST, PATCH, PUT, DELETE");
  if (const auto* names = asked.header("access-control-request-headers"))
    answer = std::move(answer).with("access-control-allow-headers", *names);
  return std::move(answer).with("access-control-max-age", "600");
}

} // namespace troupe::serving
