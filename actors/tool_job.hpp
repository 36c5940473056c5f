// A tool on its way through the pool.
//
// Shared by the lane that waits for it and the thread that runs it, which may
// outlive the run.

#pragma once

#include "troupe/actors/run_shared.hpp"
#include "troupe/agents/tool.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/state.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::actors {

struct tool_job {
  enum class phase : std::uint8_t { waiting, running, returned, abandoned };

  std::shared_ptr<run_shared> run;
  std::shared_ptr<staged_deltas> staged;
  std::optional<tool> which;
  function_call call;
  std::unique_ptr<tool_context> context;
  bool finished = false; ///< The lane's to know.

  result<json> outcome = error(errc::cancelled, "the tool did not start");
  delta recorded;
  event_actions actions;

  /// Runs the tool, unless the lane has stopped waiting for it to start.
  void work();

  /// What it was doing; gives its thread up if it was running.
  phase abandon();

private:
  void perform();

  std::atomic<phase> where_{phase::waiting};
};

} // namespace troupe::actors
