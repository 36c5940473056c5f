#include "troupe/load/report.hpp"

#include "troupe/stores/open_store.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace troupe::load {

namespace {

constexpr std::array percentile_names = {
  std::pair{std::string_view("p50"), 50.0},
  std::pair{std::string_view("p90"), 90.0},
  std::pair{std::string_view("p95"), 95.0},
  std::pair{std::string_view("p99"), 99.0},
  std::pair{std::string_view("p99.9"), 99.9},
  std::pair{std::string_view("p99.99"), 99.99},
};

constexpr std::array time_units = {
  std::pair{std::string_view("ns"), 1.0},
  std::pair{std::string_view("us"), 1e3},
  std::pair{std::string_view("ms"), 1e6},
  std::pair{std::string_view("s"), 1e9},
};

double seconds(const outcome& made) {
  return std::chrono::duration<double>(made.elapsed).count();
}

double rate(const outcome& made) {
  return made.elapsed.count() > 0
           ? static_cast<double>(made.stored) / seconds(made)
           : 0;
}

// Appends begun per second; for closed callers, the achieved rate.
double offered_rate(const outcome& made) {
  const std::chrono::duration<double> time
    = made.chosen.appends || made.chosen.arrival == arrival::closed
        ? made.offering
        : std::max<std::chrono::nanoseconds>(made.offering,
                                             made.chosen.duration);
  return time.count() > 0 ? static_cast<double>(made.sent) / time.count() : 0;
}

// The wanted rate, the offered rate, and the reason of a difference.
std::string offer_lines(const outcome& made) {
  constexpr std::chrono::milliseconds late{1};
  auto text = fmt::format("{:.0f} per second were offered, {:g} requested\n",
                          offered_rate(made),
                          made.chosen.rate);
  const auto p99 = std::min(made.lateness.value_at(99), made.lateness.max());
  if (p99 >= late)
    text += fmt::format(
      "the tool itself began appends late, by {} at the 99th percentile, and "
      "{} at most:\nthe response times include this delay, the service times "
      "do not\n",
      to_text(p99),
      to_text(made.lateness.max()));
  return text;
}

// The mean, median and maximum size of commits.
std::string batch_line(const outcome& made) {
  std::uint64_t commits = 0;
  std::uint64_t events = 0;
  for (const auto& [size, count] : made.batches) {
    commits += count;
    events += size * count;
  }
  if (commits == 0)
    return {};
  std::uint64_t before = 0;
  std::size_t median = 0;
  for (const auto& [size, count] : made.batches) {
    before += count;
    if (before * 2 >= commits) {
      median = size;
      break;
    }
  }
  return fmt::format(
    "{} commits of {:.1f} events on average, {} in the middle, {} at most\n",
    commits,
    static_cast<double>(events) / static_cast<double>(commits),
    median,
    made.batches.rbegin()->first);
}

// CPU time per append, including the tool's own.
std::chrono::nanoseconds cost(const outcome& made) {
  return made.stored == 0 ? std::chrono::nanoseconds(0)
                          : made.cpu / static_cast<std::int64_t>(made.stored);
}

std::string cost_line(const outcome& made) {
  const auto all = cost(made);
  if (all.count() == 0)
    return {};
  if (made.reads > 0)
    return fmt::format("an append takes {} of CPU time, concurrent reads "
                       "included; the tool itself takes {}\n",
                       to_text(all),
                       to_text(made.own_cost));
  return fmt::format("an append takes {} of CPU time, {:.1f} % of it the tool "
                     "itself ({})\n",
                     to_text(all),
                     100.0 * static_cast<double>(made.own_cost.count())
                       / static_cast<double>(all.count()),
                     to_text(made.own_cost));
}

std::uint64_t failures(const outcome& made) {
  std::uint64_t count = 0;
  for (const auto& [code, number] : made.failed)
    count += number;
  return count;
}

// Not above the largest recorded value.
std::chrono::nanoseconds percentile(const histogram& of, double which) {
  return std::min(of.value_at(which), of.max());
}

std::string latency_line(std::string_view what, const histogram& of) {
  if (of.empty())
    return {};
  auto line = fmt::format("{:<34}", what);
  for (const auto& [name, which] : percentile_names)
    line += fmt::format("{:>10}", to_text(percentile(of, which)));
  return line + fmt::format("{:>10}\n", to_text(of.max()));
}

std::string model_of(const settings& chosen) {
  if (chosen.arrival == arrival::closed)
    return fmt::format("closed, {} callers that wait for their answers",
                       chosen.callers);
  return fmt::format("open, {} appends per second, whatever the answers do",
                     chosen.rate);
}

std::string distribution_of(const settings& chosen) {
  if (chosen.hot)
    return "all on one session";
  return chosen.zipf > 0 ? fmt::format("by Zipf, {}", chosen.zipf)
                         : std::string("evenly");
}

json verdict_to_json(const outcome& made) {
  auto written = json::object();
  written["checked"] = made.found.has_value();
  written["holds"] = made.holds();
  if (!made.closing.empty())
    written["closing"] = made.closing;
  if (!made.found) {
    written["reason"] = made.unchecked;
    return written;
  }
  const auto& found = *made.found;
  written["acknowledged"] = found.acknowledged;
  written["lost"] = found.lost;
  written["doubled"] = found.doubled;
  written["ghosts"] = found.ghosts;
  written["reordered"] = found.reordered;
  written["torn"] = found.torn;
  written["wrongTotals"] = found.wrong_totals;
  written["findings"] = found.findings;
  return written;
}

json expectations_to_json(const outcome& made) {
  auto written = json::array();
  for (const auto& each : made.expected) {
    auto& added = written.emplace_back(json::object());
    added["text"] = each.text;
    added["holds"] = each.holds;
    if (!each.holds)
      added["finding"] = each.finding;
  }
  return written;
}

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(number)
      || number < 0)
    return std::nullopt;
  return number;
}

