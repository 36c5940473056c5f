#include "troupe/load/comparison.hpp"

#include "troupe/load/report.hpp"

#include <boost/math/distributions/students_t.hpp>
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

struct figure {
  std::string_view name;
  std::string_view path; // In a report.
  // None of the rate, the only figure that is better when it is higher.
  fractional_nanoseconds measured_run::*time;
  bool gated;
};

constexpr std::array figures = {
  figure{"rate", "appendsPerSecond", nullptr, true},
  figure{"p50", "response.p50", &measured_run::p50, true},
  figure{"p90", "response.p90", &measured_run::p90, false},
  figure{"p99", "response.p99", &measured_run::p99, true},
  figure{"p99.9", "response.p99_9", &measured_run::p99_9, false},
  figure{"max", "response.max", &measured_run::max, false},
  figure{"mean", "response.mean", &measured_run::mean, false},
};

// Nothing that is measured comes near; 32 years, in nanoseconds.
constexpr double amount_max = 1e18;

// Fewer give intervals that are wide, or none.
constexpr std::size_t runs_enough = 5;

error refused(std::string why) {
  return {errc::invalid_argument, std::move(why)};
}

// -- reports -----------------------------------------------------------------

// Fields of a report by path, `response.p99`. The first that is not as it has
// to be is the fault; what is read after it does not matter.
class report_fields {
public:
  explicit report_fields(const json& report) : report_(report) {}

  const std::string& fault() const { return fault_; }

  double number(std::string_view path) {
    return amount(path, find(path), "a number", [](const json& found) {
      return found.is_number();
    });
  }

  std::uint64_t count(std::string_view path) { return count(path, find(path)); }

  // Of all counts in an object.
  std::uint64_t sum(std::string_view path) {
    const auto counts = object(path);
    std::uint64_t total = 0;
    for (const auto& [name, found] : counts.items())
      total += count(fmt::format("{}.{}", path, name), &found);
    return total;
  }

  bool claim(std::string_view path) {
    const auto* const found = find(path);
    if (found != nullptr && !found->is_boolean())
      refuse(path, *found, "true or false");
    return found != nullptr && found->is_boolean() && found->get<bool>();
  }

  json object(std::string_view path) {
    const auto* const found = find(path);
    if (found != nullptr && !found->is_object())
      refuse(path, *found, "an object");
    return found != nullptr && found->is_object() ? *found : json::object();
  }

  json optional_object(std::string_view name) {
    return report_.contains(name) ? object(name) : json();
  }

private:
  const json* find(std::string_view path) {
    const auto* found = &report_;
    for (auto rest = path; !rest.empty();) {
      const auto dot = std::min(rest.find('.'), rest.size());
      const auto name = rest.substr(0, dot);
      if (!found->is_object() || !found->contains(name)) {
        note(fmt::format("'{}' is missing", path));
        return nullptr;
      }
      found = &(*found)[std::string(name)];
      rest.remove_prefix(std::min(dot + 1, rest.size()));
    }
    return found;
  }

  template <class Predicate>
  double amount(std::string_view path,
                const json* found,
                std::string_view expected,
                Predicate&& is_expected) {
    if (found == nullptr)
      return 0;
    const auto read = is_expected(*found) ? found->get<double>() : -1.0;
    if (read >= 0 && read <= amount_max)
      return read;
    refuse(path, *found, fmt::format("{} from 0 to {}", expected, amount_max));
    return 0;
  }

  std::uint64_t count(std::string_view path, const json* found) {
    return static_cast<std::uint64_t>(
      amount(path, found, "a whole number", [](const json& each) {
        return each.is_number_integer();
      }));
  }

  void
  refuse(std::string_view path, const json& found, std::string_view expected) {
    note(fmt::format("'{}' is {}, not {}",
                     path,
                     found.is_structured() ? found.type_name()
                                           : troupe::to_text(found),
                     expected));
  }

  void note(std::string fault) {
    if (fault_.empty())
      fault_ = std::move(fault);
  }

  const json& report_; // Of the caller, who keeps it.
  std::string fault_;
};

