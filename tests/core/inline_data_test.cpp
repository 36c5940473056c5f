// Bytes as a part of content, in the wire form.

#include "troupe/core/content.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(inline_data_parts)

namespace {

part other_part(const std::string& text) {
  part made;
  made.body = value(parse_json(text).value());
  return made;
}

std::string wire_text(const part& said) {
  return to_text(to_json(content("", {said})));
}

} // namespace

BOOST_AUTO_TEST_CASE(a_part_has_the_wire_form) {
  BOOST_TEST(wire_text(inline_data("hi!", "text/plain"))
             == R"({"parts":[{"inlineData":{"data":"aGkh",)"
                R"("mimeType":"text/plain"}}]})");
  BOOST_TEST(wire_text(inline_data("", "", "a.txt"))
             == R"({"parts":[{"inlineData":{"data":"",)"
                R"("displayName":"a.txt","mimeType":""}}]})");
}

BOOST_AUTO_TEST_CASE(the_bytes_come_back_with_what_they_are) {
  const std::string bytes("\0\xff\r\n", 4);
  const auto read = blob_of(inline_data(bytes, "image/png", "é.png")).value();
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((*read == blob{bytes, "image/png", "é.png"}));
}

BOOST_AUTO_TEST_CASE(no_bytes_are_data_too) {
  const auto read = blob_of(inline_data("", "image/png")).value();
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->bytes == "");
  BOOST_TEST(blob_of(other_part(R"({"inlineData":{}})")).value().has_value());
}

BOOST_AUTO_TEST_CASE(a_part_survives_the_wire) {
  const auto sent = inline_data("\x01\x02", "a/b", "c");
  const auto received
    = content_from_json(to_json(content("user", {sent}))).value();
  BOOST_TEST((received.parts.front() == sent));
}

const std::vector<std::string> spellings
  = {R"({"inline_data":{"mime_type":"a/b","data":"-_8","display_name":"n"}})",
     R"({"inlineData":{"mimeType":"a/b","data":"+/8=","displayName":"n"}})",
     R"({"inlineData":{"mime_type":"a/b","data":"-_8=","displayName":"n",
         "further":1}, "thing":null})"};

BOOST_DATA_TEST_CASE(either_spelling_reads, data::make(spellings), text) {
  const auto read = blob_of(other_part(text)).value();
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((*read == blob{"\xfb\xff", "a/b", "n"}));
}

BOOST_AUTO_TEST_CASE(other_parts_have_no_bytes) {
  BOOST_TEST(!blob_of(part("text")).value().has_value());
  BOOST_TEST(!blob_of(part(function_call{"1", "f", json::object()}))
                .value()
                .has_value());
  BOOST_TEST(!blob_of(other_part(R"({"fileData":{}})")).value().has_value());
  BOOST_TEST(
    !blob_of(other_part(R"({"inlineData":null})")).value().has_value());
  part list;
  list.body = value(json::array());
  BOOST_TEST(!blob_of(list).value().has_value());
}

const std::vector<std::string> malformed
  = {R"({"inlineData":"aGkh"})",
     R"({"inlineData":{"data":"aGk"}, "inline_data":{}})",
     R"({"inlineData":{"data":"a"}})",
     R"({"inlineData":{"data":"aGk!"}})",
     R"({"inlineData":{"data":7}})",
     R"({"inlineData":{"mimeType":7}})",
     R"({"inlineData":{"mimeType":"a/b","mime_type":"a/b"}})",
     R"({"inlineData":{"displayName":[]}})"};

BOOST_DATA_TEST_CASE(what_is_malformed_is_refused,
                     data::make(malformed),
                     text) {
  BOOST_TEST(code_of(blob_of(other_part(text))) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
