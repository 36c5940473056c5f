// One HTTP request as a call that a coroutine awaits.

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/models/http/client.hpp"

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>

namespace troupe {

struct http_answer {
  int status = 0;
  std::string media; ///< Of the body, in lower case, without parameters.
  std::string body;
};

/// Sends the request when it is awaited. A stop cancels it. Fails as
/// `http_handler::on_end` says, with `errc::tool_failed` in place of
/// `errc::model_failed`, and with `errc::too_large` for a body of more than
/// `bytes_max` bytes.
pending<http_answer> exchange(std::shared_ptr<http_client> client,
                              http_request request,
                              std::size_t bytes_max,
                              std::stop_token stop);

} // namespace troupe
