#include "http2_server.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>

namespace troupe::testing {

namespace {

int checked(int done, const char* what) {
  if (done < 0)
    throw std::system_error(errno, std::generic_category(), what);
  return done;
}

/// Selects HTTP/2; a client without it is refused.
int choose_protocol(SSL*,
                    const unsigned char** chosen,
                    unsigned char* size,
                    const unsigned char* offered,
                    unsigned int offered_size,
                    void*) {
  auto* found = const_cast<unsigned char*>(*chosen);
  if (nghttp2_select_next_protocol(&found, size, offered, offered_size) != 1)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

std::string text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

} // namespace

http2_server::http2_server(server_script script)
  : http2_server(
    [script = std::move(script)](const served_request&) { return script; }) {}

http2_server::http2_server(answerer answer)
  : http2_server(std::move(answer), options{}) {}

http2_server::http2_server(answerer answer, options given)
  : answer_(std::move(answer)),
    options_(given),
    epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
    bell_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  SSL_CTX_set_alpn_select_cb(certificate_.context(), &choose_protocol, nullptr);
  SSL_CTX_set_mode(certificate_.context(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE
                     | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  std::tie(listener_, port_) = listen_on_loopback(1024, blocking::off);
  for (const int watched : {listener_, bell_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = watched;
    checked(::epoll_ctl(epoll_, EPOLL_CTL_ADD, watched, &event), "epoll_ctl");
  }
  thread_ = std::thread([this] { run(); });
}

http2_server::~http2_server() {
  post([this] { quits_ = true; });
  thread_.join();
  for (const auto& [socket, at] : open_)
    ::close(socket);
  for (const int ended : {listener_, bell_, epoll_})
    ::close(ended);
}

std::string http2_server::url(std::string_view path) const {
  return fmt::format("https://localhost:{}{}", port_, path);
}

// -- orders of the test's thread ----

void http2_server::post(std::function<void()> order) {
  {
    const std::lock_guard guard(mutex_);
    orders_.push_back(std::move(order));
  }
  ::eventfd_write(bell_, 1);
}

void http2_server::let_go() {
  post([this] {
    let_go_ = true;
    for (auto& [socket, at] : open_)
      for (auto& [id, held] : at.streams)
        if (std::exchange(held.holds, false))
          answer_on(at, id, held);
  });
}

void http2_server::go_away(std::size_t streams) {
  post([this, streams] {
    // A client's streams have odd numbers.
    const auto last
      = streams == 0 ? 0 : static_cast<std::int32_t>(2 * streams - 1);
    for (auto& [socket, at] : open_)
      if (at.session)
        nghttp2_submit_goaway(at.session.get(),
                              NGHTTP2_FLAG_NONE,
                              last,
                              NGHTTP2_NO_ERROR,
                              nullptr,
                              0);
  });
}

void http2_server::hang_up(farewell how) {
  post([this, how] {
    std::vector<int> sockets;
    for (auto& [socket, at] : open_) {
      sockets.push_back(socket);
      if (how == farewell::garbage) {
        const std::string_view bytes = "HTTP/1.1 400 Bad Request\r\n\r\n";
        SSL_write(at.tls.get(), bytes.data(), static_cast<int>(bytes.size()));
      } else if (how == farewell::orderly) {
        nghttp2_session_terminate_session(at.session.get(), NGHTTP2_NO_ERROR);
        send(socket, at);
      } else if (how == farewell::reset) {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      }
    }
    for (const int socket : sockets)
      end(socket);
  });
}

std::size_t http2_server::connections() const {
  const std::lock_guard guard(mutex_);
  return connections_;
}

std::vector<served_request> http2_server::requests() const {
  const std::lock_guard guard(mutex_);
  return requests_;
}

std::vector<std::string> http2_server::broken() const {
  const std::lock_guard guard(mutex_);
  return broken_;
}

std::size_t http2_server::streams_at_once() const {
  const std::lock_guard guard(mutex_);
  return streams_at_once_;
}

void http2_server::wait_for_requests(std::size_t count) {
  wait_until([&] { return requests_.size() >= count; });
}

void http2_server::wait_for_streams(std::size_t count) {
  wait_until([&] { return streams_ >= count; });
}

void http2_server::wait_for_broken(std::size_t count) {
  wait_until([&] { return broken_.size() >= count; });
}

void http2_server::wait_for_ends(std::size_t count) {
  wait_until([&] { return ends_ >= count; });
}

void http2_server::wait_until(const std::function<bool()>& reached) {
  std::unique_lock guard(mutex_);
  if (!changed_.wait_for(guard, std::chrono::seconds(30), reached))
    throw std::runtime_error(fmt::format(
      "the server waits in vain: {} requests, {} streams, {} of them broken, "
      "{} connections, {} of them ended",
      requests_.size(),
      streams_,
      broken_.size(),
      connections_,
      ends_));
}

// -- connections ----

void http2_server::run() {
  block_broken_pipes();
  std::array<epoll_event, 64> events{};
  while (!quits_) {
    const int count = ::epoll_wait(
      epoll_, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int socket = events[static_cast<std::size_t>(i)].data.fd;
      if (socket == listener_)
        accept_all();
      else if (socket == bell_)
        take_orders();
      else
        go_on(socket);
    }
  }
}

void http2_server::take_orders() {
  eventfd_t rung = 0;
  ::eventfd_read(bell_, &rung);
  std::vector<std::function<void()>> taken;
  {
    const std::lock_guard guard(mutex_);
    taken.swap(orders_);
  }
  for (const auto& order : taken)
    order();
  std::vector<int> sockets;
  for (const auto& [socket, at] : open_)
    sockets.push_back(socket);
  for (const int socket : sockets)
    go_on(socket);
}

void http2_server::accept_all() {
  while (true) {
    const int socket
      = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0)
      return;
    // Head and body are written separately, so Nagle's algorithm is switched
    // off.
    const int at_once = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = socket;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
    auto& at = open_[socket];
    at.server = this;
    at.tls.reset(SSL_new(certificate_.context()));
    SSL_set_fd(at.tls.get(), socket);
    SSL_set_accept_state(at.tls.get());
    const std::lock_guard guard(mutex_);
    at.number = ++connections_;
  }
}

void http2_server::open_session(connection& at) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
                                                          &take_begin);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &take_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
                                                            &take_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &take_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                         &take_close);
  nghttp2_option* rules = nullptr;
  nghttp2_option_new(&rules);
  nghttp2_option_set_no_auto_window_update(rules,
                                           options_.takes_bodies ? 0 : 1);
  nghttp2_option_set_max_send_header_block_length(rules, 1U << 20U);
  nghttp2_session* made = nullptr;
  nghttp2_session_server_new2(&made, callbacks, &at, rules);
  at.session.reset(made);
  nghttp2_option_del(rules);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry most{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                    options_.streams_max};
  nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, &most, 1);
}

