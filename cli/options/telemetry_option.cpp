#include "troupe/cli/options/telemetry_option.hpp"

#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/telemetry/exporter.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace troupe::cli {

struct telemetry_option::parts {
  telemetry::exporter made;
};

namespace {

void warn_of_telemetry(const error& why) {
  std::fputs(
    visible_text(
      fmt::format("warning: no telemetry is sent: {}", why.message()), " ")
      .append("\n")
      .c_str(),
    stderr);
}

} // namespace

telemetry_option::telemetry_option() {
  auto chosen = telemetry::options_from(telemetry::process_variables());
  if (!chosen) {
    warn_of_telemetry(chosen.error());
    return;
  }
  if (!telemetry::is_on(*chosen))
    return;
  auto started = telemetry::exporter::start(std::move(*chosen));
  if (!started) {
    warn_of_telemetry(started.error());
    return;
  }
  parts_ = std::make_unique<parts>(parts{std::move(*started)});
}

telemetry_option::~telemetry_option() = default;

void telemetry_option::describe(const agent& root, const std::string& app) {
  if (parts_)
    parts_->made.describe(root, app);
}

void telemetry_option::watch(runtime_options& options) const {
  if (parts_)
    options.plugins.insert(options.plugins.begin(), parts_->made.watcher());
}

} // namespace troupe::cli
