#include "troupe/load/experiment_report.hpp"

#include "troupe/load/pages/series.hpp"
#include "troupe/load/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace troupe::load {

namespace {

using measure = std::function<double(const experiment_run&)>;

double count_of(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count());
}

double parallelism(const experiment_run& made) {
  return made.wall.count() > 0 ? count_of(made.line.work) / count_of(made.wall)
                               : 0;
}

double overhead(const experiment_run& made) {
  const auto turns
    = std::max<std::size_t>(made.line.longest_lane_model_calls, 1);
  return std::max(count_of(made.wall - made.line.longest_lane), 0.0)
         / static_cast<double>(turns);
}

double tokens(const experiment_run& made) {
  return static_cast<double>(made.line.tokens);
}

std::optional<run_figure>
figure_of(const std::vector<const experiment_run*>& runs, const measure& of) {
  std::vector<double> values;
  for (const auto* each : runs)
    if (each->error.empty())
      values.push_back(of(*each));
  if (values.empty())
    return std::nullopt;
  return load::figure_of(std::move(values));
}

std::optional<double>
agreement_of(const std::vector<const experiment_run*>& runs) {
  std::map<std::size_t, std::map<std::string, std::size_t>> said;
  for (const auto* each : runs)
    if (each->error.empty())
      ++said[each->which.input][each->output];
  double sum = 0;
  std::size_t inputs = 0;
  for (const auto& [input, outputs] : said) {
    std::size_t all = 0;
    std::size_t most = 0;
    for (const auto& [output, count] : outputs) {
      all += count;
      most = std::max(most, count);
    }
    if (all < 2)
      continue;
    sum += static_cast<double>(most) / static_cast<double>(all);
    ++inputs;
  }
  if (inputs == 0)
    return std::nullopt;
  return sum / static_cast<double>(inputs);
}

std::vector<std::pair<json, std::uint64_t>>
values_of(const std::vector<const experiment_run*>& runs,
          const std::string& key) {
  std::map<std::string, std::pair<json, std::uint64_t>> counts;
  for (const auto* each : runs) {
    if (!each->error.empty() || !each->state.contains(key))
      continue;
    auto& known = counts[each->state.at(key).dump()];
    known.first = each->state.at(key);
    ++known.second;
  }
  std::vector<std::pair<json, std::uint64_t>> values;
  values.reserve(counts.size());
  for (auto& [text, counted] : counts)
    values.push_back(std::move(counted));
  std::ranges::stable_sort(
    values, std::greater(), [](const auto& each) { return each.second; });
  return values;
}

variant_summary summarize(std::string name,
                          const std::vector<const experiment_run*>& runs,
                          const std::vector<std::string>& keys) {
  variant_summary made;
  made.name = std::move(name);
  made.runs = runs.size();
  for (const auto* each : runs)
    if (!each->error.empty())
      ++made.failed[each->error];
  made.wall
    = figure_of(runs, [](const auto& each) { return count_of(each.wall); });
  made.longest_lane = figure_of(
    runs, [](const auto& each) { return count_of(each.line.longest_lane); });
  made.parallelism = figure_of(runs, parallelism);
  made.overhead_per_turn = figure_of(runs, overhead);
  made.model_calls = figure_of(runs, [](const auto& each) {
    return static_cast<double>(each.line.model_calls);
  });
  made.tool_calls = figure_of(runs, [](const auto& each) {
    return static_cast<double>(each.line.tool_calls);
  });
  if (std::ranges::any_of(
        runs, [](const auto* each) { return each->line.tokens > 0; }))
    made.tokens = figure_of(runs, tokens);
  std::vector<double> costs;
  for (const auto* each : runs) {
    const auto& cost = each->line.cost;
    if (!cost)
      continue;
    for (const auto& [model, count] : cost->unpriced)
      made.unpriced[model] += count;
    // A part of the cost would make the variant look cheap.
    if (each->error.empty() && cost->unpriced.empty())
      costs.push_back(cost->amount);
  }
  if (!costs.empty())
    made.cost = load::figure_of(std::move(costs));
  made.agreement = agreement_of(runs);
  for (const auto& key : keys)
    made.keys[key] = values_of(runs, key);
  return made;
}

std::string time_of(double amount) {
  return to_text(std::chrono::nanoseconds(static_cast<std::int64_t>(amount)));
}

