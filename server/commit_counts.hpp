// Counts the commits of a runtime, for the figures of its server.
//
//   auto commits = std::make_shared<troupe::commit_counts>();
//   runtime_options.on_commit = [commits](std::size_t n) { commits->add(n); };
//   server_options.commits = commits;

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe {

/// Thread-safe.
class commit_counts {
public:
  /// Adds a commit of this number of changes.
  void add(std::size_t changes) noexcept {
    commits_.fetch_add(1, std::memory_order_relaxed);
    changes_.fetch_add(changes, std::memory_order_relaxed);
  }

  /// Number of commits.
  std::uint64_t commits() const noexcept {
    return commits_.load(std::memory_order_relaxed);
  }

  /// Number of changes in all commits.
  std::uint64_t changes() const noexcept {
    return changes_.load(std::memory_order_relaxed);
  }

private:
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<std::uint64_t> changes_{0};
};

} // namespace troupe
