// The tries of a server to recover open runs: which run it tries at which look
// at the list.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/runtime/unfinished_run.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::serving {

/// Remembers the runs that were tried. A run whose recovery may succeed later
/// is tried again at the next look, then after 2, 4, 8, 16 and 30 looks. After
/// other failures it is tried again when a process has had it since, and has
/// not refused it. Thread-safe.
class tried_runs {
public:
  /// Returns true if the run is to be tried at this look, and notes the try.
  bool begin(const unfinished_run& listed);

  /// Notes how the try of the run with this id has ended, or the run itself.
  void end(const std::string& run, const result<void>& ended);

  /// Forgets failed runs of the app that are not in this list: they need no
  /// other try now, since they have ended, or this process has them.
  void forget_closed(const std::string& app,
                     const std::vector<unfinished_run>& listed);

private:
  // It is `settled` if a later try cannot succeed either, unless another
  // process has the run meanwhile.
  struct tried_run {
    enum class phase : std::uint8_t { under_way, failed, settled };

    std::string app;
    std::string holder; // Of the run before the try.
    phase is = phase::under_way;
    std::size_t failures = 0;   // One after another.
    std::size_t looks_left = 0; // Until the next try.
  };

  std::mutex mutex_;
  std::map<std::string, tried_run> tried_; // By the id of the run.
};

} // namespace troupe::serving
