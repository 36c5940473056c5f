// One I/O thread of an `http_client` with its lanes.
//
// Only this thread uses the lanes; other threads post orders to `inbox_`. Shard
// 0 also ends requests that were never given a lane.

#pragma once

#include "troupe/models/http/due_list.hpp"
#include "troupe/models/http/gate.hpp"
#include "troupe/models/http/lane.hpp"

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
    /// Number of shards, and index of this one.
    std::size_t count;
    std::size_t index;
  };

  /// `gate` must outlive it. Throws `std::system_error` if threads or
  /// descriptors are exhausted.
  http_shard(host_gate& gate, const setup& given);
  http_shard(const http_shard&) = delete;
  http_shard& operator=(const http_shard&) = delete;

  ~http_shard();

  /// Ends the thread. No request may be under way.
  void join();

  // -- any thread ----

  /// Returns true if the caller runs on the thread of any shard, of any client.
  static bool is_io_thread() noexcept;

  /// Starts a transfer that has a place on one of this shard's lanes.
  void begin(http_transfer_ptr transfer);

  /// Cancels a transfer; does nothing if it has ended.
  void cancel(http_transfer_ptr transfer);

  /// Reports to its handler that it ended without a place.
  void refuse(http_transfer_ptr transfer, error reason);

  /// Makes the shard read the gate's due times again.
  void wake();

  /// Cancels all transfers, and every transfer that begins later.
  void stop();

private:
  using time_point = http_transfer::time_point;

  /// A request of another thread; handled in order.
  struct order {
    enum class kind : std::uint8_t { begin, cancel, refuse, stop, quit, check };

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
  /// Transfers on a lane, by the time of the next time-out check.
  due_list<http_transfer_ptr> transfers_due_;
  bool stops_ = false;
  bool quits_ = false;

  std::mutex mutex_;
  std::vector<order> inbox_;

  std::thread thread_;
};

} // namespace troupe
