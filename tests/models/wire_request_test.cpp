// Rules of every vendor's requests.

#include "troupe/models/formats/wire_format.hpp"

#include "requests.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(wire_requests)

namespace {

struct vendor {
  std::string name;
  wire_format_ptr (*make)();
  // The field of the conversation, and two contents in it: "Done." by the
  // model, and "Go on." by the user.
  std::string field;
  std::string done;
  std::string go_on;
  // Names of tools that the vendor takes and refuses.
  std::size_t name_bytes_max;
  std::string good_name;
  std::string bad_name;
};

std::ostream& operator<<(std::ostream& to, const vendor& shown) {
  return to << shown.name;
}

const std::array vendors
  = {vendor{"OpenAI",
            &openai_format,
            "messages",
            R"({"role": "assistant", "content": "Done."})",
            R"({"role": "user", "content": "Go on."})",
            64,
            "1_a-B",
            "a.b"},
     vendor{"OpenAI",
            &openai_responses_format,
            "input",
            R"({"role": "assistant", "content": "Done."})",
            R"({"role": "user", "content": "Go on."})",
            64,
            "1_a-B",
            "a.b"},
     vendor{"Gemini",
            &gemini_format,
            "contents",
            R"({"role": "model", "parts": [{"text": "Done."}]})",
            R"({"role": "user", "parts": [{"text": "Go on."}]})",
            128,
            "_a.b:c-1",
            "1a"},
     vendor{"Anthropic",
            &anthropic_format,
            "messages",
            R"({"role": "assistant", "content":
                [{"type": "text", "text": "Done."}]})",
            R"({"role": "user", "content":
                [{"type": "text", "text": "Go on."}]})",
            128,
            "1_a-B",
            "a.b"}};

json asked(const vendor& of, std::vector<content> said) {
  return body_of(request_of(*of.make(), std::move(said), [](auto&, auto&) {}));
}

} // namespace

BOOST_DATA_TEST_CASE(a_conversation_ends_with_words_to_the_model,
                     data::make(vendors),
                     of) {
  const auto done = parse_json(of.done).value();
  const auto go_on = parse_json(of.go_on).value();
  BOOST_TEST(to_text(asked(of, {})[of.field]) == to_text(json::array({go_on})));
  BOOST_TEST(to_text(asked(of, {text("Done.")})[of.field])
             == to_text(json::array({done, go_on})));
}

BOOST_DATA_TEST_CASE(blanks_alone_are_no_words_to_the_model,
                     data::make(vendors),
                     of) {
  const auto go_on = parse_json(of.go_on).value();
  for (const auto* blank : {"", " \n"})
    BOOST_TEST(to_text(asked(of, {user_text(blank)})[of.field])
               == to_text(json::array({go_on})));
}

BOOST_DATA_TEST_CASE(a_tool_that_it_cannot_name_is_told,
                     data::make(vendors),
                     of) {
  const auto named = [&of](const std::string& name) {
    return body_of(
      request_of(*of.make(), {user_text("Hi")}, [&](auto& request, auto&) {
        request.tools.push_back({name, "", {}});
      }));
  };
  for (const auto& name : {of.good_name, std::string(of.name_bytes_max, 'x')})
    BOOST_TEST(named(name).contains("tools"), name);
  for (const auto& name : {std::string(),
                           of.bad_name,
                           std::string("gr\u00fc\u00dfe"),
                           std::string(of.name_bytes_max + 1, 'x')})
    BOOST_TEST(named(name)["code"] == "invalid_argument", name);
  const std::string reason = named("a b")["reason"];
  BOOST_TEST(reason.starts_with(of.name + " takes no tool of the name 'a b'"),
             reason);
}

BOOST_DATA_TEST_CASE(text_that_is_not_utf8_is_refused,
                     data::make(vendors),
                     of) {
  const function_call call{"1", "f", json{{"a", "\xFF"}}};
  for (const auto& said : {user_text("\xFF"), content("model", {call})})
    BOOST_TEST(asked(of, {said})["code"] == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
