#include "troupe/models/http/lane.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <new>

namespace troupe {

namespace {

using clock = std::chrono::steady_clock;

// libcurl does not reuse a connection that was idle for two minutes, and
// servers close it earlier. libcurl itself closes it only when the handle is
// used again.
constexpr std::chrono::seconds idle_max{120};

constexpr long receive_bytes = 8 << 10;
constexpr long upload_bytes = 16 << 10;
constexpr long names_known_for_seconds = 300;

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  if (const auto done = curl_easy_setopt(easy, option, value); done != CURLE_OK)
    throw error(errc::internal, curl_easy_strerror(done));
}

template <class Value>
void set(CURLM* multi, CURLMoption option, Value value) {
  if (const auto done = curl_multi_setopt(multi, option, value);
      done != CURLM_OK)
    throw error(errc::internal, curl_multi_strerror(done));
}

} // namespace

http_lane::http_lane(const http_lane_setup& setup,
                     std::function<void(int, unsigned)> watch)
  : setup_(setup),
    watch_(std::move(watch)),
    multi_(nullptr, &curl_multi_cleanup) {}

http_lane::~http_lane() {
  assert(transfers_ == 0);
}

// -- handles ----

void http_lane::open() {
  multi_.reset(curl_multi_init());
  if (!multi_)
    throw std::bad_alloc();
  set(multi_.get(), CURLMOPT_SOCKETFUNCTION, &note_socket);
  set(multi_.get(), CURLMOPT_SOCKETDATA, this);
  set(multi_.get(), CURLMOPT_TIMERFUNCTION, &note_due);
  set(multi_.get(), CURLMOPT_TIMERDATA, this);
  set(multi_.get(), CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
  set(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(2 * transfers_max));
}

http_lane::easy_ptr http_lane::make_easy() {
  easy_ptr easy(curl_easy_init(), &curl_easy_cleanup);
  if (!easy)
    throw std::bad_alloc();
  auto* made = easy.get();
  set(made, CURLOPT_SHARE, setup_.share);
  set(made, CURLOPT_NOSIGNAL, 1L);
  set(made, CURLOPT_PROTOCOLS_STR, "http,https");
  set(made, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
  // A redirect could send the key to another host.
  set(made, CURLOPT_FOLLOWLOCATION, 0L);
  set(made, CURLOPT_ACCEPT_ENCODING, "gzip");
  set(made, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(made, CURLOPT_BUFFERSIZE, receive_bytes);
  set(made, CURLOPT_UPLOAD_BUFFERSIZE, upload_bytes);
  set(made, CURLOPT_TCP_KEEPALIVE, 1L);
  set(made, CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  set(made, CURLOPT_OPENSOCKETDATA, this);
  set(made, CURLOPT_CLOSESOCKETFUNCTION, &close_socket);
  set(made, CURLOPT_CLOSESOCKETDATA, this);
  set(made, CURLOPT_DNS_CACHE_TIMEOUT, names_known_for_seconds);
  // Without this option, the removal of a transfer waits for the thread that
  // resolves its host. That thread cleans up after itself.
  set(made, CURLOPT_QUICK_EXIT, 1L);
  set(made, CURLOPT_SSL_VERIFYPEER, 1L);
  set(made, CURLOPT_SSL_VERIFYHOST, 2L);
  if (!setup_.certificates.empty()) {
    set(made, CURLOPT_CAINFO, setup_.certificates.c_str());
    set(made, CURLOPT_PROXY_CAINFO, setup_.certificates.c_str());
  }
  // No folder of certificates: it would be trusted besides the file, and would
  // make libcurl read the file for each connection instead of once.
  const char* built_in = nullptr;
  curl_easy_getinfo(made, CURLINFO_CAINFO, &built_in);
  if (built_in != nullptr || !setup_.certificates.empty()) {
    set(made, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    set(made, CURLOPT_PROXY_CAPATH, static_cast<const char*>(nullptr));
  }
  if (!setup_.proxy.empty())
    set(made, CURLOPT_PROXY, setup_.proxy.c_str());
  return easy;
}

// -- transfers ----

void http_lane::begin(http_transfer& transfer) {
  assert(transfers_ < transfers_max);
  if (!multi_)
    open();
  close_due_.reset();
  ++transfers_;
  auto& at = hosts_[transfer.origin()];
  // A first transfer is connecting, so this one waits for its result.
  if (at.connecting > 0 && at.connected == 0)
    at.held.push_back(&transfer);
  else
    add(transfer, at);
}

void http_lane::add(http_transfer& transfer, host& at) {
  if (free_.empty())
    free_.push_back(make_easy());
  auto* easy = free_.back().get();
  // A handle serves one request after another, so this is set for each. An
  // empty value disables `NO_PROXY`, null enables it.
  const char* const excepted = transfer.is_direct()    ? "*"
                               : !setup_.proxy.empty() ? ""
                                                       : nullptr;
  set(easy, CURLOPT_NOPROXY, excepted);
  transfer.mount(easy, just_connected_, connections_);
  static_cast<void>(free_.back().release());
  free_.pop_back();
  ++at.connecting;
  at.added.insert(&transfer);
  [[maybe_unused]] const auto added = curl_multi_add_handle(multi_.get(), easy);
  assert(added == CURLM_OK);
}

void http_lane::remove(http_transfer& transfer, ending how) {
  const auto found = hosts_.find(transfer.origin());
  auto& at = found->second;
  if (auto* easy = transfer.easy()) {
    if (how == ending::broken_off)
      transfer.take_connection_along();
    curl_multi_remove_handle(multi_.get(), easy);
    transfer.dismount();
    free_.emplace_back(easy, &curl_easy_cleanup);
    --(transfer.is_connected() ? at.connected : at.connecting);
    at.added.erase(&transfer);
    if (how == ending::broken_off && transfer.is_connected())
      send_what_is_kept_back(at, transfer.local_port());
    if (at.connecting == 0 && at.connected == 0)
      release(at);
  } else {
    std::erase(at.held, &transfer);
  }
  if (at.connecting == 0 && at.connected == 0)
    hosts_.erase(found);
  if (--transfers_ == 0)
    close_due_ = clock::now() + idle_max;
}

// Before version 8, libcurl keeps the RST_STREAM of a removed transfer until
// something else happens on the connection. That may take long, and the server
// would keep sending. Pausing and resuming another transfer on the connection
// sends it.
void http_lane::send_what_is_kept_back(const host& at, int local_port) {
  const auto same = std::find_if(
    at.added.begin(), at.added.end(), [local_port](const http_transfer* other) {
      return other->is_connected() && other->local_port() == local_port;
    });
  if (same == at.added.end())
    return;
  curl_easy_pause((*same)->easy(), CURLPAUSE_SEND);
  curl_easy_pause((*same)->easy(), CURLPAUSE_CONT);
}

void http_lane::release(host& at) {
  // As in `begin`: if no connection is established, the next transfer connects
  // alone.
  while (!at.held.empty() && (at.connecting == 0 || at.connected > 0)) {
    auto* next = at.held.front();
    at.held.pop_front();
    add(*next, at);
  }
}

// -- events ----

void http_lane::act(int socket, unsigned events) {
  if (!multi_)
    return;
  int mask = 0;
  if ((events & EPOLLIN) != 0)
    mask |= CURL_CSELECT_IN;
  if ((events & EPOLLOUT) != 0)
    mask |= CURL_CSELECT_OUT;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0)
    mask |= CURL_CSELECT_ERR;
  int running = 0;
  curl_multi_socket_action(multi_.get(), socket, mask, &running);
  after_curl();
}

void http_lane::pass_time() {
  const auto now = clock::now();
  if (close_due_ && now >= *close_due_) {
    close_due_.reset();
    curl_due_.reset();
    free_.clear();
    multi_.reset();
    return;
  }
  if (curl_due_ && now >= *curl_due_) {
    curl_due_.reset();
    int running = 0;
    curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
    after_curl();
  }
}

void http_lane::after_curl() {
  for (auto* transfer : std::exchange(just_connected_, {})) {
    auto& at = hosts_.at(transfer->origin());
    --at.connecting;
    ++at.connected;
    release(at);
  }
}

std::optional<http_lane::time_point> http_lane::due() const {
  if (curl_due_ && close_due_)
    return std::min(*curl_due_, *close_due_);
  return curl_due_ ? curl_due_ : close_due_;
}

std::optional<std::pair<http_transfer*, CURLcode>> http_lane::next_ended() {
  int left = 0;
  while (multi_) {
    const auto* message = curl_multi_info_read(multi_.get(), &left);
    if (message == nullptr)
      break;
    if (message->msg != CURLMSG_DONE)
      continue;
    http_transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    return std::pair(transfer, message->data.result);
  }
  return std::nullopt;
}

int http_lane::note_socket(
  CURL*, curl_socket_t socket, int what, void* self, void*) {
  unsigned events = 0;
  if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
    events |= EPOLLIN;
  if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
    events |= EPOLLOUT;
  static_cast<http_lane*>(self)->watch_(socket, events);
  return 0;
}

/// Opens sockets with close-on-exec, so that programs that tools start do not
/// inherit them.
curl_socket_t
http_lane::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  const int opened = ::socket(
    address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (opened >= 0)
    static_cast<http_lane*>(self)->connections_.note_opened(opened);
  return opened;
}

int http_lane::close_socket(void* self, curl_socket_t socket) {
  auto& lane = *static_cast<http_lane*>(self);
  if (const auto port = lane.connections_.note_closed(socket))
    for (const auto& [origin, at] : lane.hosts_)
      for (auto* each : at.added)
        if (each->is_connected() && each->local_port() == *port)
          each->note_much_came();
  return ::close(socket);
}

int http_lane::note_due(CURLM*, long milliseconds, void* self) {
  auto& lane = *static_cast<http_lane*>(self);
  lane.curl_due_.reset();
  if (milliseconds >= 0)
    lane.curl_due_ = clock::now() + std::chrono::milliseconds(milliseconds);
  return 0;
}

} // namespace troupe