std::string mean_time(const std::optional<run_figure>& figure) {
  return figure ? time_of(figure->mean) : "-";
}

std::string mean_number(const std::optional<run_figure>& figure, int digits) {
  return figure ? fmt::format("{:.{}f}", figure->mean, digits) : "-";
}

std::string interval_of(const std::optional<run_figure>& figure) {
  if (!figure)
    return "-";
  auto text = time_of(figure->mean);
  if (figure->low)
    text += fmt::format(" ({} to {})",
                        time_of(std::max(*figure->low, 0.0)),
                        time_of(*figure->high));
  return text;
}

std::string
row_of(const variant_summary& made, std::size_t width, bool has_prices) {
  std::uint64_t failed = 0;
  for (const auto& [code, count] : made.failed)
    failed += count;
  return fmt::format(
    "{:<{}}{:>6}{:>8}{:>33}{:>12}{:>10}{:>10}{:>8}{:>8}{}{:>11}\n",
    made.name,
    width,
    made.runs,
    failed,
    interval_of(made.wall),
    mean_time(made.longest_lane),
    mean_number(made.parallelism, 2),
    mean_time(made.overhead_per_turn),
    mean_number(made.model_calls, 1),
    mean_number(made.tokens, 0),
    has_prices ? fmt::format("{:>12}", mean_number(made.cost, 6)) : "",
    made.agreement ? fmt::format("{:.0f} %", *made.agreement * 100) : "-");
}

std::string shortened(const std::string& text) {
  constexpr std::size_t length_max = 70;
  if (text.size() <= length_max)
    return text;
  auto end = length_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  return text.substr(0, end) + "...";
}

std::string details_of(const variant_summary& made) {
  constexpr std::size_t values_max = 3;
  std::string text;
  for (const auto& [code, count] : made.failed)
    text += fmt::format("  {} failed with {}\n", count, code);
  for (const auto& [model, count] : made.unpriced)
    text += fmt::format("  no price for {} ({} tokens)\n",
                        model.empty() ? "a model without a name" : model,
                        count);
  for (const auto& [key, values] : made.keys) {
    for (std::size_t index = 0; index < std::min(values.size(), values_max);
         ++index)
      text += fmt::format("  {} = {} in {} runs\n",
                          key,
                          shortened(values[index].first.dump()),
                          values[index].second);
    if (values.size() > values_max)
      text += fmt::format(
        "  {} had {} other values\n", key, values.size() - values_max);
    if (values.empty())
      text += fmt::format("  {} was never there\n", key);
  }
  return text;
}

json to_json(const std::optional<run_figure>& figure) {
  if (!figure)
    return nullptr;
  auto written = json::object();
  written["mean"] = figure->mean;
  written["low"] = figure->low ? json(*figure->low) : json();
  written["high"] = figure->high ? json(*figure->high) : json();
  written["min"] = figure->min;
  written["p50"] = figure->p50;
  written["p90"] = figure->p90;
  written["max"] = figure->max;
  return written;
}

json to_json(const variant_summary& made,
             const std::vector<std::string>& changes) {
  auto written = json::object();
  written["name"] = made.name;
  written["changes"] = changes;
  written["runs"] = made.runs;
  written["failed"] = made.failed;
  written["wall"] = to_json(made.wall);
  written["longestLane"] = to_json(made.longest_lane);
  written["parallelism"] = to_json(made.parallelism);
  written["overheadPerTurn"] = to_json(made.overhead_per_turn);
  written["modelCalls"] = to_json(made.model_calls);
  written["toolCalls"] = to_json(made.tool_calls);
  written["tokens"] = to_json(made.tokens);
  written["cost"] = to_json(made.cost);
  written["unpriced"] = made.unpriced;
  written["agreement"] = made.agreement ? json(*made.agreement) : json();
  auto& keys = written["keys"] = json::object();
  for (const auto& [key, values] : made.keys) {
    auto& counted = keys[key] = json::array();
    for (const auto& [held, count] : values) {
      auto added = json::object();
      added["value"] = held;
      added["count"] = count;
      counted.push_back(std::move(added));
    }
  }
  return written;
}

json by_key(const std::vector<key_difference>& changes) {
  auto written = json::object();
  for (const auto& each : changes) {
    auto& changed = written[each.key] = json::object();
    if (each.before)
      changed["before"] = *each.before;
    if (each.after)
      changed["after"] = *each.after;
  }
  return written;
}

