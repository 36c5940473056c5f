// Who may ask which host: the places of each host, and the queue for them.
//
// Places are on lanes, each of which one I/O thread drives; a request gets the
// first lane with room, because connections that are idle are where requests
// were before. Threads meet here and nowhere else.

#pragma once

#include "troupe/models/due_list.hpp"
#include "troupe/models/http_transfer.hpp"

#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Thread-safe. Knows a request from `enter` until `forget`.
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

  /// `placed`: its `lane` is set. `waits`: it comes out of `leave`, `withdraw`,
  /// `take_overdue` or `close`. Otherwise it has to be ended.
  entry enter(const http_transfer_ptr& transfer);

  /// Counts one in that nobody has to let in.
  void note_refused();

  /// Gives up a place; gives the one that has waited longest for that host, now
  /// on the same lane.
  http_transfer_ptr leave(const http_transfer_ptr& transfer);

  enum class whereabouts { waited, placed, elsewhere };

  /// Takes it out of the queue if it waits there.
  whereabouts withdraw(const http_transfer_ptr& transfer);

  /// When the next that waits has waited too long.
  std::optional<time_point> next_due() const;

  /// Those that have waited too long, out of the queue now.
  std::vector<http_transfer_ptr> take_overdue(time_point now);

  /// From now on none gets a place. Gives those that waited.
  std::vector<http_transfer_ptr> close();

  /// Of those that have not been told their end.
  std::size_t under_way() const;
  void note_ended();

  /// Its handler is gone.
  void forget();

  /// Until all are forgotten.
  void wait_until_empty();

private:
  struct host {
    std::size_t placed = 0;
    std::list<http_transfer_ptr> waiting;
  };

  /// Where one is; absent: nowhere.
  struct stay {
    host* at;
    /// In the queue of its host, if it waits.
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
  /// How many requests each lane has.
  std::vector<std::size_t> lanes_;
  std::size_t under_way_ = 0;
  std::size_t known_ = 0;
  bool closed_ = false;
};

} // namespace troupe
