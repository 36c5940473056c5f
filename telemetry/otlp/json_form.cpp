#include "troupe/telemetry/otlp/json_form.hpp"

#include "troupe/telemetry/otlp/valid_text.hpp"

#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace troupe::telemetry {

namespace {

template <std::size_t Size>
std::string hexadecimal(const std::array<std::uint8_t, Size>& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const auto byte : id) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

/// Makes the alternatives of an `AnyValue`.
struct value_form {
  json operator()(const std::string& text) const {
    return json::object({{"stringValue", valid_text(text)}});
  }

  json operator()(bool truth) const {
    return json::object({{"boolValue", truth}});
  }

  json operator()(std::int64_t number) const {
    return json::object({{"intValue", std::to_string(number)}});
  }

  json operator()(double number) const {
    return json::object({{"doubleValue", number}});
  }

  json operator()(const std::vector<std::string>& list) const {
    auto values = json::array();
    for (const auto& each : list)
      values.push_back((*this)(each));
    return json::object(
      {{"arrayValue", json::object({{"values", std::move(values)}})}});
  }
};

json form_of(const attributes& all) {
  auto list = json::array();
  for (const auto& each : all)
    list.push_back(
      json::object({{"key", valid_text(each.key)},
                    {"value", std::visit(value_form(), each.value)}}));
  return list;
}

json form_of(const span_event& sent) {
  return json::object({{"timeUnixNano", std::to_string(sent.at)},
                       {"name", valid_text(sent.name)},
                       {"attributes", form_of(sent.attributes)}});
}

json form_of(const span& sent) {
  auto form = json::object({{"traceId", hexadecimal(sent.trace)},
                            {"spanId", hexadecimal(sent.id)},
                            {"name", valid_text(sent.name)},
                            {"kind", 1},
                            {"startTimeUnixNano", std::to_string(sent.began)},
                            {"endTimeUnixNano", std::to_string(sent.ended)},
                            {"attributes", form_of(sent.attributes)}});
  if (!sent.trace_state.empty())
    form["traceState"] = sent.trace_state;
  if (sent.parent != span_id())
    form["parentSpanId"] = hexadecimal(sent.parent);
  if (!sent.events.empty()) {
    auto events = json::array();
    for (const auto& each : sent.events)
      events.push_back(form_of(each));
    form["events"] = std::move(events);
  }
  if (sent.has_failed)
    form["status"]
      = json::object({{"code", 2}, {"message", valid_text(sent.failure)}});
  return form;
}

json form_of(const log_record& sent) {
  return json::object({{"timeUnixNano", std::to_string(sent.at)},
                       {"observedTimeUnixNano", std::to_string(sent.at)},
                       {"severityNumber", 9},
                       {"severityText", "INFO"},
                       {"eventName", valid_text(sent.event_name)},
                       {"attributes", form_of(sent.attributes)},
                       {"flags", sent.is_sampled ? 1 : 0},
                       {"traceId", hexadecimal(sent.trace)},
                       {"spanId", hexadecimal(sent.span)}});
}

json form_of(const histogram_request& all,
             const instrument& of,
             const histogram_point& sent) {
  auto buckets = json::array();
  for (const auto count : sent.buckets)
    buckets.push_back(std::to_string(count));
  return json::object({{"startTimeUnixNano", std::to_string(all.began)},
                       {"timeUnixNano", std::to_string(all.now)},
                       {"count", std::to_string(sent.count)},
                       {"sum", sent.sum},
                       {"min", sent.min},
                       {"max", sent.max},
                       {"bucketCounts", std::move(buckets)},
                       {"explicitBounds", of.bounds},
                       {"attributes", form_of(sent.attributes)}});
}

json form_of(const histogram_request& all, const histogram& sent) {
  auto points = json::array();
  for (const auto& each : sent.points)
    points.push_back(form_of(all, sent.of, each));
  auto body = json::object(
    {{"dataPoints", std::move(points)}, {"aggregationTemporality", 2}});
  return json::object({{"name", valid_text(sent.of.name)},
                       {"description", valid_text(sent.of.description)},
                       {"unit", valid_text(sent.of.unit)},
                       {"histogram", std::move(body)}});
}

// All requests have the same frame. `kind` is `Spans`, `Logs` or `Metrics`.
json frame(const origin& from,
           const std::string& kind,
           const char* name,
           json records) {
  auto scope = json::object({{"name", valid_text(from.scope)}});
  if (!from.version.empty())
    scope["version"] = valid_text(from.version);
  auto scoped = json::object({{"scope", std::move(scope)}});
  scoped[name] = std::move(records);
  auto group = json::object(
    {{"resource", json::object({{"attributes", form_of(from.resource)}})}});
  group["scope" + kind] = json::array({std::move(scoped)});
  auto whole = json::object();
  whole["resource" + kind] = json::array({std::move(group)});
  return whole;
}

} // namespace

json json_of(const origin& from, const span_request& sent) {
  auto spans = json::array();
  for (const auto& each : sent.spans)
    spans.push_back(form_of(each));
  return frame(from, "Spans", "spans", std::move(spans));
}

json json_of(const origin& from, const log_request& sent) {
  auto records = json::array();
  for (const auto& each : sent.records)
    records.push_back(form_of(each));
  return frame(from, "Logs", "logRecords", std::move(records));
}

json json_of(const origin& from, const histogram_request& sent) {
  auto metrics = json::array();
  for (const auto& each : sent.histograms)
    metrics.push_back(form_of(sent, each));
  return frame(from, "Metrics", "metrics", std::move(metrics));
}

std::uint64_t rejected_in_json(std::string_view answer) {
  const auto read = parse_json(answer);
  if (!read || !read->is_object())
    return 0;
  const auto partial = read->find("partialSuccess");
  if (partial == read->end() || !partial->is_object())
    return 0;
  for (const char* name :
       {"rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"}) {
    const auto count = partial->find(name);
    if (count == partial->end())
      continue;
    if (count->is_number_unsigned())
      return count->get<std::uint64_t>();
    if (!count->is_string())
      continue;
    const auto& text = count->get_ref<const std::string&>();
    std::uint64_t number = 0;
    const auto* end = text.data() + text.size();
    if (const auto done = std::from_chars(text.data(), end, number);
        done.ec == std::errc() && done.ptr == end)
      return number;
  }
  return 0;
}

} // namespace troupe::telemetry
