#include "troupe/models/http/redirect.hpp"

#include <curl/curl.h>

#include <memory>

namespace troupe {

std::string redirect_target(const std::string& requested,
                            const std::string& location) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(
    curl_url(), &curl_url_cleanup);
  // The second URL is resolved against the first one.
  if (location.empty() || !url
      || curl_url_set(url.get(), CURLUPART_URL, requested.c_str(), 0)
           != CURLUE_OK
      || curl_url_set(url.get(), CURLUPART_URL, location.c_str(), 0)
           != CURLUE_OK)
    return {};
  for (const auto part : {CURLUPART_USER,
                          CURLUPART_PASSWORD,
                          CURLUPART_OPTIONS,
                          CURLUPART_QUERY,
                          CURLUPART_FRAGMENT})
    curl_url_set(url.get(), part, nullptr, 0);
  char* text = nullptr;
  if (curl_url_get(url.get(), CURLUPART_URL, &text, 0) != CURLUE_OK)
    return {};
  std::string target(text);
  curl_free(text);
  return target.starts_with("http://") || target.starts_with("https://")
           ? target
           : std::string();
}

} // namespace troupe
