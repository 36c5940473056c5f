#include "troupe/cli/options/telemetry_option.hpp"

#include "troupe/cli/terminal/log.hpp"
#include "troupe/telemetry/exporter.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::cli {

struct telemetry_option::parts {
  telemetry::exporter made;
};

namespace {

void warn_of_telemetry(const error& why) {
  write_log(log_severity::warning,
            "warning: ",
            fmt::format("no telemetry is sent: {}", why.message()));
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
  chosen->on_warning = [](const std::string& warning) {
    write_log(log_severity::warning, "troupe: ", warning);
  };
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
  if (!parts_)
    return;
  options.plugins.insert(options.plugins.begin(), parts_->made.watcher());
  options.on_commit
    = [measure = parts_->made.commits(),
       before = std::move(options.on_commit)](std::size_t changes) {
        measure(changes);
        if (before)
          before(changes);
      };
}

} // namespace troupe::cli
