// Requests in a vendor's form, for tests to compare.

#pragma once

#include "troupe/models/formats/wire_format.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Makes a request to `format` for these contents, changed by `change`.
template <class Change>
result<http_request> request_of(const wire_format& format,
                                std::vector<content> said,
                                Change&& change) {
  model_request asked;
  for (auto& each : said)
    asked.contents.push_back(std::make_shared<const content>(std::move(each)));
  wire_options with;
  with.model = "some-model";
  with.base_url = "https://models.example";
  with.key = "secret-key-1";
  std::forward<Change>(change)(asked, with);
  return format.make_request(asked, with);
}

/// Declares one tool with an argument, and one without any.
inline void add_tools(model_request& request, std::string about_ping = "") {
  request.tools.push_back({"get_weather",
                           "Tells the weather.",
                           R"({"type":"object","properties":{"city":
                              {"type":"string"}},"required":["city"]})"_json});
  request.tools.push_back({"ping", std::move(about_ping), {}});
}

/// Returns its body, or `{"code", "reason"}`.
inline json body_of(const result<http_request>& made) {
  if (!made)
    return {{"code", to_string(made.error().code())},
            {"reason", made.error().message()}};
  return parse_json(made->body).value();
}

/// Returns the conversation in the body, which has the name `field`, or
/// `{"code", "reason"}`.
inline json conversation_in(const wire_format& format,
                            const char* field,
                            std::vector<content> said) {
  auto body = body_of(request_of(format, std::move(said), [](auto&, auto&) {}));
  return body.contains(field) ? body[field] : body;
}

/// Returns the body for one message and a generation config.
inline json configured(const wire_format& format,
                       std::string_view config,
                       const std::string& base_url = "https://models.example") {
  return body_of(
    request_of(format, {user_text("Hi")}, [&](auto& request, auto& with) {
      request.generation_config = parse_json(config).value();
      with.base_url = base_url;
    }));
}

/// Makes a content of parts in wire form.
inline content said(const std::string& role, const std::string& parts) {
  return content_from_json(
           {{"role", role}, {"parts", parse_json(parts).value()}})
    .value();
}

struct setting {
  std::string config;
  std::string expected; // The body, without model and messages.
};

inline std::ostream& operator<<(std::ostream& to, const setting& shown) {
  return to << shown.config;
}

/// Checks the body for one message, whose form is `messages`, and a config.
inline void check_configured(const wire_format& format,
                             const setting& shown,
                             json messages) {
  auto expected = parse_json(shown.expected).value();
  expected["model"] = "some-model";
  expected["messages"] = std::move(messages);
  BOOST_TEST(to_text(configured(format, shown.config)) == to_text(expected));
}

} // namespace troupe::testing