result<measured_run> read_run(const json& report) {
  // Older reports do not tell their kind.
  if (!report.is_object() || !report.contains("settings")
      || (report.contains("kind") && report["kind"] != "load"))
    return refused("this is no report of a load test");
  report_fields fields(report);
  measured_run run;
  for (const auto& each : figures) {
    const auto amount = fields.number(each.path);
    if (each.time == nullptr)
      run.rate = amount;
    else
      run.*each.time = fractional_nanoseconds(amount);
  }
  run.stored = fields.count("stored");
  run.failed = fields.sum("failed");
  run.holds = fields.claim("verdict.checked") && fields.claim("verdict.holds");
  run.interrupted
    = report.contains("interrupted") && report["interrupted"] == true;
  run.settings = fields.object("settings");
  run.machine = fields.optional_object("machine");
  run.versions = fields.optional_object("versions");
  if (!fields.fault().empty())
    return refused(fields.fault());
  return run;
}

struct document {
  std::size_t line = 0; // Its first, counted from 1.
  std::string_view text;
};

// One for each line that begins with a brace, with the lines that follow: those
// of a document that is laid out are indented, but for its last.
std::vector<document> split(std::string_view text) {
  std::vector<document> documents;
  std::size_t line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const auto end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const auto row = text.substr(begin, end - begin);
    const bool is_blank = row.find_first_not_of(" \t\r\n") == row.npos;
    if (row.starts_with('{') || (documents.empty() && !is_blank)) {
      if (!documents.empty())
        documents.back().text.remove_suffix(text.size() - begin);
      documents.push_back({line, text.substr(begin)});
    }
    begin = end;
  }
  return documents;
}

// -- statistics --------------------------------------------------------------

double amount_of(const figure& of, const measured_run& run) {
  return of.time == nullptr ? run.rate : (run.*of.time).count();
}

// The logarithms of a figure.
struct sample {
  double count = 0;
  double mean = 0;
  double variance = 0; // 0 of a single one.
};

// Nothing if the figure is 0 in a run. Counts from the first value, so that
// equal ones have no variance at all.
std::optional<sample> sample_of(const figure& of,
                                const std::vector<measured_run>& side) {
  sample made;
  made.count = static_cast<double>(side.size());
  std::vector<double> values;
  for (const auto& run : side) {
    const auto amount = amount_of(of, run);
    if (amount == 0)
      return std::nullopt;
    values.push_back(std::log(amount));
    made.mean += (values.back() - values.front()) / made.count;
  }
  made.mean += values.front();
  for (const auto value : values)
    made.variance += (value - made.mean) * (value - made.mean);
  made.variance /= std::max(made.count - 1, 1.0);
  return made;
}

// The change that a difference of logarithms is. Finite, though an interval of
// two runs a side can be wider than numbers go.
double change_of(double difference) {
  constexpr double difference_max = 700;
  return std::expm1(std::min(difference, difference_max));
}

// By Welch's t test; both have two values or more.
change_interval
interval_of(const sample& before, const sample& after, double confidence) {
  const auto difference = after.mean - before.mean;
  const auto of_before = before.variance / before.count;
  const auto of_after = after.variance / after.count;
  const auto squared_error = of_before + of_after;
  if (squared_error == 0)
    return {change_of(difference), change_of(difference)};
  // Welch and Satterthwaite's degrees of freedom, with shares of the error: its
  // square is too small a number when the runs hardly differ.
  const auto share = of_before / squared_error;
  const auto freedom = 1
                       / (share * share / (before.count - 1)
                          + (1 - share) * (1 - share) / (after.count - 1));
  const boost::math::students_t distribution(freedom);
  const auto reach = std::sqrt(squared_error)
                     * quantile(complement(distribution, (1 - confidence) / 2));
  return {change_of(difference - reach), change_of(difference + reach)};
}

finding judge(double worsening, double margin) {
  if (worsening > margin)
    return finding::worse;
  return worsening < -margin ? finding::better : finding::same;
}

bool may_be_none(const change_interval& of) {
  return of.low <= 0 && of.high >= 0;
}

