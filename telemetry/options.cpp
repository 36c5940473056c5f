#include "troupe/telemetry/options.hpp"

#include "troupe/core/json.hpp"
#include "troupe/core/support/blank.hpp"
#include "troupe/models/http/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace troupe::telemetry {

namespace {

using pairs = std::vector<std::pair<std::string, std::string>>;

// The largest time that a variable may set: about eleven days.
constexpr std::uint64_t milliseconds_max = 1'000'000'000;

error wrong_value(const std::string& name, std::string_view reason) {
  return {errc::invalid_argument, fmt::format("{}: {}", name, reason)};
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char each) {
    return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a')
                                      : each;
  });
  return text;
}

// Replaces `%XX`; returns nothing if two digits do not follow.
std::optional<std::string> without_percent(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      plain += text[at];
      continue;
    }
    unsigned code = 0;
    const auto* begin = text.data() + at + 1;
    if (at + 2 >= text.size())
      return std::nullopt;
    const auto read = std::from_chars(begin, begin + 2, code, 16);
    if (read.ec != std::errc() || read.ptr != begin + 2)
      return std::nullopt;
    plain += static_cast<char>(static_cast<unsigned char>(code));
    at += 2;
  }
  return plain;
}

/// Reads `KEY=VALUE,KEY=VALUE`. Values may be percent-encoded.
result<pairs> read_pairs(const std::string& name, std::string_view text) {
  pairs read;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto each = trimmed(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size()
                                                       : comma + 1);
    if (each.empty())
      continue;
    const auto equals = each.find('=');
    // The value may be a secret, so that the message does not show it.
    if (equals == std::string_view::npos || equals == 0)
      return wrong_value(name, "expected KEY=VALUE,KEY=VALUE,…");
    const std::string key(trimmed(each.substr(0, equals)));
    auto value = without_percent(trimmed(each.substr(equals + 1)));
    if (!value || !is_utf8(*value) || !is_utf8(key))
      return wrong_value(
        name,
        fmt::format("the value of '{}' is not percent-encoded UTF-8", key));
    read.emplace_back(key, std::move(*value));
  }
  return read;
}

result<std::uint64_t> read_number(const std::string& name,
                                  const std::string& text,
                                  std::uint64_t max) {
  std::uint64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number == 0 || number > max)
    return wrong_value(
      name, fmt::format("expected a number from 1 to {}, not '{}'", max, text));
  return number;
}

result<bool> read_truth(const std::string& name, const std::string& text) {
  const auto word = lower(text);
  if (word == "true")
    return true;
  if (word == "false")
    return false;
  return wrong_value(name, fmt::format("'{}' is neither true nor false", text));
}

/// Reads variables one after the other, and keeps the first failure.
class reader {
public:
  explicit reader(const variable_source& read) : read_(read) {}

  std::optional<std::string> text(const std::string& name) const {
    auto found = read_(name);
    return found && !trimmed(*found).empty()
             ? std::optional(std::string(trimmed(*found)))
             : std::nullopt;
  }

  /// Calls `use` with the value of the variable, if it is set.
  template <class Use>
  void with(const std::string& name, Use use) {
    const auto found = failure_ ? std::nullopt : text(name);
    if (!found)
      return;
    if (result<void> used = use(*found); !used)
      failure_ = used.error();
  }

  void number(const std::string& name, std::size_t& into) {
    with(name, [&](const std::string& given) -> result<void> {
      const auto read = read_number(name, given, 10'000'000);
      if (!read)
        return read.error();
      into = *read;
      return {};
    });
  }

  void time(const std::string& name, std::chrono::milliseconds& into) {
    with(name, [&](const std::string& given) -> result<void> {
      const auto read = read_number(name, given, milliseconds_max);
      if (!read)
        return read.error();
      into = std::chrono::milliseconds(*read);
      return {};
    });
  }

