// The recovery of runs whose processes have ended, by a server.

#pragma once

#include "troupe/server/adk/served.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe::serving {

/// Recovers the open runs of the server's apps, as long as the server lives:
/// those of killed processes, and those of processes that end meanwhile. Each
/// run is tried once, and again only if its process was not silent after all,
/// or if the store failed. Thread-safe.
class recoveries : public std::enable_shared_from_this<recoveries> {
public:
  explicit recoveries(served_ptr on) : on_(std::move(on)) {}

  /// Looks for open runs now, and again and again.
  void start();

private:
  void take(const std::string& app, const std::vector<unfinished_run>& found);
  void recover(const agent& root, const unfinished_run& left);
  // Returns false if the run was tried before, unless another process has had
  // it since and has left it.
  bool note_try(const unfinished_run& left);
  void forget_try(const std::string& run);

  const std::weak_ptr<served> on_;
  std::mutex mutex_;
  std::map<std::string, std::string> tried_; // Holders, by the id of the run.
};

} // namespace troupe::serving
