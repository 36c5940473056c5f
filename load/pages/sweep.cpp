#include "troupe/load/pages/sweep.hpp"

#include "troupe/load/measuring/refused.hpp"
#include "troupe/load/report.hpp"
#include "troupe/stores/open_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

namespace troupe::load {

namespace {

template <class Number>
bool parse(const std::string& text, Number& into) {
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, into);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

// Reads a value into the settings; false if it does not fit.
using setter = bool (*)(const std::string& text, settings& into);

template <auto Member>
bool set_number(const std::string& text, settings& into) {
  return parse(text, into.*Member);
}

bool set_store(const std::string& text, settings& into) {
  into.store = text;
  return is_store_scheme(text);
}

bool set_durability(const std::string& text, settings& into) {
  const auto read = durability_from(text);
  if (read)
    into.durability = *read;
  return read.has_value();
}

bool set_zipf(const std::string& text, settings& into) {
  return parse(text, into.zipf) && std::isfinite(into.zipf) && into.zipf >= 0;
}

bool set_rate(const std::string& text, settings& into) {
  return parse(text, into.rate) && std::isfinite(into.rate) && into.rate > 0;
}

bool set_appends(const std::string& text, settings& into) {
  return parse(text, into.appends.emplace()) && into.appends != 0U;
}

bool set_duration(const std::string& text, settings& into) {
  double seconds = 0;
  if (!parse(text, seconds) || !(seconds >= 0.001 && seconds <= 1e6))
    return false;
  into.duration
    = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1'000));
  return true;
}

// A mix of one entry, since a comma separates values.
bool set_ops(const std::string& text, settings& into) {
  auto read = read_mix(text);
  if (read)
    into.mix = std::move(*read);
  return read.has_value();
}

bool set_hot(const std::string& text, settings& into) {
  into.hot = text == "true";
  return into.hot || text == "false";
}

bool set_arrival(const std::string& text, settings& into) {
  into.arrival = text == "open" ? arrival::open : arrival::closed;
  return text == "open" || text == "closed";
}

const std::map<std::string, setter, std::less<>>& setters() {
  static const std::map<std::string, setter, std::less<>> known = {
    {"appends", set_appends},
    {"apps", set_number<&settings::apps>},
    {"arrival", set_arrival},
    {"duration", set_duration},
    {"hot", set_hot},
    {"ops", set_ops},
    {"users", set_number<&settings::users>},
    {"sessions", set_number<&settings::sessions>},
    {"callers", set_number<&settings::callers>},
    {"readers", set_number<&settings::readers>},
    {"payload", set_number<&settings::payload>},
    {"seed", set_number<&settings::seed>},
    {"store", set_store},
    {"durability", set_durability},
    {"zipf", set_zipf},
    {"rate", set_rate},
  };
  return known;
}

// An address that is split at a comma may show a part of its password.
bool shows_value(std::string_view name) {
  return name != "store";
}

std::string named(const std::vector<variation>& varied,
                  const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t index = 0; index < varied.size(); ++index)
    text += fmt::format(
      "{}{}={}", text.empty() ? "" : ", ", varied[index].name, values[index]);
  return text;
}

} // namespace

result<variation> read_variation(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos)
    return refused(
      fmt::format("'{}' has no values; expected for example callers=1,8,64",
                  without_password(text)));
  variation read;
  read.name = text.substr(0, equals);
  const auto known = setters().find(read.name);
  if (known == setters().end()) {
    std::string names;
    for (const auto& [name, unused] : setters())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    return refused(fmt::format(
      "'{}' cannot be varied; settings that can be: {}", read.name, names));
  }
  for (auto rest = text.substr(equals + 1);;) {
    const auto comma = rest.find(',');
    auto& added = read.values.emplace_back(rest.substr(0, comma));
    settings scratch;
    if (!known->second(added, scratch))
      return refused(
        shows_value(read.name)
          ? fmt::format("'{}' is not a value of '{}'", added, read.name)
          : fmt::format("value {} of '{}' is not one of memory:, "
                        "sqlite:PATH and postgres:URL; a comma "
                        "begins the next value",
                        read.values.size(),
                        read.name));
    if (comma == std::string_view::npos)
      return read;
    rest.remove_prefix(comma + 1);
  }
}