bool is_count(std::string_view what) {
  return what == "rate" || what == "errors";
}

// A time with unit, in nanoseconds.
std::optional<double> parse_time(std::string_view text) {
  const auto unit = text.find_first_not_of("0123456789.");
  if (unit == std::string_view::npos)
    return std::nullopt;
  const auto known = std::ranges::find(
    time_units, text.substr(unit), [](const auto& row) { return row.first; });
  const auto number = parse_number(text.substr(0, unit));
  if (known == time_units.end() || !number)
    return std::nullopt;
  return *number * known->second;
}

double measured(const outcome& made, std::string_view what) {
  if (what == "rate")
    return rate(made);
  if (what == "errors")
    return static_cast<double>(failures(made));
  if (what == "max")
    return static_cast<double>(made.response.max().count());
  if (what == "mean")
    return made.response.mean().count();
  const auto known = std::ranges::find(
    percentile_names, what, [](const auto& row) { return row.first; });
  return static_cast<double>(percentile(made.response, known->second).count());
}

std::string shown(std::string_view what, double amount) {
  return is_count(what) ? fmt::format("{:.0f}", amount)
                        : to_text(std::chrono::nanoseconds(
                          static_cast<std::int64_t>(amount)));
}

} // namespace

std::string to_rfc3339(timestamp time) {
  return fmt::format(
    "{:%Y-%m-%dT%H:%M:%SZ}",
    fmt::gmtime(std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(
        time))));
}

std::string to_text(std::chrono::nanoseconds time) {
  const auto amount = static_cast<double>(time.count());
  if (amount < 1e3)
    return fmt::format("{:.0f} ns", amount);
  const auto& [name, unit] = amount < 1e6   ? time_units[1]
                             : amount < 1e9 ? time_units[2]
                                            : time_units[3];
  const auto scaled = amount / unit;
  return fmt::format("{:.{}f} {}",
                     scaled,
                     scaled < 10    ? 2
                     : scaled < 100 ? 1
                                    : 0,
                     name);
}

std::string describe(const outcome& made) {
  const auto& chosen = made.chosen;
  return fmt::format(
    "store      {}, {}\n"
    "load       {}; seed {}\n"
    "sessions   {} of {} users of {} apps (load-{}-0, ...), appends {}\n"
    "mix        {}; {} bytes of text each\n"
    "machine    {}\n"
    "versions   troupe {}, {}, {}\n",
    without_password(name_of(chosen.store)),
    name_of(chosen.store).starts_with("memory:")
      ? "nothing outlives the program"
      : to_string(chosen.durability),
    model_of(chosen),
    chosen.seed,
    chosen.sessions,
    chosen.users,
    chosen.apps,
    made.run,
    distribution_of(chosen),
    to_string(chosen.mix),
    chosen.payload,
    to_text(made.made_on),
    made.made_with.troupe,
    made.made_with.store,
    made.made_with.compiler);
}

