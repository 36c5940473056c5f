#include "troupe/load/pages/picture.hpp"

#include "troupe/core/support/hidden_characters.hpp"
#include "troupe/load/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace troupe::load {

namespace {

using std::chrono::nanoseconds;
using form = timeline_step::form;

// All lengths are in the units of the picture, which are pixels at its own
// size.
constexpr double width = 860;
constexpr double margin = 16;
constexpr double names_right = 170;
constexpr double bars_left = 182;
constexpr double bars_right = width - margin;
constexpr double rows_top = 62;
constexpr double row_height = 26;
constexpr std::size_t depth_max = 4;
// Shorter bars have no text.
constexpr double words_min = 60;
// Width of a character, by the size of its font.
constexpr double name_character = 7;
constexpr double bar_character = 6.2;
constexpr double title_character = 8.5;
constexpr double summary_width = 280;

// The tokens of load/pages/page.css and charts.css that a timeline needs.
constexpr std::string_view style = R"(
svg { --surface: #ffffff; --text: #191d22; --muted: #565f6a; --grid: #e7eaee;
  --sunken: #f6f7f9; --model: #3a69c7; --tool: #0b7668; --other: #65707c; --wait: #a9b2bc;
  --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
svg { --surface: #181c20; --text: #e4e8ec; --muted: #a0aab4; --grid: #272d33;
  --sunken: #1f242a; --model: #4474d4; --tool: #0f7f70; --other: #66717d; --wait: #56606a;
  --bad: #ff8a80; }
}
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  fill: var(--text); }
.title { font-size: 15px; font-weight: 600; }
.muted { fill: var(--muted); font-size: 12px; }
.on-bar { fill: #ffffff; font-size: 11px; }
.surface { fill: var(--surface); }
.row { fill: var(--sunken); }
.grid { stroke: var(--grid); }
.model { fill: var(--model); }
.tool { fill: var(--tool); }
.other { fill: var(--other); }
.wait { fill: none; stroke: var(--wait); stroke-dasharray: 3 3; }
.failed { fill: var(--bad); }
)";

// Returns text for an element. Escapes markup, and replaces hidden characters
// and bytes that are not UTF-8 by U+FFFD.
std::string as_xml(std::string_view text) {
  std::string safe;
  std::int32_t before = -1;
  while (!text.empty()) {
    const auto next = first_character(text, before);
    if (next.hidden || next.code < 0)
      safe += "\xEF\xBF\xBD";
    else if (next.code == '&')
      safe += "&amp;";
    else if (next.code == '<')
      safe += "&lt;";
    else if (next.code == '>')
      safe += "&gt;";
    else
      safe += text.substr(0, next.bytes);
    before = next.code;
    text.remove_prefix(next.bytes);
  }
  return safe;
}

// Shortens `text` to the width `room`. An … stands for the omitted end.
std::string fitted(std::string_view text, double room, double character_width) {
  const auto count = static_cast<std::size_t>(room / character_width);
  std::size_t end = 0;
  std::size_t last = 0;
  std::int32_t before = -1;
  for (std::size_t shown = 0; end < text.size(); ++shown) {
    if (shown + 1 == count)
      last = end;
    if (shown == count)
      return as_xml(text.substr(0, last)) + "…";
    const auto next = first_character(text.substr(end), before);
    before = next.code;
    end += next.bytes;
  }
  return as_xml(text);
}

std::string_view class_of(const timeline_step& step) {
  return step.error.empty() ? name_of(step.kind) : "failed";
}

// -- time ----

class time_scale {
public:
  explicit time_scale(nanoseconds wall)
    : wall_(std::max(wall, nanoseconds(1))) {}

  double at(nanoseconds time) const {
    const auto share
      = static_cast<double>(time.count()) / static_cast<double>(wall_.count());
    return bars_left + std::clamp(share, 0.0, 1.0) * (bars_right - bars_left);
  }

  // Up to eight round times.
  std::vector<nanoseconds> ticks() const {
    const auto least = static_cast<double>(wall_.count()) / 8;
    const auto power = std::pow(10.0, std::floor(std::log10(least)));
    const std::array steps{1.0, 2.0, 5.0, 10.0};
    const auto* const step = std::ranges::find_if(
      steps, [&](double each) { return each * power >= least; });
    const auto apart = nanoseconds(static_cast<std::int64_t>(
      std::max((step != steps.end() ? *step : 10.0) * power, 1.0)));
    std::vector<nanoseconds> made;
    for (nanoseconds each{0}; each <= wall_; each += apart)
      made.push_back(each);
    return made;
  }

