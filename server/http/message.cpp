#include "troupe/server/http/any_connection.hpp"

#include <boost/beast/http/error.hpp>

#include <algorithm>

namespace troupe::serving {

namespace {

namespace http = beast::http;

response refused(int status, std::string_view why) {
  auto made = json_response({{"detail", why}}, status);
  made.closes = true;
  return made;
}

std::string lower(beast::string_view text) {
  std::string made(text.data(), text.size());
  std::ranges::transform(made, made.begin(), [](char each) {
    return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a')
                                      : each;
  });
  return made;
}

} // namespace

std::optional<response> refusal_of(const error_code& failure) {
  if (failure == http::error::header_limit)
    return refused(431, "the headers are too large");
  if (failure == http::error::body_limit)
    return refused(413, "the body is too large");
  if (failure == http::error::buffer_overflow)
    return refused(413, "a trailer or the extension of a chunk is too large");
  // The end of the connection, in place of a request or in the middle of one.
  if (failure == http::error::end_of_stream
      || failure == http::error::partial_message
      || failure.category()
           != make_error_code(http::error::bad_method).category())
    return std::nullopt;
  return refused(400, "the request is not HTTP");
}

std::optional<response>
read_request(const request_parser& parsed, std::string peer, request& made) {
  const auto& message = parsed.get();
  if (message.version() != 11 && message.version() != 10)
    return refused(505, "only HTTP/1.1 is spoken here");
  if (message.has_content_length() && message.chunked())
    return refused(400, "a body has one length");
  if (message.find(http::field::transfer_encoding) != message.end()
      && !message.chunked())
    return refused(501, "only the transfer encoding chunked is known");
  if (message.count(http::field::host) != 1 && message.version() == 11)
    return refused(400, "a request has one Host");
  const auto text = message.target();
  made.raw_target.assign(text.data(), text.size());
  auto target = parse_target(made.raw_target);
  if (!target)
    return refused(400, target.error().message());
  made.target = std::move(*target);
  const auto method = message.method_string();
  made.method.assign(method.data(), method.size());
  for (const auto& field : message)
    made.headers.emplace_back(
      lower(field.name_string()),
      std::string(field.value().data(), field.value().size()));
  made.peer = std::move(peer);
  return std::nullopt;
}

} // namespace troupe::serving
