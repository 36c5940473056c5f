// Exports spans, histograms and log records of runs to receivers of
// OpenTelemetry (docs/telemetry.md).

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/plugin.hpp"
#include "troupe/core/error.hpp"
#include "troupe/telemetry/options.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::telemetry {

/// Numbers of spans and log records since the start.
struct record_counts {
  /// Records that a receiver has accepted.
  std::uint64_t sent = 0;
  /// Records that no receiver has got: the queue was full, the receiver has
  /// refused them, or it could not be reached.
  std::uint64_t dropped = 0;
};

/// Makes records from the hooks of a plugin, and sends them on a thread of its
/// own. No hook waits for a receiver. All members are thread-safe.
class exporter {
public:
  /// Starts the thread. Sends nothing until there are records, so a receiver
  /// that does not answer is no failure. Fails with `errc::invalid_argument`
  /// for a limit or a period that is not above 0, and with `errc::busy` if
  /// there is no thread.
  static result<exporter> start(options chosen);

  /// Takes the exporter over. The moved-from object can only be assigned to or
  /// destroyed.
  exporter(exporter&&) noexcept;
  /// Exchanges both exporters.
  exporter& operator=(exporter&&) noexcept;

  /// Leaves the thread to the plugins; the last one ends it.
  ~exporter();

  /// Tells the agents of an app, so that spans have the names of their models
  /// and their descriptions. An empty name: of every app. Call it before runs
  /// begin. Agents of toolsets are not found.
  void describe(const agent& root, const std::string& app = {});

  /// Makes the plugin of one runtime, whose name is `telemetry`; each runtime
  /// needs one of its own, whose runs it ends. The plugin sets the spans of
  /// contexts (`callback_context::set_trace`) and of requests to models, and
  /// changes no run. As the first one of the runtime it sees everything: a
  /// plugin before it may answer in its place. When the runtime shuts down, it
  /// sends the records that are left, for `options::close_timeout` at most.
  plugin watcher() const;

  /// Makes a function for `runtime_options::on_commit` that measures the number
  /// of changes in each commit.
  std::function<void(std::size_t changes)> commits() const;

  /// Sends all records of ended work, and the histograms, now, and drops those
  /// that the receiver does not take. Returns true if that ended within
  /// `limit`, in real time.
  bool flush(std::chrono::milliseconds limit);

  /// The numbers of records so far.
  record_counts counts() const;

private:
  struct parts;

  explicit exporter(std::shared_ptr<parts> made);

  std::shared_ptr<parts> parts_;
};

} // namespace troupe::telemetry