result<std::vector<sweep_step>>
plan_sweep(const settings& base, const std::vector<variation>& varied) {
  if (varied.empty() || varied.size() > 2)
    return refused("a sweep varies one setting or two");
  if (varied.size() == 2 && varied[0].name == varied[1].name)
    return refused(fmt::format("'{}' is varied twice", varied[0].name));
  const auto is_varied = [&varied](std::string_view name) {
    return std::ranges::find(varied, name, &variation::name) != varied.end();
  };
  if (is_varied("duration") && (base.appends || is_varied("appends")))
    return refused(
      "the duration cannot be varied if the number of appends is set");
  std::vector<sweep_step> steps{{{}, base}};
  if (is_varied("rate") && !is_varied("arrival"))
    steps.front().chosen.arrival = arrival::open;
  for (const auto& each : varied) {
    std::vector<sweep_step> longer;
    for (const auto& step : steps)
      for (const auto& value : each.values) {
        auto& added = longer.emplace_back(step);
        added.values.push_back(value);
        setters().find(each.name)->second(value, added.chosen);
      }
    steps = std::move(longer);
  }
  for (const auto& step : steps)
    if (auto fit = check_settings(step.chosen); !fit)
      return refused(fmt::format(
        "with {}: {}", named(varied, step.values), fit.error().message()));
  return steps;
}

sweep_row row_of(const sweep_step& step, const outcome& made) {
  sweep_row row;
  for (const auto& value : step.values)
    row.values.push_back(without_password(value));
  const std::chrono::duration<double> seconds = made.elapsed;
  if (seconds.count() > 0)
    row.rate = static_cast<double>(made.stored) / seconds.count();
  if (!made.response.empty()) {
    const auto at = [&made](double which) {
      return std::min(made.response.value_at(which), made.response.max());
    };
    row.p50 = at(50);
    row.p99 = at(99);
    row.p99_9 = at(99.9);
  }
  for (const auto& [code, count] : made.failed)
    row.failed += count;
  row.holds = made.holds();
  row.interrupted = made.interrupted;
  return row;
}

std::string to_text(const sweep& done) {
  const auto& [base, varied, rows, started] = done;
  constexpr std::size_t bar_length = 30;
  double fastest = 0;
  for (const auto& row : rows)
    fastest = std::max(fastest, row.rate);
  std::vector<std::size_t> widths;
  std::string text;
  for (std::size_t index = 0; index < varied.size(); ++index) {
    auto width = varied[index].name.size();
    for (const auto& value : varied[index].values)
      width = std::max(width, without_password(value).size());
    widths.push_back(width);
    text += fmt::format("{:<{}}  ", varied[index].name, width);
  }
  text += fmt::format("{:>12}{:>10}{:>10}{:>10}{:>9}  {:<8}\n",
                      "appends/s",
                      "p50",
                      "p99",
                      "p99.9",
                      "failed",
                      "verdict");
  for (const auto& row : rows) {
    for (std::size_t index = 0; index < widths.size(); ++index)
      text += fmt::format("{:<{}}  ", row.values[index], widths[index]);
    const auto length = fastest > 0 ? static_cast<std::size_t>(std::lround(
                          row.rate / fastest * static_cast<double>(bar_length)))
                                    : 0;
    text += fmt::format("{:>12.0f}{:>10}{:>10}{:>10}{:>9}  {:<8}{}\n",
                        row.rate,
                        to_text(row.p50),
                        to_text(row.p99),
                        to_text(row.p99_9),
                        row.failed,
                        row.interrupted ? "cut off"
                        : row.holds     ? "holds"
                                        : "FAILS",
                        std::string(length, '#'));
  }
  return text;
}

json to_json(const sweep& done) {
  auto written = json::object();
  written["kind"] = "sweep";
  auto& varied = written["vary"] = json::array();
  for (const auto& each : done.varied) {
    auto added = json::object();
    added["name"] = each.name;
    auto& values = added["values"] = json::array();
    for (const auto& value : each.values)
      values.push_back(without_password(value));
    varied.push_back(std::move(added));
  }
  auto& rows = written["rows"] = json::array();
  for (const auto& row : done.rows) {
    auto values = json::object();
    for (std::size_t index = 0; index < done.varied.size(); ++index)
      values[done.varied[index].name] = row.values[index];
    auto added = json::object();
    added["values"] = std::move(values);
    added["appendsPerSecond"] = row.rate;
    added["p50"] = row.p50.count();
    added["p99"] = row.p99.count();
    added["p99_9"] = row.p99_9.count();
    added["failed"] = row.failed;
    added["holds"] = row.holds;
    added["interrupted"] = row.interrupted;
    rows.push_back(std::move(added));
  }
  written["settings"] = to_json(done.base);
  written["machine"] = to_json(this_machine());
  written["versions"] = to_json(these_versions(name_of(done.base.store)));
  written["startedAt"] = to_rfc3339(done.started);
  return written;
}

} // namespace troupe::load
