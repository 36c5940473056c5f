// Server-sent events: the standard's lines and fields, pieces of any size, and
// events that are too large.

#include "troupe/models/http/sse_reader.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(sse)

namespace {

using events = std::vector<std::pair<std::string, std::string>>;

struct stream {
  std::string text;
  events expected; // Name and data.
};

std::ostream& operator<<(std::ostream& to, const stream& shown) {
  return to << '"' << shown.text << '"';
}

const std::vector<stream> streams = {
  {"data: one\n\n", {{"", "one"}}},
  {"data:one\r\n\r\n", {{"", "one"}}},
  {"data: one\r\rdata: two\r\r", {{"", "one"}, {"", "two"}}},
  {"data: one\r\n\rdata: two\n\r\n", {{"", "one"}, {"", "two"}}},
  {"data: one\ndata:  two\n\n", {{"", "one\n two"}}},
  {"data: one\r\ndata: two\r\n\r\n", {{"", "one\ntwo"}}},
  {"data\n\n", {{"", ""}}},
  {"data:\ndata:\n\n", {{"", "\n"}}},
  {"event: ping\n\ndata: one\n\n", {{"", "one"}}},
  {"event: add\ndata: 1\n\ndata: 2\n\n", {{"add", "1"}, {"", "2"}}},
  {"event: add\nevent: remove\ndata: 1\n\n", {{"remove", "1"}}},
  {": a comment\n\n:\ndata: one\n\n", {{"", "one"}}},
  {"id: 1\nretry: 10\nDATA: no\nunknown\ndata: one\n\n", {{"", "one"}}},
  {"\xEF\xBB\xBF"
   "data: one\n\n",
   {{"", "one"}}},
  {"\n\xEF\xBB\xBF"
   "data: no\ndata: one\n\n",
   {{"", "one"}}},
  {"data: \xE6\x9D\xB1\xE4\xBA\xAC\xF0\x9F\x8C\x8A\n\n",
   {{"", "\xE6\x9D\xB1\xE4\xBA\xAC\xF0\x9F\x8C\x8A"}}},
  {std::string("data: \0\xFF\n\n", 10), {{"", std::string("\0\xFF", 2)}}},
  {"data: one\n\ndata: cut off\n", {{"", "one"}}},
  {"data: one\n\ndata: cut off", {{"", "one"}}},
  {"error: {\"code\":400}\n\n", {{"error", "{\"code\":400}"}}},
  {"", {}},
};

events read(std::string_view text, const std::vector<std::size_t>& cuts) {
  sse_reader reader;
  std::vector<sse_event> taken;
  std::size_t start = 0;
  for (const auto end : cuts) {
    BOOST_TEST_REQUIRE(
      code_of(reader.take(text.substr(start, end - start), taken)) == "ok");
    start = end;
  }
  BOOST_TEST_REQUIRE(code_of(reader.take(text.substr(start), taken)) == "ok");
  events seen;
  for (auto& event : taken)
    seen.emplace_back(std::move(event.name), std::move(event.data));
  return seen;
}

const std::string line_end = "\n\n";

// One event whose lines have `size` bytes in all.
std::string event_of(std::size_t size) {
  return "data: " + std::string(size - 6, 'x') + line_end;
}

} // namespace

BOOST_DATA_TEST_CASE(a_stream_is_its_events, data::make(streams), shown) {
  BOOST_TEST((read(shown.text, {}) == shown.expected));
}

BOOST_DATA_TEST_CASE(cutting_changes_nothing, data::make(streams), shown) {
  std::vector<std::size_t> all;
  for (std::size_t at = 0; at <= shown.text.size(); ++at) {
    BOOST_TEST((read(shown.text, {at}) == shown.expected), "cut at " << at);
    for (std::size_t later = at; later <= shown.text.size(); ++later)
      BOOST_TEST((read(shown.text, {at, later}) == shown.expected),
                 "cut at " << at << " and " << later);
    all.push_back(at);
  }
  BOOST_TEST((read(shown.text, all) == shown.expected), "byte by byte");
}

struct stray_lines {
  std::string text;
  std::string expected;
};

