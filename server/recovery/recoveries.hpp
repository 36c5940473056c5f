// The recovery of runs whose processes have ended, by a server.

#pragma once

#include "troupe/server/adk/served.hpp"
#include "troupe/server/recovery/tried_runs.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::serving {

/// Recovers the open runs of the server's apps, as long as the server lives:
/// those of killed processes, and those of processes that end meanwhile. Failed
/// recoveries are tried again as `tried_runs` says. Thread-safe.
class recoveries : public std::enable_shared_from_this<recoveries> {
public:
  explicit recoveries(served_ptr on) : on_(std::move(on)) {}

  /// Looks for open runs now, and then every two seconds.
  void start();

private:
  void look(const std::string& app);
  void take(const std::string& app, const std::vector<unfinished_run>& found);
  void recover(const agent& root, const unfinished_run& left);

  const std::weak_ptr<served> on_;
  tried_runs tried_;
};

} // namespace troupe::serving
