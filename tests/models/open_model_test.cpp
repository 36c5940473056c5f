// Opening models by name: vendors, keys, base URLs.

#include "troupe/models/open_model.hpp"

#include "../outcome.hpp"
#include "http_server.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <cmath>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(opening_models)

namespace {

using variables = std::map<std::string, std::string>;

result<model_ptr> open(model_source source,
                       variables held = {},
                       std::vector<std::string> allowed = {}) {
  open_model_options options;
  options.allowed_variables = std::move(allowed);
  options.variable
    = [held](const std::string& name) -> std::optional<std::string> {
    const auto found = held.find(name);
    return found == held.end() ? std::nullopt : std::optional(found->second);
  };
  return open_model(source, options);
}

const std::vector<std::string> unknown{"",
                                       "gpt-4",
                                       "openai:",
                                       "openai-responses:",
                                       "gemini:",
                                       "GEMINI-2",
                                       "scripted:",
                                       "http://x"};

const std::vector<std::string> no_urls{"localhost:8080",
                                       "ftp://host/v1",
                                       "http://",
                                       "http://user:s3cret@host/v1",
                                       "file:///etc/passwd"};

} // namespace

BOOST_AUTO_TEST_CASE(a_name_tells_the_vendor_and_its_key) {
  for (const auto& [name, key] :
       {std::pair("openai:gpt-x", "OPENAI_API_KEY"),
        std::pair("openai-responses:gpt-x", "OPENAI_API_KEY"),
        std::pair("gemini-2.5-pro", "GOOGLE_API_KEY"),
        std::pair("gemini-2.5-pro", "GEMINI_API_KEY"),
        std::pair("gemini:tuned/x", "GEMINI_API_KEY"),
        std::pair("claude-x", "ANTHROPIC_API_KEY"),
        std::pair("anthropic:x", "ANTHROPIC_API_KEY")}) {
    const auto opened = open({.name = name}, {{key, "s3cret"}});
    BOOST_TEST_REQUIRE(opened.has_value(), name);
    BOOST_TEST((*opened)->name() == name);
    const auto without = open({.name = name}, {{key, ""}});
    BOOST_TEST(code_of(without) == "invalid_argument");
    BOOST_TEST(reason_of(without).find("is not set") != std::string::npos,
               reason_of(without));
  }
}

