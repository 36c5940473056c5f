#include "troupe/server/access/gate.hpp"

#include "troupe/core/key.hpp"
#include "troupe/core/support/blank.hpp"
#include "troupe/server/http/listener.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::serving {

namespace {

response refused(int status, std::string_view why, std::string_view code) {
  return json_response({{"detail", why}}, status)
    .with("troupe-error", std::string(code));
}

response unknown_caller() {
  return refused(401, "a valid token is needed", "unauthorized")
    .with("www-authenticate", "Bearer");
}

// The token of `Authorization: Bearer TOKEN`.
std::string_view token_in(const request& asked) {
  constexpr std::string_view scheme = "bearer ";
  const auto* header = asked.header("authorization");
  if (header == nullptr || header->size() <= scheme.size()
      || lower_case(std::string_view(*header).substr(0, scheme.size()))
           != scheme)
    return {};
  return trimmed(std::string_view(*header).substr(scheme.size()));
}

result<void> check(const server_options& options) {
  const bool knows_callers
    = !options.tokens.empty() || !options.trusted_header.empty();
  if (!options.trusted_header.empty() && options.trusted_proxy.empty())
    return error(errc::invalid_argument,
                 "a trusted header and the address of the proxy that sends it "
                 "belong together");
  if (!options.trusted_proxy.empty() && !knows_callers)
    return error(errc::invalid_argument,
                 "a trusted proxy needs the header by which it names users, or "
                 "tokens");
  if (!is_loopback(options.address) && !knows_callers)
    return error(errc::invalid_argument,
                 fmt::format("others may reach '{}': give a token file, or a "
                             "trusted header and its proxy",
                             options.address));
  if (options.requests_per_second < 0)
    return error(errc::invalid_argument,
                 "requests_per_second is below 0; 0 means no limit");
  return {};
}

} // namespace

gate::gate(const server_options& options)
  : per_second_(options.requests_per_second),
    rate_(options.requests_per_second) {
  origins_.loopback_only = is_loopback(options.address);
  origins_.is_behind_proxy = !options.trusted_proxy.empty();
  origins_.allowed = options.origins;
}

gate::gate(gate&& other) noexcept
  : origins_(std::move(other.origins_)),
    tokens_(std::move(other.tokens_)),
    proxy_(std::move(other.proxy_)),
    per_second_(other.per_second_),
    rate_(other.per_second_),
    open_paths_(std::move(other.open_paths_)) {}

bool gate::is_open(const request& asked) const {
  const std::string_view target = asked.raw_target;
  return asked.only_reads()
         && std::ranges::find(open_paths_, target.substr(0, target.find('?')))
              != open_paths_.end();
}

result<gate> gate::make(const server_options& options) {
  if (auto fit = check(options); !fit)
    return fit.error();
  gate made(options);
  if (!options.trusted_proxy.empty()) {
    auto trusted = proxy::make(options.trusted_proxy, options.trusted_header);
    if (!trusted)
      return trusted.error();
    made.proxy_ = std::move(*trusted);
  }
  auto tokens = token_table::parse(options.tokens);
  if (!tokens)
    return error(errc::invalid_argument,
                 "the tokens: " + tokens.error().message());
  if (tokens->empty() && !options.tokens.empty())
    return error(errc::invalid_argument, "the tokens: there are none");
  made.tokens_ = std::move(*tokens);
  return made;
}

std::string gate::scheme_of(const request& asked, bool is_proxied) {
  if (is_proxied)
    if (auto named = proxy::scheme_of(asked))
      return std::move(*named);
  return asked.is_encrypted ? "https" : "http";
}

std::variant<caller, response> gate::identify(const request& asked,
                                              bool is_proxied) const {
  const bool is_named = proxy_ && proxy_->names_users();
  if (is_named && is_proxied) {
    const auto* user = proxy_->user_of(asked);
    if (user == nullptr || !check_id(*user, "user") || *user == "*")
      return unknown_caller();
    return caller{*user, role::user};
  }
  if (tokens_.empty() && !is_named)
    return caller();
  if (auto found = tokens_.find(token_in(asked)))
    return std::move(*found);
  return unknown_caller();
}

std::variant<caller, response> gate::admit(const request& asked,
                                           header_list& headers) {
  if (auto preflight = allow_origin(asked, origins_, headers))
    return std::move(*preflight);
  const bool is_proxied = proxy_ && proxy_->sent(asked);
  if (is_proxied)
    if (auto wrong = proxy_->check_headers(asked))
      return std::move(*wrong);
  if (auto wrong = check_origin(asked, scheme_of(asked, is_proxied), origins_))
    return std::move(*wrong);
  auto who
    = is_open(asked) ? caller{"", role::reader} : identify(asked, is_proxied);
  // Also counts requests without a valid token, which try to guess one.
  const auto* known = std::get_if<caller>(&who);
  const bool has_name
    = known != nullptr && !known->user.empty() && known->user != "*";
  const auto& counted = has_name ? known->user : asked.peer;
  if (!rate_.admit(counted, request_rate::clock::now()))
    return refused(429, "too many requests", "busy").with("retry-after", "1");
  return who;
}

} // namespace troupe::serving
