// From names to models: vendors, keys, base URLs.

#include "troupe/models/open_model.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

namespace {

using variables = std::map<std::string, std::string>;

result<model_ptr> open(model_source source, variables held = {}) {
  open_model_options options;
  options.variable
    = [held](const std::string& name) -> std::optional<std::string> {
    const auto found = held.find(name);
    return found == held.end() ? std::nullopt : std::optional(found->second);
  };
  return open_model(source, options);
}

const std::vector<std::string> unknown{
  "", "gpt-4", "openai:", "gemini:", "GEMINI-2", "scripted:", "http://x"};

const std::vector<std::string> no_urls{"localhost:8080",
                                       "ftp://host/v1",
                                       "http://",
                                       "http://user:s3cret@host/v1",
                                       "file:///etc/passwd"};

} // namespace

BOOST_AUTO_TEST_SUITE(opening_models)

BOOST_AUTO_TEST_CASE(a_name_tells_the_vendor_and_its_key) {
  for (const auto& [name, key] :
       {std::pair("openai:gpt-x", "OPENAI_API_KEY"),
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
                           .key_variable = "MY_KEY"});
  BOOST_TEST(reason_of(named).find("MY_KEY is not set") != std::string::npos);
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
