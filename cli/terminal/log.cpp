#include "troupe/cli/terminal/log.hpp"

#include "troupe/cli/terminal/visible_text.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <utility>

namespace troupe::cli {

namespace {

constexpr std::array<const char*, 3> severity_words{"INFO", "WARN", "ERROR"};

// One for the whole program, as stderr is.
std::atomic<log_format>& format_of_lines() {
  static std::atomic<log_format> chosen{log_format::text};
  return chosen;
}

// The time as RFC 3339 has it, in UTC.
std::string time_text() {
  using namespace std::chrono;
  const auto now = time_point_cast<milliseconds>(system_clock::now());
  const auto whole = floor<seconds>(now);
  const std::time_t since = system_clock::to_time_t(whole);
  std::tm parts{};
  ::gmtime_r(&since, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                     parts.tm_year + 1900,
                     parts.tm_mon + 1,
                     parts.tm_mday,
                     parts.tm_hour,
                     parts.tm_min,
                     parts.tm_sec,
                     (now - whole).count());
}

} // namespace

void set_log_format(log_format chosen) noexcept {
  format_of_lines() = chosen;
}

log_format chosen_log_format() noexcept {
  return format_of_lines();
}

std::string
json_log_line(log_severity severity, std::string_view message, json fields) {
  auto line = json::object();
  line["time"] = time_text();
  line["severity"] = severity_words.at(static_cast<std::size_t>(severity));
  line["message"] = std::string(message);
  line.update(fields);
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

void write_log(log_severity severity,
               std::string_view prefix,
               std::string_view message,
               json fields) {
  const auto line
    = chosen_log_format() == log_format::json
        ? json_log_line(severity, message, std::move(fields))
        : fmt::format("{}{}\n", prefix, visible_text(message, " "));
  // One call, so lines of several threads do not mix.
  std::fwrite(line.data(), 1, line.size(), stderr);
}

} // namespace troupe::cli