  const std::optional<error>& failure() const noexcept { return failure_; }

private:
  const variable_source& read_;
  std::optional<error> failure_;
};

result<void> check_url(const std::string& name, const std::string& url) {
  const auto start = lower(url.substr(0, 8));
  if (!start.starts_with("http://") && !start.starts_with("https://"))
    return wrong_value(name,
                       "expected a URL that begins with http:// or "
                       "https://");
  return {};
}

/// Reads a receiver from the variables of all kinds of records, and from those
/// of its own kind, which count more.
void read_receiver(reader& from,
                   const std::string& kind,
                   const std::string& path,
                   receiver& into) {
  from.with("SSL_CERT_FILE", [&](const std::string& file) {
    into.certificates = file;
    return result<void>();
  });
  const std::string all = "OTEL_EXPORTER_OTLP_";
  const auto own = all + kind + "_";
  from.with(all + "ENDPOINT", [&](std::string url) -> result<void> {
    // Paths are appended. The query may be a secret, so it is not shown.
    if (url.find_first_of("?#") != std::string::npos)
      return wrong_value(all + "ENDPOINT",
                         "a URL to which paths are appended has no query and "
                         "no fragment; set the URL of each kind of record "
                         "instead, such as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    while (url.ends_with('/'))
      url.pop_back();
    into.url = url + path;
    return check_url(all + "ENDPOINT", url);
  });
  from.with(own + "ENDPOINT", [&](const std::string& url) {
    into.url = url;
    return check_url(own + "ENDPOINT", url);
  });
  for (const auto& prefix : {all, own}) {
    from.with(prefix + "HEADERS", [&](const std::string& text) -> result<void> {
      const auto name = prefix + "HEADERS";
      auto read = read_pairs(name, text);
      if (!read)
        return read.error();
      for (const auto& [header, value] : *read)
        if (!is_header_name(header) || !is_header_value(value))
          return wrong_value(
            name, "HTTP does not allow a name or a value in this list");
      into.headers = std::move(*read);
      return {};
    });
    from.with(
      prefix + "PROTOCOL", [&](const std::string& text) -> result<void> {
        const auto word = lower(text);
        if (word != "http/protobuf" && word != "http/json")
          return wrong_value(
            prefix + "PROTOCOL",
            fmt::format(
              "'{}' is neither http/protobuf nor http/json, which are "
              "the protocols that troupe sends",
              text));
        into.form = word == "http/json" ? wire_form::json : wire_form::protobuf;
        return {};
      });
    from.time(prefix + "TIMEOUT", into.timeout);
    from.with(prefix + "CERTIFICATE", [&](const std::string& file) {
      into.certificates = file;
      return result<void>();
    });
  }
  from.with(
    "OTEL_" + kind + "_EXPORTER", [&](const std::string& text) -> result<void> {
      const auto word = lower(text);
      if (word == "none")
        into.url.clear();
      else if (word != "otlp")
        return wrong_value("OTEL_" + kind + "_EXPORTER",
                           fmt::format("'{}' is neither otlp nor none", text));
      return {};
    });
}

void read_resource(reader& from, pairs& into) {
  const auto set = [&into](const std::string& key, std::string value) {
    const auto found = std::ranges::find(
      into, key, [](const auto& each) { return each.first; });
    if (found == into.end())
      into.emplace_back(key, std::move(value));
    else
      found->second = std::move(value);
  };
  const std::string attributes = "OTEL_RESOURCE_ATTRIBUTES";
  from.with(attributes, [&](const std::string& text) -> result<void> {
    auto read = read_pairs(attributes, text);
    if (!read)
      return read.error();
    for (auto& [key, value] : *read)
      set(key, std::move(value));
    return {};
  });
  const std::string service = "OTEL_SERVICE_NAME";
  from.with(service, [&](const std::string& text) -> result<void> {
    if (!is_utf8(text))
      return wrong_value(service, "it is not UTF-8");
    set("service.name", text);
    return {};
  });
}

void read_sampler(reader& from, double& into, bool& follows_parent) {
  const std::string sampler = "OTEL_TRACES_SAMPLER";
  const auto argument = sampler + "_ARG";
  from.with(sampler, [&](const std::string& text) -> result<void> {
    auto word = lower(text);
    follows_parent = word.starts_with("parentbased_");
    if (follows_parent)
      word.erase(0, std::string_view("parentbased_").size());
    if (word == "always_on")
      into = 1;
    else if (word == "always_off")
      into = 0;
    else if (word != "traceidratio")
      return wrong_value(
        sampler,
        fmt::format("'{}' is neither always_on, always_off nor traceidratio",
                    text));
    if (word != "traceidratio")
      return {};
    into = 1;
    const auto share = from.text(argument);
    if (!share)
      return {};
    const auto* end = share->data() + share->size();
    const auto read = std::from_chars(share->data(), end, into);
    if (read.ec != std::errc() || read.ptr != end || !std::isfinite(into)
        || into < 0 || into > 1)
      return wrong_value(
        argument,
        fmt::format("expected a number from 0 to 1, not '{}'", *share));
    return {};
  });
}

void read_capture(reader& from, options& into) {
  const std::string name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
  from.with(name, [&](const std::string& text) -> result<void> {
    const auto word = lower(text);
    const bool both = word == "true" || word == "1" || word == "span_and_event";
    if (!both && word != "span_only" && word != "event_only" && word != "false"
        && word != "0" && word != "no_content")
      return wrong_value(
        name,
        fmt::format("'{}' is neither true, false, no_content, span_only, "
                    "event_only nor span_and_event",
                    text));
    into.spans_have_contents = both || word == "span_only";
    into.logs_have_contents = both || word == "event_only";
    return {};
  });
}

} // namespace

