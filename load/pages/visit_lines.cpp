#include "troupe/load/pages/visit_lines.hpp"

#include "troupe/agents/drawings/line.hpp"
#include "troupe/load/pages/bar.hpp"
#include "troupe/load/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::load {

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t words_max = 60;
constexpr std::size_t path_max = 400;

// A row about a visit, an attempt, or a workflow in a visit.
struct workflow_row {
  std::string label;
  std::string words;
  std::optional<timestamp> began;
  std::optional<timestamp> ended;
  char mark = '-';
};

// Time from one event to a later one; 0 if it is not later. Bounded, since
// another program may have written the times in the log.
nanoseconds between(timestamp began, timestamp ended) {
  constexpr std::chrono::microseconds longest = std::chrono::hours(24 * 366);
  if (ended <= began)
    return nanoseconds(0);
  const auto apart
    = static_cast<std::uint64_t>(ended.time_since_epoch().count())
      - static_cast<std::uint64_t>(began.time_since_epoch().count());
  return std::min<std::uint64_t>(apart,
                                 static_cast<std::uint64_t>(longest.count()))
         * nanoseconds(1'000);
}

std::string took(std::optional<timestamp> began,
                 std::optional<timestamp> ended) {
  return began && ended ? to_text(between(*began, *ended)) + ", "
                        : std::string();
}

std::string routes_in(const visit_progress& visit) {
  std::string names;
  for (const auto& each : visit.routes) {
    const auto* text = std::get_if<std::string>(&each);
    names
      += (names.empty() ? " → " : ", ")
         + (text != nullptr ? *text : troupe::to_text(troupe::to_json(each)));
  }
  return names;
}

std::string words_about(const visit_progress& visit) {
  auto words = took(visit.began, visit.ended);
  words += to_string(visit.state);
  if (visit.due)
    words += " until " + drawings::time_words(*visit.due);
  if (visit.attempt > 1)
    words += fmt::format(" in attempt {}", visit.attempt);
  if (visit.items > 0)
    words += fmt::format(", {} of {} items", visit.items_ended, visit.items);
  if (visit.is_skipped)
    words += ", skipped by the joins behind it";
  words += routes_in(visit);
  if (!visit.missing.empty())
    words += fmt::format(", without {}", fmt::join(visit.missing, ", "));
  return words;
}

class workflow_rows {
public:
  explicit workflow_rows(const std::vector<workflow_view>& all) : all_(all) {
    for (const auto& each : all_)
      if (!each.parent.empty())
        below_.emplace(each.run + '\n' + each.parent, &each);
  }

  std::vector<workflow_row> of(const workflow_view& shown) {
    add_visits(shown, 0);
    return std::move(rows_);
  }

private:
  void add(std::size_t depth, workflow_row row) {
    row.label = std::string(2 * depth, ' ')
                + drawings::line_of(row.label, bar_labels_max);
    rows_.push_back(std::move(row));
  }

  void add_visits(const workflow_view& shown, std::size_t depth) {
    for (const auto& each : shown.visits) {
      const auto name = fmt::format("{}@{}", each.node, each.number);
      add(depth,
          {.label = name,
           .words = words_about(each),
           .began = each.began,
           .ended = each.ended,
           .mark = each.state == node_state::failed ? '!' : '-'});
      auto began = each.began;
      for (const auto& failed : each.failures) {
        add(depth + 1,
            {.label = fmt::format("attempt {}", failed.attempt),
             .words = took(began, failed.at) + to_string(failed.why),
             .began = began,
             .ended = failed.at,
             .mark = '!'});
        began = failed.at;
      }
      const auto [first, last]
        = below_.equal_range(shown.run + '\n' + shown.path + '/' + name);
      for (auto inner = first; inner != last; ++inner) {
        const auto& below = *inner->second;
        add(depth + 1,
            {.label = below.path.substr(below.path.rfind('/') + 1),
             .words = took(below.began, below.ended)
                      + std::string(to_string(below.state)),
             .began = below.began,
             .ended = below.ended});
        add_visits(below, depth + 2);
      }
    }
  }

  const std::vector<workflow_view>& all_;
  std::multimap<std::string, const workflow_view*> below_;
  std::vector<workflow_row> rows_;
};

} // namespace

std::string
visit_lines(const timeline& in, const workflow_view& shown, std::size_t width) {
  auto text = fmt::format("workflow {}: {}{}\n",
                          drawings::line_of(shown.path, path_max),
                          took(shown.began, shown.ended),
                          to_string(shown.state));
  if (shown.failure)
    text += drawings::line_of(to_string(*shown.failure), path_max) + '\n';
  text += '\n';
  const auto rows = workflow_rows(in.workflows).of(shown);
  std::size_t labels = 0;
  std::size_t words = 0;
  for (const auto& each : rows) {
    labels = std::max(labels, each.label.size());
    words = std::max(words, each.words.size());
  }
  labels = std::min(labels, bar_labels_max);
  words = std::min(words, words_max);
  const auto whole = std::max<std::size_t>(width, 40);
  const auto columns
    = std::max<std::size_t>(whole - std::min(whole, labels + words + 4), 10);
  const auto since = [&in](timestamp at) {
    return std::min(between(in.started, at), in.wall);
  };
  for (const auto& each : rows) {
    bar drawn(in.wall, columns);
    if (each.began)
      drawn.fill(since(*each.began),
                 each.ended ? since(*each.ended) : in.wall,
                 each.mark);
    text += fmt::format("{:<{}.{}} |{}| {}\n",
                        each.label,
                        labels,
                        labels,
                        drawn.text(),
                        drawings::line_of(each.words, words_max));
  }
  return text;
}

} // namespace troupe::load
