// One answer of HTTP.

#pragma once

#include "troupe/core/json.hpp"

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::serving {

/// Names, in lower case, and values.
using header_list = std::vector<std::pair<std::string, std::string>>;

struct response {
  int status = 200;
  /// Value of `content-type`; empty if there is no body.
  std::string content_type;
  std::string body;
  /// Further headers.
  header_list headers;
  /// True if the connection is closed after the answer.
  bool closes = false;

  /// Returns the answer with another header. `data` must not hold a line break.
  response with(std::string name, std::string data) &&;

  /// The same with all headers of a list.
  response with(header_list added) &&;
};

/// Makes an answer with a JSON body. Text that is not UTF-8 is replaced, so
/// that an answer can always be made.
response json_response(const json& body, int status = 200);

/// The same for JSON that is text already.
response json_text_response(std::string body, int status = 200);

/// Makes an answer of plain text.
response text_response(int status, std::string_view text);

/// Returns the standard phrase of a status.
std::string_view reason_phrase(int status);

/// How the body of an answer ends.
enum class body_framing : std::uint8_t {
  length,  ///< By `content-length`.
  chunked, ///< By the last chunk.
  close,   ///< By the end of the connection.
};

/// Returns the status line and the headers, with the empty line behind them.
/// `now` is the time for the header `date`.
std::string head_of(const response& answer,
                    body_framing framing,
                    bool keeps_alive,
                    std::time_t now);

/// Returns a time as HTTP writes it, `Thu, 26 Nov 2026 08:00:00 GMT`.
std::string http_date(std::time_t time);

} // namespace troupe::serving
