// Limits the requests to each host and queues the rest.
//
// A request gets a place on a lane; one I/O thread drives each lane. It gets
// the first lane with room, because earlier requests have left their idle
// connections there. Threads of a client share only this object and the inboxes
// of the shards.

#pragma once

#include "troupe/models/http/due_list.hpp"
#include "troupe/models/http/transfer.hpp"

#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Thread-safe. Tracks each request from `enter` until `forget`.
class host_gate {
public:
  using time_point = http_transfer::time_point;

  struct limits {
    std::size_t requests_per_host;
    std::size_t waiting_per_host;
    std::size_t requests_per_lane;
  };

  explicit host_gate(limits upper) : limits_(upper) {}

  enum class entry { placed, waits, full, closed };

  /// Registers a request and gives it a place, if one is free. `placed`: the
  /// request's `lane` is set. `waits`: `leave`, `withdraw`, `take_overdue` or
  /// `close` will return it. `full` and `closed`: the caller must end it.
  entry enter(const http_transfer_ptr& transfer);

  /// Registers a request that fails before it can enter.
  void note_refused();

  /// Gives up a place. Returns the request that has waited longest for that
  /// host and now has the place, or null.
  http_transfer_ptr leave(const http_transfer_ptr& transfer);

  enum class whereabouts { waited, placed, elsewhere };

  /// Removes a request from the queue, if it waits there.
  whereabouts withdraw(const http_transfer_ptr& transfer);

  /// Time at which the next waiting request has waited too long.
  std::optional<time_point> next_due() const;

  /// Removes and returns the requests that have waited too long.
  std::vector<http_transfer_ptr> take_overdue(time_point now);

  /// Refuses all later requests. Removes and returns the waiting ones.
  std::vector<http_transfer_ptr> close();

  /// Number of requests whose end was not reported.
  std::size_t under_way() const;
  void note_ended();

  /// Counts down; the request's handler was destroyed.
  void forget();

  /// Waits until `forget` was called for every request.
  void wait_until_empty();

private:
  struct host {
    std::size_t placed = 0;
    std::list<http_transfer_ptr> waiting;
  };

  /// State of a request that is queued or placed.
  struct stay {
    host* at;
    /// Position in its host's queue, if it waits.
    std::optional<std::list<http_transfer_ptr>::iterator> waits;
  };

  std::size_t take_lane();
  void remove_if_unused(const std::string& origin);

  const limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::unordered_map<std::string, host> hosts_;
  std::unordered_map<const http_transfer*, stay> stays_;
  due_list<http_transfer_ptr> waiting_;
  /// Number of requests on each lane.
  std::vector<std::size_t> lanes_;
  std::size_t under_way_ = 0;
  std::size_t known_ = 0;
  bool closed_ = false;
};

} // namespace troupe