  // In the unit of the whole.
  std::string label(nanoseconds time) const {
    if (time.count() == 0)
      return "0";
    const auto count = static_cast<double>(time.count());
    if (wall_ >= std::chrono::seconds(2))
      return fmt::format("{:g} s", count / 1e9);
    if (wall_ >= std::chrono::milliseconds(2))
      return fmt::format("{:g} ms", count / 1e6);
    return fmt::format("{:g} us", count / 1e3);
  }

private:
  nanoseconds wall_;
};

// -- elements ----

void add_bar(std::string& svg,
             const timeline_step& step,
             const time_scale& scale,
             double top) {
  const auto left = scale.at(step.begin);
  const auto length = std::max(scale.at(step.end) - left, 1.0);
  if (step.kind == form::wait) {
    svg += fmt::format(
      R"(<line class="wait" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)"
      "\n",
      left,
      left + length,
      top + row_height / 2,
      top + row_height / 2);
    return;
  }
  svg += fmt::format(
    R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="2"><title>{}</title></rect>)"
    "\n",
    class_of(step),
    left,
    top + 4,
    length,
    row_height - 8,
    as_xml(step.name + (step.error.empty() ? "" : " " + step.error)));
  if (length > words_min && !step.name.empty())
    svg += fmt::format(R"(<text class="on-bar" x="{:.1f}" y="{:.1f}">{}</text>)"
                       "\n",
                       left + 5,
                       top + row_height / 2 + 4,
                       fitted(step.name, length - 10, bar_character));
}

void add_row(std::string& svg,
             const timeline_lane& lane,
             const time_scale& scale,
             double top) {
  const auto depth = std::min<std::size_t>(depth_of(lane), depth_max);
  const auto indent = margin + 12 * static_cast<double>(depth);
  svg
    += fmt::format(R"(<text x="{:.1f}" y="{:.1f}">{}</text>)"
                   "\n",
                   indent,
                   top + row_height / 2 + 5,
                   fitted(name_of(lane), names_right - indent, name_character));
  // Waits first, so that concurrent work stays visible.
  for (const bool waits : {true, false})
    for (const auto& step : lane.steps)
      if ((step.kind == form::wait) == waits)
        add_bar(svg, step, scale, top);
}

void add_axis(std::string& svg, const time_scale& scale, double bottom) {
  for (const auto tick : scale.ticks()) {
    const auto at = scale.at(tick);
    svg += fmt::format(
      R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>)"
      "\n"
      R"(<text class="muted" x="{0:.1f}" y="{3:.1f}" text-anchor="middle">{4}</text>)"
      "\n",
      at,
      rows_top - 4,
      bottom,
      rows_top - 10,
      at > bars_right - 20 ? "" : scale.label(tick));
  }
}

void add_legend(std::string& svg, double top) {
  auto left = bars_left;
  for (const auto& [kind, name] : {std::pair("model", "model"),
                                   std::pair("tool", "tool"),
                                   std::pair("other", "the agent itself"),
                                   std::pair("wait", "waits")}) {
    if (std::string_view(kind) == "wait")
      svg += fmt::format(
        R"(<line class="wait" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)",
        left,
        left + 18,
        top + 5,
        top + 5);
    else
      svg += fmt::format(
        R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="18" height="10" rx="2"/>)",
        kind,
        left,
        top);
    svg += fmt::format(R"(<text class="muted" x="{:.1f}" y="{:.1f}">{}</text>)"
                       "\n",
                       left + 24,
                       top + 9,
                       name);
    left += 24 + 7 * static_cast<double>(std::string_view(name).size()) + 24;
  }
}

std::string summary_of(const timeline& shown) {
  auto text = to_text(shown.wall);
  if (shown.calls_recorded)
    text += fmt::format(
      ", {} model calls, {} tool calls", shown.model_calls, shown.tool_calls);
  return text;
}

} // namespace

std::string to_picture(const timeline& shown, std::string_view title) {
  const auto& rows = shown.lanes;
  const time_scale scale(shown.wall);
  const auto bottom = rows_top + row_height * static_cast<double>(rows.size());
  const auto height = bottom + 36;
  auto svg = fmt::format(
    R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img">)"
    "\n<title>{2}</title>\n<style>{3}</style>\n"
    R"(<rect class="surface" width="{0}" height="{1}" rx="6"/>)"
    "\n"
    R"(<text class="title" x="{4}" y="28">{5}</text>)"
    "\n"
    R"(<text class="muted" x="{6}" y="28" text-anchor="end">{7}</text>)"
    "\n",
    width,
    height,
    as_xml(title),
    style,
    margin,
    fitted(title, width - 2 * margin - summary_width, title_character),
    width - margin,
    summary_of(shown));
  for (std::size_t index = 1; index < rows.size(); index += 2)
    svg += fmt::format(
      R"(<rect class="row" x="0" y="{:.1f}" width="{}" height="{}"/>)"
      "\n",
      rows_top + row_height * static_cast<double>(index),
      width,
      row_height);
  add_axis(svg, scale, bottom);
  for (std::size_t index = 0; index < rows.size(); ++index)
    add_row(svg,
            rows[index],
            scale,
            rows_top + row_height * static_cast<double>(index));
  add_legend(svg, bottom + 14);
  return svg + "</svg>\n";
}

} // namespace troupe::load
