#include "troupe/models/formats/key_rule.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>

namespace troupe {

namespace {

struct url_parts {
  std::string scheme; // In lower case.
  std::string host;   // IPv4 addresses in their usual form.
};

std::string component_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK)
    return {};
  std::string copied(text);
  curl_free(text);
  return copied;
}

// Uses libcurl's parser, so that both mean the same host.
url_parts parts_of(std::string_view text) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(
    curl_url(), &curl_url_cleanup);
  if (!url
      || curl_url_set(url.get(), CURLUPART_URL, std::string(text).c_str(), 0)
           != CURLUE_OK)
    return {};
  return {component_of(url.get(), CURLUPART_SCHEME),
          component_of(url.get(), CURLUPART_HOST)};
}

bool is_loopback(std::string host) {
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1)
    return (ntohl(four.s_addr) >> 24U) == 127;
  in6_addr six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1)
    return IN6_IS_ADDR_LOOPBACK(&six);
  // libcurl maps this name to loopback and asks no resolver.
  return curl_strequal(host.c_str(), "localhost") != 0;
}

} // namespace

bool is_plain_http(std::string_view url) {
  return parts_of(url).scheme == "http";
}

std::string key_flaw(std::string_view url) {
  const auto [scheme, host] = parts_of(url);
  if (scheme != "http" || is_loopback(host))
    return {};
  return fmt::format("a key is not sent over plain http to {}: use an https "
                     "URL, a server or tunnel on localhost, or no key",
                     host);
}

} // namespace troupe
