#include "troupe/load/pages/page.hpp"

#include "troupe/core/support/hidden_characters.hpp"

#include <algorithm>
#include <map>

namespace troupe::load {

namespace detail {

// The files of load/pages/, embedded when the program is built.
extern const std::string_view page_template;
extern const std::string_view page_style;
extern const std::string_view page_script;

} // namespace detail

namespace {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char next : text)
    switch (next) {
    case '&':
      safe += "&amp;";
      break;
    case '<':
      safe += "&lt;";
      break;
    case '>':
      safe += "&gt;";
      break;
    default:
      safe += next;
    }
  return safe;
}

// JSON in which no browser finds the end of a script.
std::string embedded(const json& report) {
  std::string safe;
  for (const char next : to_line(report))
    if (next == '<')
      safe += "\\u003c";
    else
      safe += next;
  return safe;
}

} // namespace

std::string to_line(const json& report) {
  return visible_json(report) + '\n';
}

std::string
to_page(std::string_view title, std::string_view summary, const json& report) {
  const std::map<std::string_view, std::string> places = {
    {"title", escaped(title)},
    {"style", std::string(detail::page_style)},
    {"script", std::string(detail::page_script)},
    {"summary", escaped(summary)},
    {"report", embedded(report)},
  };
  // One pass over the template: inserted text is not searched again.
  std::string page;
  auto rest = detail::page_template;
  for (;;) {
    const auto open = rest.find("{{");
    const auto close = rest.find("}}", std::min(open, rest.size()));
    if (close == std::string_view::npos)
      return page += rest;
    page += rest.substr(0, open);
    page += places.at(rest.substr(open + 2, close - open - 2));
    rest.remove_prefix(close + 2);
  }
}

} // namespace troupe::load
