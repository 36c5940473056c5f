// Stands for the tools over HTTP in a build without the option
// TROUPE_HTTP_MODELS.

#include "troupe/agents/openapi_tools.hpp"

namespace troupe {

namespace {

error absent() {
  return {errc::invalid_argument,
          "this build has no tools over HTTP: build troupe with "
          "-DTROUPE_HTTP_MODELS=ON"};
}

} // namespace

result<json> read_openapi(const std::string&) {
  return absent();
}

std::vector<tool> openapi_tools(const openapi_source&) {
  throw absent();
}

} // namespace troupe
