#include "troupe/server/adk/failure.hpp"

#include "troupe/core/support/passwords.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace troupe::serving {

response detail(int status, std::string_view text) {
  return json_response({{"detail", text}}, status);
}

int status_of(errc code) noexcept {
  switch (code) {
  case errc::invalid_argument:
    return 400;
  case errc::not_found:
    return 404;
  case errc::gone:
    return 410;
  case errc::type_error:
  case errc::already_exists:
  case errc::conflict:
    return 409;
  case errc::too_large:
    return 413;
  case errc::busy:
  case errc::store_failed:
  case errc::cancelled:
    return 503;
  case errc::deadline_exceeded:
    return 504;
  default:
    return 500;
  }
}

std::string shown_message(const error& why) {
  return without_passwords(why.message());
}

response failure(const error& why) {
  auto answer = detail(status_of(why.code()), shown_message(why))
                  .with("troupe-error", std::string(to_string(why.code())));
  if (why.code() != errc::busy)
    return answer;
  return std::move(answer).with("retry-after", "1");
}

json error_line(const error& why, timestamp now) {
  const auto text = shown_message(why);
  const auto type = to_string(why.code());
  return {{"error", fmt::format("{}: {}", type, text)},
          {"error_details",
           {{"error_type", type},
            {"error_message", text},
            {"timestamp", to_seconds(now)}}}};
}

json problem(std::string_view type,
             json place,
             std::string_view text,
             json input) {
  // A large body is not sent back.
  constexpr std::size_t echo_max = 1'024;
  if (to_text(input).size() > echo_max)
    input = nullptr;
  return {{"type", type},
          {"loc", std::move(place)},
          {"msg", text},
          {"input", std::move(input)}};
}

response invalid(json problems) {
  return json_response({{"detail", std::move(problems)}}, 422);
}

} // namespace troupe::serving