bool is_on(const options& chosen) noexcept {
  return !chosen.traces.url.empty() || !chosen.metrics.url.empty()
         || !chosen.logs.url.empty();
}

variable_source process_variables() {
  return [](const std::string& name) -> std::optional<std::string> {
    // Safe as long as no thread changes the environment.
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* found = std::getenv(name.c_str());
    if (found == nullptr)
      return std::nullopt;
    return found;
  };
}

result<options> options_from(const variable_source& read) {
  options chosen;
  reader from(read);
  bool is_disabled = false;
  from.with("OTEL_SDK_DISABLED", [&](const std::string& text) -> result<void> {
    const auto truth = read_truth("OTEL_SDK_DISABLED", text);
    if (!truth)
      return truth.error();
    is_disabled = *truth;
    return {};
  });
  if (is_disabled)
    return chosen;
  // Other variables may be meant for other programs.
  const std::array receivers{"OTEL_EXPORTER_OTLP_ENDPOINT",
                             "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                             "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                             "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"};
  if (!from.failure()
      && std::ranges::none_of(receivers, [&from](const char* name) {
           return from.text(name).has_value();
         }))
    return chosen;
  read_receiver(from, "TRACES", "/v1/traces", chosen.traces);
  read_receiver(from, "METRICS", "/v1/metrics", chosen.metrics);
  read_receiver(from, "LOGS", "/v1/logs", chosen.logs);
  if (!from.failure() && !is_on(chosen))
    return chosen;
  read_resource(from, chosen.resource);
  read_sampler(from, chosen.sampled, chosen.follows_parent);
  read_capture(from, chosen);
  from.number("OTEL_BSP_MAX_QUEUE_SIZE", chosen.queue_max);
  from.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", chosen.batch_max);
  from.time("OTEL_BSP_SCHEDULE_DELAY", chosen.batch_delay);
  from.time("OTEL_METRIC_EXPORT_INTERVAL", chosen.metrics_period);
  if (from.failure())
    return *from.failure();
  chosen.batch_max = std::min(chosen.batch_max, chosen.queue_max);
  return chosen;
}

} // namespace troupe::telemetry