figure_change compare_figure(const figure& of,
                             const std::vector<measured_run>& before,
                             const std::vector<measured_run>& after,
                             const comparison_options& chosen) {
  figure_change made;
  made.name = of.name;
  made.gated = of.gated;
  const auto sample_before = sample_of(of, before);
  const auto sample_after = sample_of(of, after);
  if (sample_before)
    made.before = std::exp(sample_before->mean);
  if (sample_after)
    made.after = std::exp(sample_after->mean);
  if (!sample_before || !sample_after)
    return made;
  made.change = change_of(sample_after->mean - sample_before->mean);
  if (before.size() > 1 && after.size() > 1)
    made.interval
      = interval_of(*sample_before, *sample_after, chosen.confidence);
  made.found = made.interval && may_be_none(*made.interval)
                 ? finding::same
                 : judge(of.time == nullptr ? -*made.change : *made.change,
                         chosen.margin);
  return made;
}

// -- sides -------------------------------------------------------------------

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
  // Of two tests that stored nothing neither is as good as the other.
  if (made.after.empty == made.after.runs)
    return finding::worse;
  const auto share = [](const compared_side& side) {
    return static_cast<double>(side.empty) / static_cast<double>(side.runs);
  };
  return judge(share(made.after) - share(made.before), 0);
}

// -- notes -------------------------------------------------------------------

// A part of a report whose fields say under what it was measured.
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
  // A field that only some runs have.
  for (auto& [name, values] : known)
    for (const auto& run : side)
      if (!(run.*of.fields).contains(name))
        values.insert("not told");
  return known;
}

std::vector<std::string> differences(const circumstance& of,
                                     const std::vector<measured_run>& before,
                                     const std::vector<measured_run>& after) {
  const auto known_before = values_of(of, before);
  const auto known_after = values_of(of, after);
  // An older report has no such part, which is one difference and not many.
  if (known_before.empty() != known_after.empty())
    return {fmt::format("{} told of the runs {} only",
                        of.what,
                        known_before.empty() ? "after" : "before")};
  auto names = known_before;
  names.insert(known_after.begin(), known_after.end());
  std::vector<std::string> found;
  for (const auto& [name, unused] : names) {
    const auto joined = [&name = name](const known_values& known) {
      const auto values = known.find(name);
      return values == known.end()
               ? std::string("not told")
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
    notes.emplace_back("no intervals: a single run does not tell how much runs "
                       "vary, so a change may be chance");
  std::map<std::string_view, std::vector<std::string>> zeros;
  for (const auto& each : made.figures)
    if (!each.change)
      zeros[each.before > 0  ? "after"
            : each.after > 0 ? "before"
                             : "of each side"]
        .push_back(each.name);
  for (const auto& [side, names] : zeros)
    notes.push_back(fmt::format("no change can be told, a run {} has 0: {}",
                                side,
                                fmt::join(names, ", ")));
  return notes;
}

// -- words -------------------------------------------------------------------

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

// Puts what got worse or better into the list that it belongs to.
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

result<std::vector<measured_run>> read_runs(std::string_view text) {
  std::vector<measured_run> runs;
  auto documents = split(text);
  // One that is laid out without indentation would be split where it must not.
  if (documents.size() > 1 && parse_json(text))
    documents = {{documents.front().line, text}};
  for (const auto& each : documents) {
    const auto parsed = parse_json(each.text);
    if (!parsed) {
      // Again from the place it has in the file: the reason names a line.
      const auto placed
        = parse_json(std::string(each.line - 1, '\n').append(each.text));
      return refused(
        fmt::format("line {}: {}", each.line, placed.error().message()));
    }
    auto run = read_run(*parsed);
    if (!run)
      return refused(
        fmt::format("line {}: {}", each.line, run.error().message()));
    runs.push_back(std::move(*run));
  }
  if (runs.empty())
    return refused("there is no report of a load test in it");
  return runs;
}

std::string_view to_string(finding found) noexcept {
  constexpr std::array<std::string_view, 4> names
    = {"same", "better", "worse", "unknown"};
  return names[static_cast<std::size_t>(found)];
}

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
  for (const auto& each : figures)
    made.figures.push_back(compare_figure(each, before, after, chosen));
  sort_out(made);
  made.notes = notes_on(made);
  std::size_t cut_off = 0;
  for (const auto* side : {&before, &after})
    cut_off += static_cast<std::size_t>(
      std::ranges::count(*side, true, &measured_run::interrupted));
  if (cut_off > 0)
    made.notes.push_back(fmt::format(
      "{} of the runs ended early, which figures of whole runs do not",
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
