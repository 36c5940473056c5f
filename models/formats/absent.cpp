// Models over HTTP of a build without them (the CMake option
// TROUPE_HTTP_MODELS is off): every opening fails, and the message says how to
// build with them.

#include "troupe/models/formats/open_vendor.hpp"

namespace troupe {

result<model_ptr> open_vendor_model(const model_source& source,
                                    vendor /*which*/,
                                    const std::string& /*model*/,
                                    const open_model_options& /*options*/) {
  return refused_model(source,
                       "this build of troupe has no models over HTTP; build it "
                       "with -DTROUPE_HTTP_MODELS=ON, which needs libcurl and "
                       "simdjson (packages libcurl4-openssl-dev and "
                       "libsimdjson-dev of Debian), or use scripted:FILE");
}

} // namespace troupe
