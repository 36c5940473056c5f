// The recovery of runs whose processes have ended, by a server.

#pragma once

#include "troupe/server/adk/served.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe::serving {

/// Recovers the open runs of the server's apps, as long as the server lives:
/// those of killed processes, and those of processes that end meanwhile. A
/// recovery that may succeed later is tried again, after waits that grow. After
/// other failures a run is tried again when another process has had it since,
/// and has not refused it. Thread-safe.
class recoveries : public std::enable_shared_from_this<recoveries> {
public:
  explicit recoveries(served_ptr on) : on_(std::move(on)) {}

  /// Looks for open runs now, and again and again.
  void start();

private:
  // A run that was tried. It is `settled` if a later try cannot succeed either,
  // unless another process has the run meanwhile.
  struct tried_run {
    enum class phase : std::uint8_t { under_way, failed, settled };

    std::string app;
    std::string holder; // Of the run before the try.
    phase is = phase::under_way;
    std::size_t failures = 0;   // One after another.
    std::size_t looks_left = 0; // Until the next try.
  };

  void look(const std::string& app);
  void take(const std::string& app, const std::vector<unfinished_run>& found);
  void recover(const agent& root, const unfinished_run& left);
  // Returns true if the run is to be tried now, and notes the try.
  bool note_try(const unfinished_run& left);
  void forget_closed(const std::string& app,
                     const std::vector<unfinished_run>& found);
  void note_end(const std::string& run, const result<void>& ended);

  const std::weak_ptr<served> on_;
  std::mutex mutex_;
  std::map<std::string, tried_run> tried_; // By the id of the run.
};

} // namespace troupe::serving