BOOST_AUTO_TEST_CASE(a_server_of_ones_own_needs_no_key) {
  BOOST_TEST(open({.name = "openai:qwen", .base_url = "http://localhost:1/v1/"})
               .has_value());
  BOOST_TEST(open({.name = "openai:qwen"},
                  {{"OPENAI_BASE_URL", "http://localhost:1/v1"}})
               .has_value());
  const auto named = open({.name = "openai:qwen",
                           .base_url = "http://localhost:1/v1",
                           .key_variable = "MY_KEY"},
                          {},
                          {"MY_KEY"});
  BOOST_TEST(reason_of(named).find("MY_KEY is not set") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(limits_per_minute_are_above_0) {
  for (const double limit : {0.0, -1.0, std::nan("")}) {
    const auto requests = open({.name = "openai:x",
                                .base_url = "http://localhost:1",
                                .limit = {.requests_per_minute = limit}});
    BOOST_TEST(code_of(requests) == "invalid_argument");
    const auto tokens = open({.name = "openai:x",
                              .base_url = "http://localhost:1",
                              .limit = {.tokens_per_minute = limit}});
    BOOST_TEST(code_of(tokens) == "invalid_argument");
  }
}

BOOST_AUTO_TEST_CASE(a_function_gives_the_key_of_each_call) {
  http_server server({say(whole(
    R"({"choices": [{"message": {"role": "assistant", "content": "hoo"}}]})"))});
  open_model_options options;
  options.variable = [](const std::string&) { return std::nullopt; };
  options.key = [calls = 0]() mutable { return fmt::format("key{}", ++calls); };
  const auto model
    = open_model({.name = "openai:m", .base_url = server.url("/v1")}, options)
        .value();
  for (int call = 0; call < 2; ++call) {
    std::promise<result<model_response>> ended;
    model_request request;
    request.contents
      = {std::make_shared<const content>(user_text("What about owls?"))};
    request.environment = system_environment();
    model->generate(std::move(request), [&](result<model_response> answer) {
      ended.set_value(std::move(answer));
    });
    BOOST_TEST(ended.get_future().get().value().content.text() == "hoo");
  }
  const auto asked = server.requests();
  BOOST_REQUIRE(asked.size() == 2U);
  BOOST_TEST(asked[0].header("authorization") == "Bearer key1");
  BOOST_TEST(asked[1].header("authorization") == "Bearer key2");

  const auto named
    = open_model({.name = "openai:m", .key_variable = "HOME"}, options);
  BOOST_TEST(code_of(named) == "invalid_argument");
  const auto shown = open_model(
    {.name = "openai:x", .base_url = "http://far.example"}, options);
  BOOST_TEST(code_of(shown) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_source_names_only_variables_that_are_allowed) {
  const model_source source{.name = "openai:qwen",
                            .base_url = "https://server.example/v1",
                            .key_variable = "AWS_SECRET_ACCESS_KEY"};
  const variables held{{"AWS_SECRET_ACCESS_KEY", "s3cret"}};
  for (const auto& failed :
       {open(source, held), open(source), open(source, held, {"AWS"})}) {
    BOOST_TEST(code_of(failed) == "invalid_argument");
    BOOST_TEST(reason_of(failed)
               == "model 'openai:qwen': key_env may not name "
                  "AWS_SECRET_ACCESS_KEY; there are OPENAI_API_KEY, "
                  "GOOGLE_API_KEY, GEMINI_API_KEY, ANTHROPIC_API_KEY and those "
                  "that the user allows: --allow-env AWS_SECRET_ACCESS_KEY, or "
                  "allowed_variables in a program");
  }
  BOOST_TEST(open(source, held, {"AWS_SECRET_ACCESS_KEY"}).has_value());
  for (const std::string usual : {"OPENAI_API_KEY",
                                  "GOOGLE_API_KEY",
                                  "GEMINI_API_KEY",
                                  "ANTHROPIC_API_KEY"}) {
    auto named = source;
    named.key_variable = usual;
    BOOST_TEST(open(named, {{usual, "k"}}).has_value());
  }
}

const std::vector<std::string> far_urls{"http://server.example/v1",
                                        "http://192.168.0.7:8080/v1",
                                        "http://128.0.0.1/v1",
                                        "http://0.0.0.0/v1",
                                        "http://[::2]/v1",
                                        "http://[::ffff:10.0.0.1]/v1",
                                        "http://localhost.example/v1",
                                        "http://127.0.0.1.example/v1",
                                        "http://127.0.0.1%2eexample/v1"};

BOOST_DATA_TEST_CASE(a_key_does_not_travel_over_plain_http,
                     data::make(far_urls),
                     url) {
  const variables held{{"OPENAI_API_KEY", "s3cret"}};
  const auto named = open(
    {.name = "openai:x", .base_url = url, .key_variable = "OPENAI_API_KEY"},
    held);
  auto with_url = held;
  with_url["OPENAI_BASE_URL"] = url;
  for (const auto& failed : {named, open({.name = "openai:x"}, with_url)}) {
    BOOST_TEST(code_of(failed) == "invalid_argument");
    const auto reason = reason_of(failed);
    BOOST_TEST(reason.find("a key is not sent over plain http")
                 != std::string::npos,
               reason);
    BOOST_TEST(reason.find("use an https URL") != std::string::npos, reason);
    BOOST_TEST(reason.find("s3cret") == std::string::npos, reason);
  }
  BOOST_TEST(open({.name = "openai:x", .base_url = url}, held).has_value());
}

const std::vector<std::string> near_urls{"http://localhost:8080/v1",
                                         "http://LOCALHOST/v1",
                                         "http://127.0.0.1:8080/v1",
                                         "http://127.9.9.9/v1",
                                         "http://127.1/v1",
                                         "http://[::1]:8080/v1",
                                         "http://[0:0:0:0:0:0:0:1]/v1",
                                         "https://server.example/v1"};

BOOST_DATA_TEST_CASE(a_key_travels_to_loopback_and_over_tls,
                     data::make(near_urls),
                     url) {
  const auto opened = open(
    {.name = "openai:x", .base_url = url, .key_variable = "OPENAI_API_KEY"},
    {{"OPENAI_API_KEY", "k"}});
  BOOST_TEST(opened.has_value(), reason_of(opened));
}

BOOST_DATA_TEST_CASE(what_is_no_name_is_refused, data::make(unknown), name) {
  const auto failed
    = open({.name = name}, {{"OPENAI_API_KEY", "k"}, {"GEMINI_API_KEY", "k"}});
  BOOST_TEST(code_of(failed) == "invalid_argument");
}

BOOST_DATA_TEST_CASE(what_is_no_url_is_refused, data::make(no_urls), url) {
  const auto failed = open({.name = "openai:x", .base_url = url});
  BOOST_TEST(code_of(failed) == "invalid_argument");
  BOOST_TEST(reason_of(failed).find("s3cret") == std::string::npos,
             reason_of(failed));
}

BOOST_AUTO_TEST_SUITE_END()
