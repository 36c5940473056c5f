#include "troupe/models/http/client.hpp"

#include "troupe/core/support/low_memory.hpp"
#include "troupe/models/http/gate.hpp"
#include "troupe/models/http/shard.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe {

namespace {

/// Initializes libcurl, and never undoes it: other parts of the program may use
/// libcurl too.
void set_up_curl() {
  static std::once_flag done;
  std::call_once(done, [] {
    if (const auto code = curl_global_init(CURL_GLOBAL_DEFAULT);
        code != CURLE_OK)
      throw error(errc::internal, curl_easy_strerror(code));
  });
}

std::string certificates_or_default(std::string given) {
  // Safe as long as no thread changes the environment.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* named = std::getenv("SSL_CERT_FILE");
  if (given.empty() && named != nullptr)
    return named;
  return given;
}

} // namespace

/// Owned by the client. A call that is being cancelled may hold the last
/// reference, after the threads have ended.
struct http_call::client_state {
  explicit client_state(http_client_options options)
    : waiting_per_host(options.waiting_per_host),
      gate({.requests_per_host
            = std::max<std::size_t>(options.requests_per_host, 1),
            .waiting_per_host = options.waiting_per_host,
            .requests_per_lane = http_lane::transfers_max}) {
    const auto count = std::max<std::size_t>(options.threads, 1);
    const auto certificates
      = certificates_or_default(std::move(options.certificates));
    for (std::size_t i = 0; i < count; ++i)
      shards.push_back(std::make_unique<http_shard>(
        gate,
        http_shard::setup{.certificates = certificates,
                          .proxy = options.proxy,
                          .count = count,
                          .index = i}));
  }

  http_shard& shard_of(const http_transfer& transfer) {
    return *shards[transfer.lane() % shards.size()];
  }

  /// Cancels all requests and waits for their ends. Must not be called on an
  /// I/O thread: that thread may be one of those to wait for.
  ///
  /// The order matters: the gate closes first, so that no request gets a place
  /// after `stop`; the shards are joined last, because they still report the
  /// ends.
  void end() {
    std::call_once(ended, [this] {
      for (const auto& transfer : gate.close())
        shards.front()->refuse(
          transfer,
          transfer->failure(errc::cancelled, "the client was closed"));
      for (auto& shard : shards)
        shard->stop();
      gate.wait_until_empty();
      for (auto& shard : shards)
        shard->join();
    });
  }

  const std::size_t waiting_per_host;
  host_gate gate;
  /// Shard 0 also ends requests that have no place.
  std::vector<std::unique_ptr<http_shard>> shards;
  std::once_flag ended;
};

/// All open clients. Closes clients whose last owner was a handler, which must
/// not wait. Closes the remaining ones at the end of the program, while the
/// data that libcurl needs still exists.
class http_call::client_registry {
public:
  using client = std::shared_ptr<client_state>;

  /// Created after `set_up_curl`, and therefore destroyed before the data that
  /// libcurl has created.
  static client_registry& instance() {
    static client_registry only;
    return only;
  }

  void add(const client& made) {
    const std::lock_guard guard(mutex_);
    std::erase_if(known_, [](const auto& each) { return each.expired(); });
    known_.push_back(made);
  }

  void end_elsewhere(client left) {
    const std::lock_guard guard(mutex_);
    if (is_over_)
      return; // The destructor closes all known clients.
    left_.push_back(std::move(left));
    try {
      if (!ending_.joinable())
        ending_ = std::thread([this] { run_thread([this] { end_left(); }); });
      came_.notify_one();
    } catch (const std::system_error&) {
      // Without a thread, the next call or the end of the program closes it.
    }
  }

private:
  client_registry() = default;

  ~client_registry() {
    if (http_shard::is_io_thread()) {
      // A handler called `exit`. Waiting for its own thread would never end.
      {
        const std::lock_guard guard(mutex_);
        is_over_ = true;
        came_.notify_one();
      }
      if (ending_.joinable())
        ending_.detach();
      return;
    }
    std::vector<client> open;
    {
      const std::lock_guard guard(mutex_);
      is_over_ = true;
      // Under the lock: a handler that drops its client from here on must not
      // be the last owner, or the client's thread would wait for itself.
      for (const auto& each : known_)
        if (auto left = each.lock())
          open.push_back(std::move(left));
      came_.notify_one();
    }
    for (const auto& left : open)
      left->end();
    if (ending_.joinable())
      ending_.join();
  }

  void end_left() {
    std::unique_lock guard(mutex_);
    while (true) {
      came_.wait(guard, [this] { return !left_.empty() || is_over_; });
      if (left_.empty())
        return;
      auto next = std::move(left_.back());
      left_.pop_back();
      guard.unlock();
      next->end();
      next.reset();
      guard.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::weak_ptr<client_state>> known_;
  std::vector<client> left_;
  bool is_over_ = false;
  std::thread ending_;
};

void http_call::cancel() const {
  if (!transfer_ || !transfer_->cancel())
    return;
  const auto client = client_.lock();
  if (!client)
    return;
  switch (client->gate.withdraw(transfer_)) {
  case host_gate::whereabouts::waited:
    client->shards.front()->refuse(
      transfer_, transfer_->failure(errc::cancelled, "cancelled"));
    break;
  case host_gate::whereabouts::placed:
    client->shard_of(*transfer_).cancel(transfer_);
    break;
  case host_gate::whereabouts::elsewhere:
    break;
  }
}

http_client::http_client(http_client_options options) {
  set_up_curl();
  auto& registry = http_call::client_registry::instance();
  state_ = std::make_shared<http_call::client_state>(std::move(options));
  registry.add(state_);
}

http_client::~http_client() {
  if (http_shard::is_io_thread())
    http_call::client_registry::instance().end_elsewhere(std::move(state_));
  else
    state_->end();
}

http_call http_client::start(http_request request, http_handler handler) {
  http_call call;
  call.client_ = state_;
  call.transfer_
    = std::make_shared<http_transfer>(std::move(request), std::move(handler));
  const auto& transfer = call.transfer_;
  auto& ending = *state_->shards.front();
  if (const auto checked = transfer->check(); !checked) {
    state_->gate.note_refused();
    ending.refuse(transfer, checked.error());
    return call;
  }
  switch (state_->gate.enter(transfer)) {
  case host_gate::entry::placed:
    state_->shard_of(*transfer).begin(transfer);
    break;
  case host_gate::entry::waits:
    ending.wake();
    break;
  case host_gate::entry::full:
    ending.refuse(transfer,
                  transfer->failure(
                    errc::busy,
                    fmt::format("{} other requests wait for that host already",
                                state_->waiting_per_host)));
    break;
  case host_gate::entry::closed:
    ending.refuse(transfer,
                  transfer->failure(errc::cancelled, "the client was closed"));
    break;
  }
  return call;
}

std::size_t http_client::under_way() const {
  return state_->gate.under_way();
}

std::shared_ptr<http_client> shared_http_client() {
  static const auto client = std::make_shared<http_client>();
  return client;
}

} // namespace troupe
