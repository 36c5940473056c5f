#include "troupe/server/http/response.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace troupe::serving {

response response::with(std::string name, std::string data) && {
  headers.emplace_back(std::move(name), std::move(data));
  return std::move(*this);
}

response response::with(header_list added) && {
  headers.insert(headers.end(),
                 std::make_move_iterator(added.begin()),
                 std::make_move_iterator(added.end()));
  return std::move(*this);
}

response json_response(const json& body, int status) {
  return json_text_response(
    body.dump(-1, ' ', false, json::error_handler_t::replace), status);
}

response json_text_response(std::string body, int status) {
  response made;
  made.status = status;
  made.content_type = "application/json";
  made.body = std::move(body);
  return made;
}

response text_response(int status, std::string_view text) {
  response made;
  made.status = status;
  made.content_type = "text/plain; charset=utf-8";
  made.body = text;
  return made;
}

std::string_view reason_phrase(int status) {
  switch (status) {
  case 200:
    return "OK";
  case 201:
    return "Created";
  case 202:
    return "Accepted";
  case 204:
    return "No Content";
  case 304:
    return "Not Modified";
  case 307:
    return "Temporary Redirect";
  case 400:
    return "Bad Request";
  case 401:
    return "Unauthorized";
  case 403:
    return "Forbidden";
  case 404:
    return "Not Found";
  case 405:
    return "Method Not Allowed";
  case 409:
    return "Conflict";
  case 412:
    return "Precondition Failed";
  case 413:
    return "Payload Too Large";
  case 422:
    return "Unprocessable Entity";
  case 429:
    return "Too Many Requests";
  case 431:
    return "Request Header Fields Too Large";
  case 501:
    return "Not Implemented";
  case 503:
    return "Service Unavailable";
  case 504:
    return "Gateway Timeout";
  case 505:
    return "HTTP Version Not Supported";
  default:
    return "Internal Server Error";
  }
}

// Names in English, whatever the locale is.
std::string http_date(std::time_t time) {
  constexpr std::array days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array months{"Jan",
                              "Feb",
                              "Mar",
                              "Apr",
                              "May",
                              "Jun",
                              "Jul",
                              "Aug",
                              "Sep",
                              "Oct",
                              "Nov",
                              "Dec"};
  std::tm at{};
  ::gmtime_r(&time, &at);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                     days.at(static_cast<std::size_t>(at.tm_wday)),
                     at.tm_mday,
                     months.at(static_cast<std::size_t>(at.tm_mon)),
                     1900 + at.tm_year,
                     at.tm_hour,
                     at.tm_min,
                     at.tm_sec);
}

std::string head_of(const response& answer,
                    body_framing framing,
                    bool keeps_alive,
                    std::time_t now) {
  auto head = fmt::format("HTTP/1.1 {} {}\r\ndate: {}\r\n",
                          answer.status,
                          reason_phrase(answer.status),
                          http_date(now));
  if (!answer.content_type.empty())
    head += fmt::format("content-type: {}\r\n", answer.content_type);
  if (framing == body_framing::length)
    head += fmt::format("content-length: {}\r\n", answer.body.size());
  else if (framing == body_framing::chunked)
    head += "transfer-encoding: chunked\r\n";
  if (!keeps_alive)
    head += "connection: close\r\n";
  for (const auto& [name, data] : answer.headers)
    head += fmt::format("{}: {}\r\n", name, data);
  head += "\r\n";
  return head;
}

} // namespace troupe::serving
