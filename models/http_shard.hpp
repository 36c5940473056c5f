// One I/O thread of an `http_client` and its lanes.
//
// What it hears comes through an inbox; what it does, it does alone. The first
// one also ends requests that have no place: no thread would be theirs.

#pragma once

#include "troupe/models/due_list.hpp"
#include "troupe/models/host_gate.hpp"
#include "troupe/models/http_lane.hpp"

#include <curl/curl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe {

class http_shard {
public:
  struct setup {
    std::string certificates;
    std::string proxy;
    /// Of how many it is one, and which.
    std::size_t count;
    std::size_t index;
  };

  /// `gate` outlives it. Throws `std::system_error` when there is no thread or
  /// no descriptor left.
  http_shard(host_gate& gate, const setup& given);
  http_shard(const http_shard&) = delete;
  http_shard& operator=(const http_shard&) = delete;

  ~http_shard();

  /// Ends the thread; only when nothing is under way.
  void join();

  // -- from any thread ----

  /// Whether the caller is called by the thread of one, of whatever client.
  static bool is_io_thread() noexcept;

  /// It has a place on one of this shard's lanes.
  void begin(http_transfer_ptr transfer);

  /// Nothing if it has ended.
  void cancel(http_transfer_ptr transfer);

  /// Tells its handler that it ended without a place.
  void refuse(http_transfer_ptr transfer, error reason);

  /// Looks at the gate's times again.
  void wake();

  /// Cancels all that is under way and all that begins from now on.
  void stop();

private:
  using time_point = http_transfer::time_point;

  /// What other threads want, in their order.
  struct order {
    enum class kind : std::uint8_t { begin, cancel, refuse, stop, quit, look };

    kind what;
    http_transfer_ptr transfer = {};
    std::optional<error> reason = {};
  };

  class descriptor {
  public:
    explicit descriptor(int number);
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor();

    int number() const noexcept { return number_; }

  private:
    int number_;
  };

  void post(order next);
  void run();
  int wait_milliseconds() const;
  void take_orders();
  void follow(order next);
  void start(const http_transfer_ptr& transfer);
  void pass_time();
  void collect(http_lane& lane);
  void finish(const http_transfer_ptr& transfer, const http_end& ended);
  void tell_end(http_transfer& transfer, http_end ended);
  http_lane& lane_of(const http_transfer& transfer);
  void watch(std::size_t lane, int socket, unsigned events);
  void note_due(http_lane& lane);

  host_gate& gate_;
  const std::size_t count_;
  const bool is_first_;
  const descriptor epoll_;
  const descriptor bell_;
  std::unique_ptr<CURLSH, CURLSHcode (*)(CURLSH*)> share_;
  const http_lane_setup lane_setup_;
  std::vector<std::unique_ptr<http_lane>> lanes_;
  due_list<http_lane*> lanes_due_;
  /// All that are on a lane, by when to look at their time-outs.
  due_list<http_transfer_ptr> transfers_due_;
  bool stops_ = false;
  bool quits_ = false;

  std::mutex mutex_;
  std::vector<order> inbox_;

  std::thread thread_;
};

} // namespace troupe