void http2_server::go_on(int socket) {
  const auto found = open_.find(socket);
  if (found == open_.end())
    return;
  auto& at = found->second;
  if (at.leaves) {
    if (!is_open(socket))
      end(socket);
    return;
  }
  if (!at.session && !shake_hands(socket, at))
    return;
  if (!receive(at) || !send(socket, at)) {
    end(socket);
    return;
  }
  if (at.watches_out == at.unsent.empty()) {
    at.watches_out = !at.unsent.empty();
    epoll_event event{};
    event.events = at.watches_out ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.fd = socket;
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &event);
  }
}

bool http2_server::shake_hands(int socket, connection& at) {
  const int done = SSL_do_handshake(at.tls.get());
  if (done == 1) {
    open_session(at);
    return true;
  }
  if (SSL_get_error(at.tls.get(), done) != SSL_ERROR_WANT_READ)
    end(socket);
  return false;
}

bool http2_server::receive(connection& at) {
  std::array<std::uint8_t, 16'384> buffer{};
  while (true) {
    const int size
      = SSL_read(at.tls.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (size <= 0)
      return SSL_get_error(at.tls.get(), size) == SSL_ERROR_WANT_READ;
    if (nghttp2_session_mem_recv(
          at.session.get(), buffer.data(), static_cast<std::size_t>(size))
        < 0)
      return false;
  }
}

bool http2_server::send(int socket, connection& at) {
  while (true) {
    if (at.unsent.empty()) {
      const std::uint8_t* bytes = nullptr;
      const auto size = nghttp2_session_mem_send(at.session.get(), &bytes);
      if (size < 0)
        return false;
      if (size == 0)
        break;
      at.unsent = text_of(bytes, static_cast<std::size_t>(size));
    }
    const int size = SSL_write(
      at.tls.get(), at.unsent.data(), static_cast<int>(at.unsent.size()));
    if (size <= 0)
      return SSL_get_error(at.tls.get(), size) == SSL_ERROR_WANT_WRITE;
    at.unsent.erase(0, static_cast<std::size_t>(size));
  }
  // All is answered after GOAWAY. The socket is still read, because closing it
  // with unread bytes would make the kernel drop the last answers.
  if (nghttp2_session_want_read(at.session.get()) == 0) {
    SSL_shutdown(at.tls.get());
    ::shutdown(socket, SHUT_WR);
    at.leaves = true;
  }
  return true;
}

bool http2_server::is_open(int socket) {
  std::array<char, 1024> ignored{};
  while (true) {
    const auto size = ::recv(socket, ignored.data(), ignored.size(), 0);
    if (size <= 0)
      return size < 0 && errno == EAGAIN;
  }
}

void http2_server::end(int socket) {
  open_.erase(socket);
  ::close(socket);
  const std::lock_guard guard(mutex_);
  ++ends_;
  changed_.notify_all();
}

// -- streams ----

int http2_server::take_begin(nghttp2_session*,
                             const nghttp2_frame* frame,
                             void* user) {
  auto& at = *static_cast<connection*>(user);
  at.streams[frame->hd.stream_id].request.connection = at.number;
  auto& server = *at.server;
  const std::lock_guard guard(server.mutex_);
  server.streams_at_once_
    = std::max(server.streams_at_once_, at.streams.size());
  return 0;
}

int http2_server::take_header(nghttp2_session*,
                              const nghttp2_frame* frame,
                              const std::uint8_t* name,
                              std::size_t name_size,
                              const std::uint8_t* text,
                              std::size_t text_size,
                              std::uint8_t,
                              void* user) {
  auto& at = *static_cast<connection*>(user);
  auto& to = at.streams[frame->hd.stream_id];
  auto header = std::pair(text_of(name, name_size), text_of(text, text_size));
  if (header.first == ":path")
    to.path = header.second;
  to.request.headers.push_back(std::move(header));
  return 0;
}

int http2_server::take_data(nghttp2_session*,
                            std::uint8_t,
                            std::int32_t id,
                            const std::uint8_t* bytes,
                            std::size_t size,
                            void* user) {
  auto& at = *static_cast<connection*>(user);
  at.streams[id].request.body += text_of(bytes, size);
  return 0;
}

int http2_server::take_frame(nghttp2_session*,
                             const nghttp2_frame* frame,
                             void* user) {
  auto& at = *static_cast<connection*>(user);
  auto& server = *at.server;
  const auto id = frame->hd.stream_id;
  if (frame->hd.type == NGHTTP2_HEADERS) {
    const std::lock_guard guard(server.mutex_);
    ++server.streams_;
    server.changed_.notify_all();
  }
  // Curl also resets streams that have ended.
  if (const auto from = at.streams.find(id);
      frame->hd.type == NGHTTP2_RST_STREAM && from != at.streams.end()) {
    const std::lock_guard guard(server.mutex_);
    server.broken_.push_back(from->second.path);
    server.changed_.notify_all();
  }
  const bool has_body
    = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
  if (has_body && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
    server.take_request(at, id);
  return 0;
}

int http2_server::take_close(nghttp2_session*,
                             std::int32_t id,
                             std::uint32_t,
                             void* user) {
  static_cast<connection*>(user)->streams.erase(id);
  return 0;
}

void http2_server::take_request(connection& at, std::int32_t id) {
  auto& from = at.streams[id];
  auto& request = from.request;
  request.line
    = fmt::format("{} {} HTTP/2", request.header(":method"), from.path);
  const auto script = answer_(request);
  from.steps.assign(script.begin(), script.end());
  answer_on(at, id, from);
  const std::lock_guard guard(mutex_);
  requests_.push_back(request);
  changed_.notify_all();
}

void http2_server::answer_on(connection& at, std::int32_t id, stream& from) {
  while (!from.holds && !from.steps.empty()) {
    const auto step = std::move(from.steps.front());
    from.steps.pop_front();
    switch (step.what) {
    case server_step::kind::send:
      from.unsent += step.make != nullptr ? step.make() : step.bytes;
      from.says = true;
      break;
    case server_step::kind::hold:
      from.holds = !let_go_;
      break;
    case server_step::kind::reset:
      nghttp2_submit_rst_stream(
        at.session.get(), NGHTTP2_FLAG_NONE, id, options_.reset_code);
      return;
    case server_step::kind::pause:
    case server_step::kind::close:
      throw std::logic_error("no step of a stream");
    }
  }
  if (from.holds && !from.says)
    return;
  if (std::exchange(from.has_head, true)) {
    nghttp2_session_resume_data(at.session.get(), id);
    return;
  }
  auto headers = options_.headers;
  headers.insert(headers.begin(), {":status", "200"});
  std::vector<nghttp2_nv> fields;
  for (auto& [name, text] : headers)
    fields.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                      reinterpret_cast<std::uint8_t*>(text.data()),
                      name.size(),
                      text.size(),
                      NGHTTP2_NV_FLAG_NONE});
  nghttp2_data_provider body{};
  body.read_callback = &give_body;
  nghttp2_submit_response(
    at.session.get(), id, fields.data(), fields.size(), &body);
}

ssize_t http2_server::give_body(nghttp2_session*,
                                std::int32_t id,
                                std::uint8_t* to,
                                std::size_t room,
                                std::uint32_t* flags,
                                nghttp2_data_source*,
                                void* user) {
  auto& from = static_cast<connection*>(user)->streams[id];
  const auto size = std::min(room, from.unsent.size() - from.sent);
  std::copy_n(from.unsent.data() + from.sent, size, to);
  from.sent += size;
  const bool is_whole = from.steps.empty() && !from.holds;
  if (is_whole && from.sent == from.unsent.size())
    *flags |= NGHTTP2_DATA_FLAG_EOF;
  else if (size == 0)
    return NGHTTP2_ERR_DEFERRED;
  return static_cast<ssize_t>(size);
}

} // namespace troupe::testing