std::ostream& operator<<(std::ostream& to, const stray_lines& shown) {
  return to << '"' << shown.text << '"';
}

const std::vector<stray_lines> strays = {
  {"data: {}\n\n", ""},
  {"unknown\ndata: one\n\n", ""},
  {"{\"a\": 1}", "{\"a\": 1}\n"},
  {"data: one\n\n[{\r\n  \"a\": 1\r\n}]\n", "[{\n  \"a\": 1\n}]\n"},
  {"{\n: comment\ndata: one\n\n}\n", "{\n}\n"},
  {"{\n}\n\ndata: cut off", "{\n}\n"},
};

BOOST_DATA_TEST_CASE(what_is_no_event_is_kept_from_a_bracket_on,
                     data::make(strays),
                     shown) {
  for (std::size_t at = 0; at <= shown.text.size(); ++at) {
    sse_reader reader;
    std::vector<sse_event> seen;
    reader.take(shown.text.substr(0, at), seen).value();
    reader.take(shown.text.substr(at), seen).value();
    BOOST_TEST(reader.stray() == shown.expected, "cut at " << at);
  }
}

BOOST_AUTO_TEST_CASE(no_more_is_kept_of_it_than_the_limit) {
  sse_reader reader;
  std::vector<sse_event> seen;
  for (int count = 0; count < 1'000; ++count)
    reader.take("{" + std::string(999, 'x') + "\n\n", seen).value();
  BOOST_TEST(reader.stray().size() <= sse_reader::stray_bytes_max);
  BOOST_TEST(reader.stray().size() > sse_reader::stray_bytes_max / 2);
}

BOOST_AUTO_TEST_CASE(the_largest_event_is_read) {
  std::vector<sse_event> seen;
  sse_reader reader;
  BOOST_TEST(code_of(reader.take(event_of(sse_reader::event_bytes_max), seen))
             == "ok");
  // The size is counted anew for each event.
  BOOST_TEST(code_of(reader.take(event_of(sse_reader::event_bytes_max), seen))
             == "ok");
  BOOST_TEST(seen.size() == 2U);
}

BOOST_AUTO_TEST_CASE(an_event_above_the_limit_is_refused_however_it_comes) {
  const auto text = event_of(sse_reader::event_bytes_max + 1);
  for (const auto piece_bytes : {text.size(), std::size_t{1} << 16U}) {
    sse_reader reader;
    std::vector<sse_event> seen;
    std::string code = "ok";
    for (std::size_t at = 0; at < text.size() && code == "ok";
         at += piece_bytes)
      code = code_of(
        reader.take(std::string_view(text).substr(at, piece_bytes), seen));
    BOOST_TEST(code == "too_large");
    BOOST_TEST(seen.empty());
  }
}

BOOST_AUTO_TEST_CASE(the_newest_retry_that_is_a_number_counts) {
  sse_reader reader;
  std::vector<sse_event> seen;
  BOOST_TEST(!reader.retry());
  reader.take("retry: 10\nretry: -1\nretry: soon\nretry: 1s\n", seen).value();
  BOOST_TEST(reader.retry()->count() == 10);
  reader.take("retry:20\nretry: 99999999999999999999\n", seen).value();
  BOOST_TEST(reader.retry()->count() == 20);
}

BOOST_AUTO_TEST_CASE(many_short_lines_above_the_limit_are_refused) {
  sse_reader reader;
  std::vector<sse_event> seen;
  const std::string comment = ":" + std::string(1'000, 'x') + "\n";
  std::string code = "ok";
  for (int count = 0; count < 20'000 && code == "ok"; ++count)
    code = code_of(reader.take(comment, seen));
  BOOST_TEST(code == "too_large");
}

BOOST_AUTO_TEST_CASE(what_came_before_an_event_above_the_limit_is_given) {
  sse_reader reader;
  std::vector<sse_event> seen;
  BOOST_TEST(
    code_of(reader.take(
      "data: one\n\n" + event_of(sse_reader::event_bytes_max + 1), seen))
    == "too_large");
  BOOST_TEST((seen == std::vector<sse_event>{{"", "one"}}));
}

BOOST_AUTO_TEST_SUITE_END()
