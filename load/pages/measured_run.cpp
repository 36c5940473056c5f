#include "troupe/load/pages/measured_run.hpp"

#include "troupe/core/support/blank.hpp"
#include "troupe/load/measuring/refused.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::load {

namespace {

// Above all values that can be measured: 32 years, in nanoseconds.
constexpr double amount_max = 1e18;

// Reads fields of a report by path, such as `response.p99`. Keeps the first
// fault; values that are read after it are not used.
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

  // The sum of all counts in an object.
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

  const json& report_; // Outlives this object.
  std::string fault_;
};

result<measured_run> read_run(const json& report) {
  // Older reports have no kind.
  if (!report.is_object() || !report.contains("settings")
      || (report.contains("kind") && report["kind"] != "load"))
    return refused("this is not a report of a load test");
  report_fields fields(report);
  measured_run run;
  for (const auto& each : measured_figures) {
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
  std::size_t line = 0; // Its first line, from 1.
  std::string_view text;
};

// Splits a text into documents: each begins at a line that starts with a brace.
// The other lines of an indented document start with a blank, except for the
// last.
std::vector<document> split(std::string_view text) {
  std::vector<document> documents;
  std::size_t line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const auto end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const auto row = text.substr(begin, end - begin);
    const bool is_blank = row.find_first_not_of(wire_white_space) == row.npos;
    if (row.starts_with('{') || (documents.empty() && !is_blank)) {
      if (!documents.empty())
        documents.back().text.remove_suffix(text.size() - begin);
      documents.push_back({line, text.substr(begin)});
    }
    begin = end;
  }
  return documents;
}

} // namespace

result<std::vector<measured_run>> read_runs(std::string_view text) {
  std::vector<measured_run> runs;
  auto documents = split(text);
  // An indented document whose lines start with a brace was split by mistake:
  // if the whole text is one JSON document, keep it.
  if (documents.size() > 1 && parse_json(text))
    documents = {{documents.front().line, text}};
  for (const auto& each : documents) {
    const auto parsed = parse_json(each.text);
    if (!parsed) {
      // Parsed again at its place in the file, so that the reason names the
      // right line.
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
    return refused("the text has no report of a load test");
  return runs;
}

} // namespace troupe::load