// The newest events of the past that say something, oldest first.
json past_of(const event_slice& past) {
  constexpr std::size_t shown_max = 6;
  auto shown = json::array();
  for (auto index = past.size(); index-- > 0 && shown.size() < shown_max;) {
    const auto& said = *past[index];
    if (said.text().empty())
      continue;
    auto added = json::object();
    added["revision"] = past.number(index);
    added["author"] = said.author;
    added["text"] = said.text();
    shown.push_back(std::move(added));
  }
  std::ranges::reverse(shown);
  return shown;
}

json from_of(const experiment_outcome& made) {
  if (!made.made.from)
    return nullptr;
  const auto& [session, revision] = *made.made.from;
  auto written = json::object();
  written["app"] = session.app;
  written["user"] = session.user;
  written["session"] = session.id;
  written["revision"] = revision ? json(*revision) : json();
  written["past"] = past_of(made.past);
  return written;
}

json to_json(const experiment_run& made,
             const std::string& variant,
             bool with_timeline) {
  auto written = json::object();
  written["variant"] = variant;
  written["input"] = made.which.input;
  written["repeat"] = made.which.repeat;
  auto& session = written["session"] = json::object();
  session["app"] = made.session.app;
  session["user"] = made.session.user;
  session["id"] = made.session.id;
  written["wall"] = made.wall.count();
  written["longestLane"] = made.line.longest_lane.count();
  written["work"] = made.line.work.count();
  written["modelCalls"] = made.line.model_calls;
  written["toolCalls"] = made.line.tool_calls;
  written["tokens"] = made.line.tokens > 0 ? json(made.line.tokens) : json();
  written["cost"]
    = made.line.cost ? to_json(*made.line.cost, made.line.currency) : json();
  written["error"] = made.error.empty() ? json() : json(made.error);
  written["reason"] = made.reason.empty() ? json() : json(made.reason);
  written["output"] = made.output;
  written["state"] = made.state;
  written["changes"] = by_key(made.changes);
  written["timeline"] = with_timeline ? to_json(made.line) : json();
  return written;
}

// The cost of all runs, the failed ones included.
cost_sum cost_of(const experiment_outcome& made) {
  cost_sum sum;
  for (const auto& each : made.runs)
    if (each.line.cost)
      sum.add(*each.line.cost);
  return sum;
}

// Names of sessions may hold line ends.
std::string without_line_ends(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// The line of the report that names the session of all runs; empty if each run
// has a session of its own.
std::string start_of(const experiment& planned) {
  if (!planned.from)
    return {};
  const auto& [session, revision] = *planned.from;
  return fmt::format(
    "from       revision {} of session {}, app {}, user {}\n"
    "           Each run is on a fork in this app; all share the state of the "
    "app and of the user.\n",
    revision ? fmt::to_string(*revision) : "newest",
    without_line_ends(session.id),
    without_line_ends(session.app),
    without_line_ends(session.user));
}

// The runs whose timelines are shown: the first ones of each variant, in equal
// numbers.
std::set<std::size_t> choose_timelines(const experiment_outcome& made,
                                       std::size_t count) {
  std::vector<std::vector<std::size_t>> by_variant(made.made.variants.size());
  for (std::size_t index = 0; index < made.runs.size(); ++index)
    by_variant[made.runs[index].which.variant].push_back(index);
  std::set<std::size_t> chosen;
  for (std::size_t round = 0; chosen.size() < count; ++round) {
    bool found = false;
    for (const auto& runs : by_variant)
      if (round < runs.size() && chosen.size() < count) {
        chosen.insert(runs[round]);
        found = true;
      }
    if (!found)
      break;
  }
  return chosen;
}

} // namespace

run_figure figure_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto mean = estimate_mean(values);
  const auto at = [&values](double share) {
    const auto rank
      = std::lround(share * static_cast<double>(values.size() - 1));
    return values[static_cast<std::size_t>(rank)];
  };
  run_figure made;
  made.mean = mean.mean;
  made.low = mean.low;
  made.high = mean.high;
  made.min = values.front();
  made.p50 = at(0.5);
  made.p90 = at(0.9);
  made.max = values.back();
  return made;
}

