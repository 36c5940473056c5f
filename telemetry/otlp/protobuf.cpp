// Field numbers: opentelemetry-proto 1.x, whose numbers never change.

#include "troupe/telemetry/otlp/protobuf.hpp"

#include "troupe/telemetry/otlp/valid_text.hpp"

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include <algorithm>

namespace troupe::telemetry {

namespace {

using protozero::pbf_wire_type;
using protozero::pbf_writer;

// Values of the enumerations of OpenTelemetry.
constexpr std::int32_t kind_internal = 1;
constexpr std::int32_t status_error = 2;
constexpr std::int32_t severity_info = 9;
constexpr std::int32_t temporality_cumulative = 2;

template <std::size_t Size>
void write_id(pbf_writer& into,
              protozero::pbf_tag_type tag,
              const std::array<std::uint8_t, Size>& id) {
  into.add_bytes(tag, std::string(id.begin(), id.end()));
}

void write_text(pbf_writer& into,
                protozero::pbf_tag_type tag,
                const std::string& text) {
  into.add_string(tag, valid_text(text));
}

/// Writes the alternatives of an `AnyValue`.
struct value_writer {
  pbf_writer& into;

  void operator()(const std::string& text) const { write_text(into, 1, text); }

  void operator()(bool truth) const { into.add_bool(2, truth); }

  void operator()(std::int64_t number) const { into.add_int64(3, number); }

  void operator()(double number) const { into.add_double(4, number); }

  void operator()(const std::vector<std::string>& list) const {
    pbf_writer array(into, 5);
    for (const auto& each : list) {
      pbf_writer element(array, 1);
      write_text(element, 1, each);
    }
  }
};

void write_attributes(pbf_writer& into,
                      protozero::pbf_tag_type tag,
                      const attributes& all) {
  for (const auto& each : all) {
    pbf_writer pair(into, tag);
    write_text(pair, 1, each.key);
    pbf_writer value(pair, 2);
    std::visit(value_writer{value}, each.value);
  }
}

void write_span(pbf_writer& into, const span& sent) {
  write_id(into, 1, sent.trace);
  write_id(into, 2, sent.id);
  if (!sent.trace_state.empty())
    write_text(into, 3, sent.trace_state);
  if (sent.parent != span_id())
    write_id(into, 4, sent.parent);
  write_text(into, 5, sent.name);
  into.add_enum(6, kind_internal);
  into.add_fixed64(7, sent.began);
  into.add_fixed64(8, sent.ended);
  write_attributes(into, 9, sent.attributes);
  for (const auto& each : sent.events) {
    pbf_writer event(into, 11);
    event.add_fixed64(1, each.at);
    write_text(event, 2, each.name);
    write_attributes(event, 3, each.attributes);
  }
  if (!sent.has_failed)
    return;
  pbf_writer status(into, 15);
  write_text(status, 2, sent.failure);
  status.add_enum(3, status_error);
}

void write_log(pbf_writer& into, const log_record& sent) {
  into.add_fixed64(1, sent.at);
  into.add_enum(2, severity_info);
  into.add_string(3, "INFO");
  write_attributes(into, 6, sent.attributes);
  into.add_fixed32(8, sent.is_sampled ? 1 : 0);
  write_id(into, 9, sent.trace);
  write_id(into, 10, sent.span);
  into.add_fixed64(11, sent.at);
  write_text(into, 12, sent.event_name);
}

void write_point(pbf_writer& into,
                 const histogram_request& all,
                 const instrument& of,
                 const histogram_point& sent) {
  into.add_fixed64(2, all.began);
  into.add_fixed64(3, all.now);
  into.add_fixed64(4, sent.count);
  into.add_double(5, sent.sum);
  into.add_packed_fixed64(6, sent.buckets.begin(), sent.buckets.end());
  into.add_packed_double(7, of.bounds.begin(), of.bounds.end());
  write_attributes(into, 9, sent.attributes);
  into.add_double(11, sent.min);
  into.add_double(12, sent.max);
}

void write_histogram(pbf_writer& into,
                     const histogram_request& all,
                     const histogram& sent) {
  write_text(into, 1, sent.of.name);
  write_text(into, 2, sent.of.description);
  write_text(into, 3, sent.of.unit);
  pbf_writer body(into, 9);
  for (const auto& each : sent.points) {
    pbf_writer point(body, 1);
    write_point(point, all, sent.of, each);
  }
  body.add_enum(2, temporality_cumulative);
}

// All requests have the same frame: resource, scope, records.
template <class Write>
std::string framed(const origin& from, Write write) {
  std::string bytes;
  pbf_writer whole(bytes);
  {
    pbf_writer group(whole, 1);
    {
      pbf_writer resource(group, 1);
      write_attributes(resource, 1, from.resource);
    }
    pbf_writer scoped(group, 2);
    {
      pbf_writer scope(scoped, 1);
      write_text(scope, 1, from.scope);
      if (!from.version.empty())
        write_text(scope, 2, from.version);
    }
    write(scoped);
  }
  return bytes;
}

} // namespace

std::string protobuf_of(const origin& from, const span_request& sent) {
  return framed(from, [&sent](pbf_writer& into) {
    for (const auto& each : sent.spans) {
      pbf_writer one(into, 2);
      write_span(one, each);
    }
  });
}

std::string protobuf_of(const origin& from, const log_request& sent) {
  return framed(from, [&sent](pbf_writer& into) {
    for (const auto& each : sent.records) {
      pbf_writer one(into, 2);
      write_log(one, each);
    }
  });
}

std::string protobuf_of(const origin& from, const histogram_request& sent) {
  return framed(from, [&sent](pbf_writer& into) {
    for (const auto& each : sent.histograms) {
      pbf_writer one(into, 2);
      write_histogram(one, sent, each);
    }
  });
}

std::uint64_t rejected_in_protobuf(std::string_view answer) {
  try {
    protozero::pbf_reader whole(answer.data(), answer.size());
    std::int64_t rejected = 0;
    // A field of another type is skipped; reading it would be an assertion.
    while (whole.next(1, pbf_wire_type::length_delimited)) {
      auto partial = whole.get_message();
      while (partial.next(1, pbf_wire_type::varint))
        rejected = partial.get_int64();
    }
    return static_cast<std::uint64_t>(std::max<std::int64_t>(rejected, 0));
  } catch (const protozero::exception&) {
    // The records have arrived; only the count of refused ones is unknown.
    return 0;
  }
}

} // namespace troupe::telemetry
