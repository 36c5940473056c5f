#include "troupe/models/http/shard.hpp"

#include "troupe/core/support/low_memory.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

namespace troupe {

// Invariant: a transfer is on a lane of this shard from `start` to `finish`,
// and in `transfers_due_` for the same time. `on_end` is called exactly once,
// by `tell_end`.
//
// Order at an end: the transfer leaves its lane, the gate gives its place to
// the next request, then the handler is told. The handler comes last, because
// it may be slow or drop the last reference to the client.

namespace {

using clock = std::chrono::steady_clock;

thread_local bool runs_shard = false;

constexpr std::size_t events_max = 256;
constexpr std::uint64_t bell_mark = std::numeric_limits<std::uint64_t>::max();

/// The data of an epoll event: lane and socket.
std::uint64_t mark_of(std::size_t lane, int socket) {
  return std::uint64_t{lane} << 32U | static_cast<std::uint32_t>(socket);
}

/// Blocks signals in the new thread; they are for the program's own threads.
class signals_blocked {
public:
  signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }

  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
  sigset_t before_{};
};

/// Shares names and TLS sessions inside one thread, so it needs no locks.
CURLSH* make_share() {
  auto* share = curl_share_init();
  if (share == nullptr)
    throw std::bad_alloc();
  curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
  curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  return share;
}

} // namespace

http_shard::descriptor::descriptor(int number) : number_(number) {
  if (number < 0)
    throw std::system_error(
      errno, std::generic_category(), "start an I/O thread for HTTP");
}

http_shard::descriptor::~descriptor() {
  ::close(number_);
}

http_shard::http_shard(host_gate& gate, const setup& given)
  : gate_(gate),
    count_(given.count),
    is_first_(given.index == 0),
    epoll_(::epoll_create1(EPOLL_CLOEXEC)),
    bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
    share_(make_share(), &curl_share_cleanup),
    lane_setup_{given.certificates, given.proxy, share_.get()} {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = bell_mark;
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, bell_.number(), &event) != 0)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  const signals_blocked guard;
  thread_ = std::thread([this] { run_thread([this] { run(); }); });
}

http_shard::~http_shard() {
  join();
}

void http_shard::join() {
  if (!thread_.joinable())
    return;
  post({order::kind::quit});
  thread_.join();
}

// -- any thread ----

bool http_shard::is_io_thread() noexcept {
  return runs_shard;
}

void http_shard::begin(http_transfer_ptr transfer) {
  post({order::kind::begin, std::move(transfer)});
}

void http_shard::cancel(http_transfer_ptr transfer) {
  post({order::kind::cancel, std::move(transfer)});
}

void http_shard::refuse(http_transfer_ptr transfer, error reason) {
  post({order::kind::refuse, std::move(transfer), std::move(reason)});
}

void http_shard::wake() {
  post({order::kind::check});
}

void http_shard::stop() {
  post({order::kind::stop});
}

void http_shard::post(order next) {
  bool was_empty = false;
  {
    const std::lock_guard guard(mutex_);
    was_empty = inbox_.empty();
    inbox_.push_back(std::move(next));
  }
  // One ring is enough: the thread takes all orders that are in the inbox.
  if (was_empty) {
    const std::uint64_t ring = 1;
    [[maybe_unused]] const auto written
      = ::write(bell_.number(), &ring, sizeof ring);
  }
}

// -- the I/O thread ----

void http_shard::run() {
  runs_shard = true;
  pthread_setname_np(pthread_self(), "troupe.http");
  std::array<epoll_event, events_max> events{};
  while (!quits_) {
    const auto count = ::epoll_wait(epoll_.number(),
                                    events.data(),
                                    static_cast<int>(events.size()),
                                    wait_milliseconds());
    // Reads the bell before the inbox. In the other order an order that is
    // posted in between would wait for the next event.
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == bell_mark) {
        std::uint64_t rung = 0;
        [[maybe_unused]] const auto taken
          = ::read(bell_.number(), &rung, sizeof rung);
      }
    }
    take_orders();
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == bell_mark)
        continue;
      auto& lane = *lanes_[event.data.u64 >> 32U];
      lane.act(static_cast<int>(event.data.u64 & 0xFFFF'FFFFU), event.events);
      collect(lane);
    }
    pass_time();
  }
  lanes_.clear();
}

