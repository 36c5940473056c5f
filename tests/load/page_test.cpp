// Reports as HTML pages: no text of a report can break out of the page.

#include "troupe/load/pages/page.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe;
using namespace troupe::load;

BOOST_AUTO_TEST_SUITE(pages)

namespace {

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos;
       at = text.find(what, at + what.size()))
    ++count;
  return count;
}

// Returns the text between the tags of the report.
std::string report_in(const std::string& page) {
  const std::string open = "id=\"report\">";
  const auto begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

} // namespace

BOOST_AUTO_TEST_CASE(the_report_is_in_the_page) {
  const json report{{"kind", "load"}, {"text", "</script><b>&\u2028"}};
  const auto page = to_page("t", "s", report);
  BOOST_TEST(parse_json(report_in(page)).value() == report);
}

BOOST_AUTO_TEST_CASE(a_report_has_hidden_characters_as_escapes) {
  const json report{{"text", "a\u202e\x7f\u200bb \u00eb"}};
  BOOST_TEST(to_line(report)
             == "{\"text\":\"a\\u202e\\u007f\\u200bb \u00eb\"}\n");
  BOOST_TEST(report_in(to_page("t", "s", report)) == to_line(report));
  BOOST_TEST(to_line({{"text", "\xff"}}) == "{\"text\":\"\ufffd\"}\n");
}

BOOST_AUTO_TEST_CASE(nothing_of_a_report_is_taken_for_markup) {
  const auto plain = to_page("t", "s", json::object());
  const std::string markup = "</pre></script><script>alert(1)</script>";
  const auto page = to_page(markup, markup, json{{"name", markup}});
  BOOST_TEST(count_of(page, "<script") == count_of(plain, "<script"));
  BOOST_TEST(count_of(page, "</pre>") == count_of(plain, "</pre>"));
}

BOOST_AUTO_TEST_CASE(what_looks_like_a_place_stays_as_it_is) {
  const auto page
    = to_page("{{report}}", "{{style}}", json{{"a", "{{title}}"}});
  BOOST_TEST(page.find("<title>{{report}}</title>") != std::string::npos);
  BOOST_TEST(page.find("<pre>{{style}}</pre>") != std::string::npos);
  BOOST_TEST(page.find("{\"a\":\"{{title}}\"}") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_page_needs_nothing_else) {
  const auto page = to_page("t", "s", json::object());
  for (const auto* outside :
       {"src=", "href=", "http://", "https://", "@import"})
    BOOST_TEST(count_of(page, outside)
                 == (std::string(outside) == "http://"
                       ? count_of(page, "http://www.w3.org/2000/svg")
                       : 0U),
               outside);
}

BOOST_AUTO_TEST_SUITE_END()