std::string to_text(const outcome& made) {
  const auto& chosen = made.chosen;
  auto text = describe(made) + '\n';
  text += fmt::format("{} appends stored in {:.2f} s: {:.0f} per second{}\n",
                      made.stored,
                      seconds(made),
                      rate(made),
                      made.interrupted ? " (ended early)" : "");
  if (chosen.arrival == arrival::open)
    text += offer_lines(made);
  if (made.reads > 0)
    text += fmt::format("{} reads meanwhile\n", made.reads);
  for (const auto& [code, count] : made.failed)
    text += fmt::format("{} failed with {}\n", count, code);
  for (const auto& [code, count] : made.failed_reads)
    text += fmt::format("{} reads failed with {}\n", count, code);
  if (made.stored == 0)
    text += "nothing was stored, so there is nothing to judge\n";
  text += batch_line(made);
  text += cost_line(made);
  text += fmt::format("{} MiB resident at the end\n\n", made.memory >> 20U);
  text += fmt::format("{:<34}", "");
  for (const auto& [name, which] : percentile_names)
    text += fmt::format("{:>10}", name);
  text += fmt::format("{:>10}\n", "max");
  if (chosen.arrival == arrival::open)
    text += latency_line("response, from when it was due", made.response);
  text += latency_line("service, from call to answer", made.service);
  if (chosen.mix.size() > 1)
    for (std::size_t entry = 0; entry < made.by_entry.size(); ++entry)
      text += latency_line("  " + to_string({chosen.mix[entry]}),
                           made.by_entry[entry]);
  text += latency_line("reads", made.reading);
  text += '\n';
  if (!made.closing.empty())
    text += fmt::format("- closing the store: {}\n", made.closing);
  if (!made.found)
    return text
           + fmt::format("verdict: not checked, the store could not be read: "
                         "{}{}\n",
                         made.unchecked,
                         broken_expectations(made));
  for (const auto& finding : made.found->findings)
    text += fmt::format("- {}\n", finding);
  return text + to_string(*made.found) + broken_expectations(made) + '\n';
}

json to_json(const settings& chosen) {
  auto written = json::object();
  written["store"] = without_password(name_of(chosen.store));
  written["durability"] = to_string(chosen.durability);
  written["apps"] = chosen.apps;
  written["users"] = chosen.users;
  written["sessions"] = chosen.sessions;
  written["callers"] = chosen.callers;
  written["appends"] = chosen.appends ? json(*chosen.appends) : json();
  written["durationSeconds"]
    = static_cast<double>(chosen.duration.count()) / 1e3;
  written["arrival"] = chosen.arrival == arrival::closed ? "closed" : "open";
  written["rate"] = chosen.rate;
  written["zipf"] = chosen.zipf;
  written["hot"] = chosen.hot;
  written["ops"] = to_string(chosen.mix);
  written["payloadBytes"] = chosen.payload;
  written["readers"] = chosen.readers;
  written["seed"] = chosen.seed;
  return written;
}

json to_json(const outcome& made) {
  auto written = json::object();
  written["kind"] = "load";
  written["settings"] = to_json(made.chosen);
  written["machine"] = to_json(made.made_on);
  written["versions"] = to_json(made.made_with);
  written["startedAt"] = to_rfc3339(made.started);
  written["run"] = made.run;
  written["elapsedSeconds"] = seconds(made);
  written["interrupted"] = made.interrupted;
  written["sent"] = made.sent;
  written["stored"] = made.stored;
  written["reads"] = made.reads;
  written["failed"] = made.failed;
  written["failedReads"] = made.failed_reads;
  written["appendsPerSecond"] = rate(made);
  written["offeredPerSecond"] = offered_rate(made);
  written["cpuPerAppendNanoseconds"] = cost(made).count();
  written["ownCostNanoseconds"] = made.own_cost.count();
  written["residentBytes"] = made.memory;
  written["response"] = to_json(made.response);
  written["service"] = to_json(made.service);
  written["reading"] = to_json(made.reading);
  written["lateness"] = to_json(made.lateness);
  auto& entries = written["byOperation"] = json::object();
  for (std::size_t entry = 0; entry < made.by_entry.size(); ++entry)
    entries[to_string({made.chosen.mix[entry]})]
      = to_json(made.by_entry[entry]);
  auto& batches = written["batches"] = json::array();
  for (const auto& [events, count] : made.batches)
    batches.push_back(json::array({events, count}));
  auto& rows = written["seconds"] = json::array();
  for (const auto& each : made.seconds) {
    auto row = json::object();
    row["atSeconds"] = static_cast<double>(each.at.count()) / 1e3;
    row["offered"] = each.offered;
    row["stored"] = each.stored;
    row["failed"] = each.failed;
    row["inFlight"] = each.in_flight;
    row["p50"] = each.p50.count();
    row["p99"] = each.p99.count();
    row["max"] = each.max.count();
    row["residentBytes"] = each.memory;
    rows.push_back(std::move(row));
  }
  written["verdict"] = verdict_to_json(made);
  written["expectations"] = expectations_to_json(made);
  return written;
}