int http_shard::wait_milliseconds() const {
  auto next = lanes_due_.next();
  const auto consider = [&next](std::optional<time_point> other) {
    if (other && (!next || *other < *next))
      next = other;
  };
  consider(transfers_due_.next());
  if (is_first_)
    consider(gate_.next_due());
  if (!next)
    return -1;
  const auto left
    = std::chrono::ceil<std::chrono::milliseconds>(*next - clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

void http_shard::take_orders() {
  std::vector<order> taken;
  {
    const std::lock_guard guard(mutex_);
    taken.swap(inbox_);
  }
  for (auto& next : taken)
    follow(std::move(next));
}

void http_shard::follow(order next) {
  switch (next.what) {
  case order::kind::begin:
    start(next.transfer);
    if (stops_) {
      next.transfer->cancel();
      finish(next.transfer, next.transfer->outcome(CURLE_OK));
    }
    break;
  case order::kind::cancel:
    // The transfer may have ended meanwhile.
    if (transfers_due_.contains(next.transfer))
      finish(next.transfer, next.transfer->outcome(CURLE_OK));
    break;
  case order::kind::refuse:
    tell_end(*next.transfer, {*std::move(next.reason)});
    break;
  case order::kind::stop:
    stops_ = true;
    while (auto transfer = transfers_due_.take_any()) {
      (*transfer)->cancel();
      finish(*transfer, (*transfer)->outcome(CURLE_OK));
    }
    break;
  case order::kind::quit:
    quits_ = true;
    break;
  case order::kind::check:
    break;
  }
}

void http_shard::start(const http_transfer_ptr& transfer) {
  const auto now = clock::now();
  transfer->take_place(now);
  transfers_due_.set(transfer, transfer->next_check(now));
  auto& lane = lane_of(*transfer);
  try {
    lane.begin(*transfer);
  } catch (const std::exception& thrown) {
    // Ends it through the inbox, not directly: `finish` would start the next
    // request of the host, which may fail too, and so recurse.
    transfer->fail(errc::internal, thrown.what());
    cancel(transfer);
  }
  note_due(lane);
}

void http_shard::pass_time() {
  const auto now = clock::now();
  // Serves each lane once, so that a lane with short timers cannot keep the
  // thread from its sockets.
  std::vector<http_lane*> lanes;
  while (auto lane = lanes_due_.take(now))
    lanes.push_back(*lane);
  for (auto* lane : lanes) {
    lane->pass_time();
    collect(*lane);
  }
  while (auto transfer = transfers_due_.take(now)) {
    transfers_due_.set(*transfer, (*transfer)->next_check(now));
    if (auto late = (*transfer)->overdue(now))
      finish(*transfer, *std::move(late));
  }
  if (is_first_)
    for (const auto& transfer : gate_.take_overdue(now))
      tell_end(*transfer, *transfer->overdue(now));
}

void http_shard::collect(http_lane& lane) {
  while (auto ended = lane.next_ended()) {
    const auto [transfer, code] = *ended;
    finish(transfer->shared_from_this(), transfer->outcome(code));
  }
  note_due(lane);
}

void http_shard::finish(const http_transfer_ptr& transfer,
                        const http_end& ended) {
  transfers_due_.remove(transfer);
  auto& lane = lane_of(*transfer);
  lane.remove(*transfer,
              ended.outcome ? http_lane::ending::whole
                            : http_lane::ending::broken_off);
  note_due(lane);
  // The transfer has left its lane by now; otherwise the next one would exceed
  // `transfers_max`.
  if (const auto next = gate_.leave(transfer))
    start(next);
  tell_end(*transfer, ended);
}

void http_shard::tell_end(http_transfer& transfer, http_end ended) {
  gate_.note_ended();
  transfer.end(std::move(ended));
  gate_.forget();
}

// -- lanes ----

http_lane& http_shard::lane_of(const http_transfer& transfer) {
  const auto index = transfer.lane() / count_;
  while (lanes_.size() <= index)
    lanes_.push_back(std::make_unique<http_lane>(
      lane_setup_, [this, lane = lanes_.size()](int socket, unsigned events) {
        watch(lane, socket, events);
      }));
  return *lanes_[index];
}

void http_shard::watch(std::size_t lane, int socket, unsigned events) {
  if (events == 0) {
    // libcurl may have closed the socket already, which removes it from epoll.
    ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, socket, nullptr);
    return;
  }
  epoll_event event{};
  event.events = events;
  event.data.u64 = mark_of(lane, socket);
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, socket, &event) != 0)
    ::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket, &event);
}

void http_shard::note_due(http_lane& lane) {
  if (const auto due = lane.due())
    lanes_due_.set(&lane, *due);
  else
    lanes_due_.remove(&lane);
}

} // namespace troupe