std::vector<variant_summary> summarize(const experiment_outcome& made) {
  std::vector<std::vector<const experiment_run*>> runs(
    made.made.variants.size());
  for (const auto& each : made.runs)
    runs[each.which.variant].push_back(&each);
  std::vector<variant_summary> summaries;
  for (std::size_t index = 0; index < runs.size(); ++index)
    summaries.push_back(
      summarize(made.made.variants[index].name, runs[index], made.made.keys));
  return summaries;
}

std::string to_text(const experiment_outcome& made) {
  const auto& planned = made.made;
  auto text = fmt::format(
    "experiment {}: {} variants x {} inputs x {} repeats, {} at once; seed {}\n"
    "agents     {}\n"
    "{}"
    "store      {} ({} {}-{}-VARIANT-INPUT-REPEAT)\n"
    "machine    {}\n"
    "versions   troupe {}, {}, {}\n\n"
    "{} runs in {}{}\n\n",
    planned.name,
    planned.variants.size(),
    planned.inputs.size(),
    planned.repeats,
    planned.at_once,
    planned.seed,
    planned.agent_file.string(),
    start_of(planned),
    made.store,
    planned.from ? "sessions" : "apps",
    planned.name,
    made.run,
    to_text(made.made_on),
    made.made_with.troupe,
    made.made_with.store,
    made.made_with.compiler,
    made.runs.size(),
    to_text(made.elapsed),
    made.interrupted ? " (ended early)" : "");
  std::size_t width = 8;
  for (const auto& each : planned.variants)
    width = std::max(width, each.name.size());
  const bool has_prices = planned.prices != nullptr;
  text += fmt::format(
    "{:<{}}{:>6}{:>8}{:>33}{:>12}{:>10}{:>10}{:>8}{:>8}{}{:>11}\n",
    "variant",
    width,
    "runs",
    "failed",
    "wall, mean (95 %)",
    "longest",
    "at a time",
    "overhead",
    "models",
    "tokens",
    has_prices ? fmt::format("{:>12}", "cost") : "",
    "agreement");
  const auto summaries = summarize(made);
  for (const auto& each : summaries)
    text += row_of(each, width, has_prices);
  for (std::size_t index = 0; index < summaries.size(); ++index) {
    const auto details = details_of(summaries[index]);
    const auto& changes = planned.variants[index].changes;
    if (details.empty() && changes.empty())
      continue;
    text += fmt::format("\n{}\n", summaries[index].name);
    for (const auto& change : changes)
      text += fmt::format("  with {}\n", change);
    text += details;
  }
  if (has_prices)
    text += fmt::format("\ncost of all runs: {}\n",
                        to_text(cost_of(made), planned.prices->currency()));
  return text
         + "\nlongest: work of the longest chain of lanes; at a time: all work "
           "over wall time;\noverhead: wall time beyond the longest chain, for "
           "each model call in it\n";
}

json to_json(const experiment_outcome& made, std::size_t timelines_max) {
  const auto& planned = made.made;
  auto written = json::object();
  written["kind"] = "experiment";
  written["name"] = planned.name;
  written["file"] = planned.file.string();
  written["agent"] = planned.agent_file.string();
  written["run"] = made.run;
  written["startedAt"] = to_rfc3339(made.started);
  written["elapsedSeconds"]
    = std::chrono::duration<double>(made.elapsed).count();
  written["interrupted"] = made.interrupted;
  written["from"] = from_of(made);
  written["seed"] = planned.seed;
  written["repeats"] = planned.repeats;
  written["inputs"] = planned.inputs;
  written["machine"] = to_json(made.made_on);
  written["versions"] = to_json(made.made_with);
  auto& settings = written["settings"] = json::object();
  settings["store"] = made.store;
  settings["atOnce"] = planned.at_once;
  settings["state"] = planned.state;
  written["cost"] = planned.prices
                      ? to_json(cost_of(made), planned.prices->currency())
                      : json();
  auto& variants = written["variants"] = json::array();
  const auto summaries = summarize(made);
  for (std::size_t index = 0; index < summaries.size(); ++index)
    variants.push_back(
      to_json(summaries[index], planned.variants[index].changes));
  const auto shown = choose_timelines(made, timelines_max);
  auto& runs = written["runs"] = json::array();
  for (std::size_t index = 0; index < made.runs.size(); ++index)
    runs.push_back(
      to_json(made.runs[index],
              planned.variants[made.runs[index].which.variant].name,
              shown.contains(index)));
  return written;
}

} // namespace troupe::load