std::string to_csv(const outcome& made) {
  std::string text
    = "at_seconds,offered,stored,failed,in_flight,p50_ns,p99_ns,max_ns,"
      "resident_bytes\n";
  // Without answers the latency is unknown, not zero.
  const auto latency = [](const interval& of, std::chrono::nanoseconds time) {
    return of.stored > 0 ? std::to_string(time.count()) : std::string();
  };
  for (const auto& each : made.seconds)
    text += fmt::format("{:.3f},{},{},{},{},{},{},{},{}\n",
                        static_cast<double>(each.at.count()) / 1e3,
                        each.offered,
                        each.stored,
                        each.failed,
                        each.in_flight,
                        latency(each, each.p50),
                        latency(each, each.p99),
                        latency(each, each.max),
                        each.memory);
  return text;
}

std::string broken_expectations(const outcome& made) {
  std::string text;
  for (const auto& each : made.expected)
    if (!each.holds)
      text += "; FAILED: " + each.finding;
  return text;
}

result<expectation> read_expectation(std::string_view text) {
  const auto bad = [text](std::string_view why) {
    return error(
      errc::invalid_argument,
      fmt::format(
        "'{}' {}; expected for example p99<5ms, rate>100000, errors<1",
        text,
        why));
  };
  const auto sign = text.find_first_of("<>");
  if (sign == std::string_view::npos)
    return bad("has no '<' and no '>'");
  expectation read;
  read.text = text;
  read.what = text.substr(0, sign);
  read.less = text[sign] == '<';
  const bool is_percentile
    = std::ranges::find(
        percentile_names, read.what, [](const auto& row) { return row.first; })
      != percentile_names.end();
  if (!is_percentile && !is_count(read.what) && read.what != "max"
      && read.what != "mean")
    return bad("names no known figure (p50, p90, p95, p99, p99.9, "
               "p99.99, max, mean, rate, errors)");
  const auto limit = text.substr(sign + 1);
  const auto amount
    = is_count(read.what) ? parse_number(limit) : parse_time(limit);
  if (!amount)
    return bad(is_count(read.what)
                 ? "has a limit that is not a number"
                 : "has a limit that is not a time with a unit "
                   "(ns, us, ms, s)");
  read.limit = *amount;
  return read;
}

result<void> check_expectations(const settings& chosen,
                                const std::vector<expectation>& expected) {
  const auto impossible = [](std::string_view what, std::string_view why) {
    return error(errc::invalid_argument,
                 fmt::format("'{}' can never hold: {}", what, why));
  };
  for (const auto& each : expected) {
    if (each.less && each.limit <= 0)
      return impossible(each.text, "nothing is less than that");
    if (!each.less && each.what == "rate" && chosen.arrival == arrival::open
        && each.limit >= chosen.rate)
      return impossible(
        each.text,
        fmt::format("only {} appends per second are offered", chosen.rate));
    for (const auto& other : expected)
      if (each.what == other.what && each.less && !other.less
          && each.limit <= other.limit)
        return impossible(each.text + ", " + other.text,
                          "nothing lies between them");
  }
  return {};
}

std::vector<judged_expectation>
judge_expectations(const outcome& made,
                   const std::vector<expectation>& expected) {
  std::vector<judged_expectation> judged;
  for (const auto& each : expected) {
    auto& added = judged.emplace_back();
    added.text = each.text;
    // Without an append no latency is low.
    if (!is_count(each.what) && made.response.empty()) {
      added.finding
        = fmt::format("expected {}, but nothing was stored", each.text);
      continue;
    }
    const auto found = measured(made, each.what);
    added.holds = each.less ? found < each.limit : found > each.limit;
    if (!added.holds)
      added.finding = fmt::format("expected {}, but {} is {}",
                                  each.text,
                                  each.what,
                                  shown(each.what, found));
  }
  return judged;
}

} // namespace troupe::load
