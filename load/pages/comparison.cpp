#include "troupe/load/pages/comparison.hpp"

#include "troupe/load/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace troupe::load {

namespace {

// Fewer runs give wide intervals, or none.
constexpr std::size_t runs_enough = 5;

// -- sides --------------------------------------------------------------------

compared_side side_of(const std::vector<measured_run>& runs) {
  compared_side made;
  made.runs = runs.size();
  double stored = 0;
  double failed = 0;
  for (const auto& run : runs) {
    made.holding += run.holds ? 1 : 0;
    made.empty += run.stored == 0 ? 1 : 0;
    stored += static_cast<double>(run.stored);
    failed += static_cast<double>(run.failed);
  }
  if (failed > 0)
    made.failed_share = failed / (stored + failed);
  return made;
}

finding judge_failures(const comparison& made) {
  return judge(made.after.failed_share - made.before.failed_share,
               made.chosen.margin);
}

finding judge_verdicts(const comparison& made) {
  if (made.after.holding < made.after.runs)
    return finding::worse;
  return made.before.holding < made.before.runs ? finding::better
                                                : finding::same;
}

finding judge_empty(const comparison& made) {
  // Two sides that stored nothing are not equally good: there is nothing to
  // compare.
  if (made.after.empty == made.after.runs)
    return finding::worse;
  const auto share = [](const compared_side& side) {
    return static_cast<double>(side.empty) / static_cast<double>(side.runs);
  };
  return judge(share(made.after) - share(made.before), 0);
}

// -- notes --------------------------------------------------------------------

// A part of a report that describes the conditions of the measurement.
struct circumstance {
  std::string_view what;
  json measured_run::*fields;
  std::string_view ignored; // A field that may differ.
};

constexpr std::array circumstances = {
  circumstance{"setting", &measured_run::settings, "seed"},
  circumstance{"machine", &measured_run::machine, ""},
  circumstance{"version", &measured_run::versions, ""},
};

// The values of each field, as text.
using known_values = std::map<std::string, std::set<std::string>>;

known_values values_of(const circumstance& of,
                       const std::vector<measured_run>& side) {
  known_values known;
  for (const auto& run : side)
    for (const auto& [name, value] : (run.*of.fields).items())
      if (name != of.ignored)
        known[name].insert(troupe::to_text(value));
  // Notes fields that only some runs have.
  for (auto& [name, values] : known)
    for (const auto& run : side)
      if (!(run.*of.fields).contains(name))
        values.insert("unknown");
  return known;
}

std::vector<std::string> differences(const circumstance& of,
                                     const std::vector<measured_run>& before,
                                     const std::vector<measured_run>& after) {
  const auto known_before = values_of(of, before);
  const auto known_after = values_of(of, after);
  // Older reports lack such a part: that is one difference, not many.
  if (known_before.empty() != known_after.empty())
    return {fmt::format("{} recorded only in the runs {}",
                        of.what,
                        known_before.empty() ? "after" : "before")};
  auto names = known_before;
  names.insert(known_after.begin(), known_after.end());
  std::vector<std::string> found;
  for (const auto& [name, unused] : names) {
    const auto joined = [&name = name](const known_values& known) {
      const auto values = known.find(name);
      return values == known.end()
               ? std::string("unknown")
               : fmt::format("{}", fmt::join(values->second, " or "));
    };
    for (const auto& [side, known] :
         {std::pair("before", &known_before), std::pair("after", &known_after)})
      if (const auto values = known->find(name);
          values != known->end() && values->second.size() > 1)
        found.push_back(fmt::format("the runs {} differ in {} {}: {}",
                                    side,
                                    of.what,
                                    name,
                                    joined(*known)));
    if (joined(known_before) != joined(known_after))
      found.push_back(fmt::format("{} {} differs: {} before, {} after",
                                  of.what,
                                  name,
                                  joined(known_before),
                                  joined(known_after)));
  }
  return found;
}

std::vector<std::string> notes_on(const comparison& made) {
  std::vector<std::string> notes;
  const auto fewest = std::min(made.before.runs, made.after.runs);
  if (fewest < runs_enough)
    notes.push_back(
      fmt::format("few runs: {} before, {} after; run with --repeat {} or more",
                  made.before.runs,
                  made.after.runs,
                  runs_enough));
  if (fewest < 2)
    notes.emplace_back("no intervals: a single run does not show how much runs "
                       "vary, so a change may be by chance");
  std::map<std::string_view, std::vector<std::string>> zeros;
  for (const auto& each : made.figures)
    if (!each.change)
      zeros[each.before > 0  ? "after"
            : each.after > 0 ? "before"
                             : "of each side"]
        .push_back(each.name);
  for (const auto& [side, names] : zeros)
    notes.push_back(fmt::format("no change can be computed, a run {} has 0: {}",
                                side,
                                fmt::join(names, ", ")));
  return notes;
}

// -- words --------------------------------------------------------------------

std::string of_runs(std::size_t count, const compared_side& side) {
  return fmt::format("{} of {}", count, side.runs);
}

std::string share_text(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

std::string change_text(double change) {
  const auto percent = change * 100;
  return percent < 1e6 ? fmt::format("{:+.1f} %", percent)
                       : fmt::format("{:+.1e} %", percent);
}

std::string interval_text(const change_interval& of) {
  return fmt::format("[{}, {}]", change_text(of.low), change_text(of.high));
}

std::string amount_text(const figure_change& of, double amount) {
  return of.name == "rate"
           ? fmt::format("{:.0f}", amount)
           : to_text(std::chrono::nanoseconds(std::llround(amount)));
}

// Adds regressions and improvements to their lists.
void sort_out(comparison& made) {
  const auto add = [&made](finding found, std::string text) {
    if (found == finding::worse)
      made.regressions.push_back(std::move(text));
    else if (found == finding::better)
      made.improvements.push_back(std::move(text));
  };
  for (const auto& each : made.figures)
    if (each.gated && each.change)
      add(each.found,
          fmt::format("{} {}{}{}",
                      each.name,
                      change_text(*each.change),
                      each.interval ? " " : "",
                      each.interval ? interval_text(*each.interval) : ""));
  const auto& before = made.before;
  const auto& after = made.after;
  add(judge_failures(made),
      fmt::format("{} of appends failed ({} before)",
                  share_text(after.failed_share),
                  share_text(before.failed_share)));
  add(judge_verdicts(made),
      fmt::format("verdict holds in {} runs ({} before)",
                  of_runs(after.holding, after),
                  of_runs(before.holding, before)));
  add(judge_empty(made),
      fmt::format("nothing stored in {} runs ({} before)",
                  of_runs(after.empty, after),
                  of_runs(before.empty, before)));
}

using table_row = std::array<std::string, 6>;

std::vector<table_row> table_of(const comparison& made) {
  std::vector<table_row> rows
    = {{"",
        "before",
        "after",
        "change",
        fmt::format("{:g} % interval", made.chosen.confidence * 100),
        "verdict"}};
  for (const auto& each : made.figures)
    rows.push_back({each.name,
                    amount_text(each, each.before),
                    amount_text(each, each.after),
                    each.change ? change_text(*each.change) : "-",
                    each.interval ? interval_text(*each.interval) : "-",
                    std::string(to_string(each.found))});
  const auto& before = made.before;
  const auto& after = made.after;
  rows.push_back({"failed",
                  share_text(before.failed_share),
                  share_text(after.failed_share),
                  "-",
                  "-",
                  std::string(to_string(judge_failures(made)))});
  rows.push_back({"holds",
                  of_runs(before.holding, before),
                  of_runs(after.holding, after),
                  "-",
                  "-",
                  std::string(to_string(judge_verdicts(made)))});
  return rows;
}

std::string aligned(const std::vector<table_row>& rows) {
  std::array<std::size_t, std::tuple_size_v<table_row>> widths{};
  for (const auto& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("{:<{}}", row.front(), widths.front());
    for (std::size_t column = 1; column + 1 < row.size(); ++column)
      text += fmt::format("  {:>{}}", row[column], widths[column]);
    text += fmt::format("  {}\n", row.back());
  }
  return text;
}

json side_to_json(const compared_side& side) {
  auto written = json::object();
  written["runs"] = side.runs;
  written["holding"] = side.holding;
  written["empty"] = side.empty;
  written["failedShare"] = side.failed_share;
  return written;
}

} // namespace

comparison compare(const std::vector<measured_run>& before,
                   const std::vector<measured_run>& after,
                   const comparison_options& chosen) {
  assert(!before.empty());
  assert(!after.empty());
  assert(chosen.confidence > 0);
  assert(chosen.confidence < 1);
  assert(chosen.margin >= 0);
  comparison made;
  made.chosen = chosen;
  made.before = side_of(before);
  made.after = side_of(after);
  for (const auto& each : measured_figures)
    made.figures.push_back(compare_figure(each, before, after, chosen));
  sort_out(made);
  made.notes = notes_on(made);
  std::size_t cut_off = 0;
  for (const auto* side : {&before, &after})
    cut_off += static_cast<std::size_t>(
      std::ranges::count(*side, true, &measured_run::interrupted));
  if (cut_off > 0)
    made.notes.push_back(fmt::format(
      "{} of the runs ended early; their figures are not those of whole runs",
      cut_off));
  for (const auto& each : circumstances)
    for (auto& note : differences(each, before, after))
      made.notes.push_back(std::move(note));
  return made;
}

std::string to_text(const comparison& made) {
  auto text = aligned(table_of(made));
  text += "rate, p50, p99, failed and holds decide; the others are shown "
          "only\n\n";
  for (const auto& note : made.notes)
    text += fmt::format("- {}\n", note);
  const auto margin = fmt::format("{:g} %", made.chosen.margin * 100);
  if (!made.improvements.empty())
    text
      += fmt::format("improvement: {}\n", fmt::join(made.improvements, ", "));
  else if (!made.regressed())
    text += fmt::format("no difference to be seen beyond {}\n", margin);
  return text
         + (made.regressed()
              ? fmt::format("comparison: regression: {}\n",
                            fmt::join(made.regressions, ", "))
              : fmt::format("comparison: no regression beyond {}\n", margin));
}

json to_json(const comparison& made) {
  auto written = json::object();
  written["confidence"] = made.chosen.confidence;
  written["margin"] = made.chosen.margin;
  written["regressed"] = made.regressed();
  written["before"] = side_to_json(made.before);
  written["after"] = side_to_json(made.after);
  auto& rows = written["figures"] = json::array();
  for (const auto& each : made.figures) {
    auto row = json::object();
    row["name"] = each.name;
    row["gated"] = each.gated;
    row["before"] = each.before;
    row["after"] = each.after;
    row["change"] = each.change ? json(*each.change) : json();
    row["interval"] = each.interval
                        ? json::array({each.interval->low, each.interval->high})
                        : json();
    row["finding"] = to_string(each.found);
    rows.push_back(std::move(row));
  }
  written["regressions"] = made.regressions;
  written["improvements"] = made.improvements;
  written["notes"] = made.notes;
  return written;
}

} // namespace troupe::load
