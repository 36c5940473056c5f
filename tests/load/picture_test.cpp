// The picture of a timeline: its rows, its bars, and names from a log that are
// no markup.

#include "troupe/load/pages/picture.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

using namespace troupe::load;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(pictures)

namespace {

using form = timeline_step::form;

timeline_step
step(form kind, std::chrono::milliseconds from, std::chrono::milliseconds to) {
  timeline_step made;
  made.kind = kind;
  made.name = kind == form::wait ? "" : "worker";
  made.begin = from;
  made.end = to;
  return made;
}

timeline_lane lane(std::string agent,
                   std::string branch,
                   std::chrono::milliseconds from,
                   std::chrono::milliseconds to) {
  return {std::move(agent), std::move(branch), {step(form::model, from, to)}};
}

timeline pipeline() {
  timeline made;
  made.wall = 100ms;
  made.calls_recorded = true;
  made.model_calls = 5;
  made.lanes = {lane("first", "", 0ms, 20ms),
                lane("early", "fan.early", 20ms, 30ms),
                lane("inner", "fan.early.again.inner", 30ms, 40ms),
                lane("late", "fan.late", 50ms, 80ms),
                lane("last", "", 80ms, 100ms)};
  return made;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

// The names of the rows, from top to bottom.
std::string names_in(const std::string& svg) {
  std::string names;
  constexpr std::string_view begin = "<text x=\"";
  for (auto at = svg.find(begin); at != svg.npos;
       at = svg.find(begin, at + 1)) {
    const auto from = svg.find('>', at) + 1;
    names += (names.empty() ? "" : " ")
             + svg.substr(from, svg.find('<', from) - from);
  }
  return names;
}

} // namespace

BOOST_AUTO_TEST_CASE(each_lane_has_a_row_in_the_order_of_the_timeline) {
  BOOST_TEST(names_in(to_picture(pipeline(), "run"))
             == "first early inner late last");
}

BOOST_AUTO_TEST_CASE(a_bar_is_as_long_as_its_step) {
  const auto svg = to_picture(pipeline(), "run");
  // 662 units are 100 ms, from 182 on.
  BOOST_TEST(svg.find(R"(<rect class="model" x="182.0" y="66.0" width="132.4")")
               != svg.npos,
             svg);
  BOOST_TEST(svg.find(R"(x="711.6" y="170.0" width="132.4")") != svg.npos, svg);
  BOOST_TEST(count(svg, "<rect class=\"model\"") == 6U); // One in the legend.
  BOOST_TEST(svg.find("100 ms, 5 model calls, 0 tool calls") != svg.npos);
}

BOOST_AUTO_TEST_CASE(waits_and_failures_look_different) {
  timeline one;
  one.wall = 10ms;
  one.lanes
    = {{"a", "", {step(form::wait, 0ms, 4ms), step(form::tool, 4ms, 10ms)}}};
  one.lanes[0].steps[1].error = "tool_failed";
  const auto svg = to_picture(one, "run");
  BOOST_TEST(count(svg, "<line class=\"wait\"") == 2U); // One in the legend.
  BOOST_TEST(count(svg, "<rect class=\"failed\"") == 1U);
  BOOST_TEST(svg.find("worker tool_failed") != svg.npos);
  BOOST_TEST(svg.find("model calls") == svg.npos); // They are not recorded.
}

BOOST_AUTO_TEST_CASE(names_from_a_log_are_no_markup) {
  timeline one;
  one.wall = 10ms;
  one.lanes = {lane("<script>&\x1b", "", 0ms, 10ms)};
  one.lanes[0].steps[0].name = "a \"<b>\" \xff";
  const auto svg = to_picture(one, "<title> of a run");
  BOOST_TEST(svg.find("<script") == svg.npos);
  BOOST_TEST(svg.find("<b>") == svg.npos);
  BOOST_TEST(svg.find('\x1b') == svg.npos);
  BOOST_TEST(svg.find('\xff') == svg.npos);
  BOOST_TEST(svg.find("&lt;script&gt;&amp;\xEF\xBF\xBD") != svg.npos, svg);
  BOOST_TEST(svg.find("&lt;title&gt; of a run") != svg.npos);
}

BOOST_AUTO_TEST_CASE(a_long_name_is_shortened_by_characters) {
  timeline one;
  one.wall = 10ms;
  std::string name;
  for (int each = 0; each < 40; ++each)
    name += "ü";
  one.lanes = {lane(name, "", 0ms, 10ms)};
  std::string shown;
  for (int each = 0; each < 21; ++each)
    shown += "ü";
  BOOST_TEST(names_in(to_picture(one, "run")) == shown + "…");
}

BOOST_AUTO_TEST_CASE(an_empty_timeline_is_a_picture_too) {
  const auto svg = to_picture({}, "nothing");
  BOOST_TEST(svg.starts_with("<svg "));
  BOOST_TEST(svg.ends_with("</svg>\n"));
  BOOST_TEST(names_in(svg) == "");
}

BOOST_AUTO_TEST_SUITE_END()
