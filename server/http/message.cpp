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

template <class Message>
bool has_other_encoding(const Message& message) {
  const auto named = message.equal_range(http::field::transfer_encoding);
  return std::any_of(named.first, named.second, [&message](const auto& field) {
    return !message.chunked() || !beast::iequals(field.value(), "chunked");
  });
}

// A target in absolute form has the host, and a path in origin form behind it.
struct split_form {
  std::string_view host;
  std::string path;
};

split_form split_target(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!beast::iequals(
          beast::string_view(text.data(), std::min(text.size(), scheme.size())),
          beast::string_view(scheme.data(), scheme.size())))
      continue;
    const auto rest = text.substr(scheme.size());
    const auto end = std::min(rest.find_first_of("/?"), rest.size());
    const auto path = rest.substr(end);
    return {rest.substr(0, end),
            (path.starts_with('/') ? "" : "/") + std::string(path)};
  }
  return {{}, std::string(text)};
}

// The host of the target counts, and not that of the header.
void replace_host(request& made, std::string_view host) {
  std::erase_if(made.headers,
                [](const auto& field) { return field.first == "host"; });
  made.headers.emplace_back("host", host);
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
  if (has_other_encoding(message))
    return refused(501, "only the transfer encoding chunked is known");
  if (message.count(http::field::host) != 1 && message.version() == 11)
    return refused(400, "a request has one Host");
  const auto text = message.target();
  const auto asked = split_target({text.data(), text.size()});
  made.raw_target = asked.path;
  auto target = parse_target(made.raw_target);
  if (!target)
    return refused(400, target.error().message());
  made.target = std::move(*target);
  const auto method = message.method_string();
  made.method.assign(method.data(), method.size());
  for (const auto& field : message)
    made.headers.emplace_back(
      lower_case({field.name_string().data(), field.name_string().size()}),
      std::string(field.value().data(), field.value().size()));
  if (!asked.host.empty())
    replace_host(made, asked.host);
  made.peer = std::move(peer);
  return std::nullopt;
}

} // namespace troupe::serving
