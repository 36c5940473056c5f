#include "troupe/models/http_client.hpp"

#include "troupe/models/host_gate.hpp"
#include "troupe/models/http_shard.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace troupe {

namespace {

/// Never undone: other parts of the program may use libcurl, too.
void set_up_curl() {
  static std::once_flag done;
  std::call_once(done, [] {
    if (const auto code = curl_global_init(CURL_GLOBAL_DEFAULT);
        code != CURLE_OK)
      throw error(errc::internal, curl_easy_strerror(code));
  });
}

/// Threads that end clients for those who may not wait. The program's end waits
/// for them, while what libcurl needs is still there.
class ending_threads {
public:
  /// A value that lives as long as the program; made behind `set_up_curl`, so
  /// gone before what that has made.
  static ending_threads& instance() {
    static ending_threads only;
    return only;
  }

  template <class Work>
  void start(Work work) {
    const std::lock_guard guard(mutex_);
    std::thread([this, work = std::move(work)]() mutable {
      work();
      const std::lock_guard ending(mutex_);
      --count_;
      none_.notify_all();
    }).detach();
    ++count_;
  }

private:
  ending_threads() = default;

  ~ending_threads() {
    std::unique_lock guard(mutex_);
    none_.wait(guard, [this] { return count_ == 0; });
  }

  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};

std::string certificates_or_default(std::string given) {
  const char* named = std::getenv("SSL_CERT_FILE");
  if (given.empty() && named != nullptr)
    return named;
  return given;
}

} // namespace

/// Held by the client; a call that is being cancelled may be the last to let
/// go, when the threads have ended.
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

  bool is_in_handler() const {
    return std::ranges::any_of(
      shards, [](const auto& shard) { return shard->is_here(); });
  }

  void wait_for_end() {
    gate.wait_until_empty();
    for (auto& shard : shards)
      shard->join();
  }

  const std::size_t waiting_per_host;
  host_gate gate;
  /// The first one ends those that have no place.
  std::vector<std::unique_ptr<http_shard>> shards;
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
  ending_threads::instance();
  state_ = std::make_shared<http_call::client_state>(std::move(options));
}

http_client::~http_client() {
  auto& shards = state_->shards;
  for (const auto& transfer : state_->gate.close())
    shards.front()->refuse(
      transfer, transfer->failure(errc::cancelled, "the client was closed"));
  for (auto& shard : shards)
    shard->stop();
  if (!state_->is_in_handler()) {
    state_->wait_for_end();
    return;
  }
  // This thread is one of those to wait for.
  ending_threads::instance().start([state = std::move(state_)]() mutable {
    state->wait_for_end();
    state.reset();
  });
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
    ending.refuse(
      transfer,
      transfer->failure(errc::busy,
                        fmt::format("{} others wait for that host already",
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
