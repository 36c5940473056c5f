// The connection, for a socket with or without TLS. Each of the two is compiled
// by a source of its own.
//
// Invariants: every member runs on the strand of the socket, except those that
// say otherwise. At most one read and one write are under way.

#pragma once

#include "troupe/server/http/connection.hpp"
#include "troupe/server/http/outgoing.hpp"

// After io.hpp, which stands before all headers of Boost.Asio.
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::serving {

namespace beast = boost::beast;

using boost::system::error_code;

/// Returns the answer to a request that cannot be read; nothing if the
/// connection is closed without one.
std::optional<response> refusal_of(const error_code& failure);

using request_parser = beast::http::request_parser<beast::http::string_body>;

/// Makes a request, without its body, of a parsed head. Returns the answer to a
/// message that breaks a rule of HTTP.
std::optional<response>
read_request(const request_parser& parsed, std::string peer, request& made);

template <class Stream>
class any_connection final
  : public live_connection,
    public std::enable_shared_from_this<any_connection<Stream>> {
public:
  any_connection(Stream stream,
                 std::shared_ptr<const connection_settings> settings)
    : settings_(std::move(settings)),
      stream_(std::move(stream)) {
    error_code failure;
    const auto other = socket().remote_endpoint(failure);
    peer_ = failure ? "?" : other.address().to_string();
    socket().set_option(tcp::no_delay(true), failure);
  }

  ~any_connection() override { settings_->threads->leave(*this); }

  /// From any thread.
  void start() {
    if (!settings_->threads->enter(this->shared_from_this()))
      return;
    post([](any_connection& self) { self.greet(); });
  }

  // -- calls from any thread --------------------------------------------------

  void drain() override {
    post([](any_connection& self) {
      if (self.state_ == state::idle && self.buffer_.size() == 0)
        self.close_now();
    });
  }

  void close() override {
    net::post(stream_.get_executor(),
              [self = this->shared_from_this()] { self->close_now(); });
  }

  std::int64_t deadline() const noexcept override { return deadline_; }

  void expire() override {
    post([](any_connection& self) { self.end_late(); });
  }

private:
  enum class state : std::uint8_t {
    idle,      // Waits for the first byte of a request.
    receiving, // Reads a request.
    answering, // Waits for an answer, or writes it.
    streaming, // Writes an answer in pieces.
    closing,   // Has sent all, and reads until the client has closed.
    closed
  };

  // A client of one request. Calls after the request are ignored.
  class requester final : public client {
  public:
    requester(std::shared_ptr<any_connection> on, std::uint64_t number)
      : on_(std::move(on)),
        number_(number) {}

    void send(response answer) override {
      call([answer = std::move(answer)](any_connection& on) mutable {
        on.send(std::move(answer));
      });
    }

    void begin(response head) override {
      call([head = std::move(head)](any_connection& on) { on.begin(head); });
    }

    void write(std::string piece, std::function<void()> ready) override {
      on_->post([number = number_,
                 piece = std::move(piece),
                 ready = std::move(ready)](any_connection& on) mutable {
        if (on.number_ == number && on.state_ == state::streaming)
          on.write(std::move(piece), std::move(ready));
        else if (ready)
          ready();
      });
    }

    void end(bool breaks) override {
      call([breaks](any_connection& on) { on.end(breaks); });
    }

    void watch(departure_watch gone) override {
      on_->post(
        [number = number_, gone = std::move(gone)](any_connection& on) mutable {
          if (on.number_ == number)
            on.watch(std::move(gone));
          else if (on.state_ == state::closed)
            gone(departure::whole);
        });
    }

  private:
    template <class Act>
    void call(Act act) {
      on_->post(
        [number = number_, act = std::move(act)](any_connection& on) mutable {
          if (on.number_ == number)
            act(on);
        });
    }

    const std::shared_ptr<any_connection> on_;
    const std::uint64_t number_;
  };

  // Runs `act` on the strand. Dropped once the threads have stopped.
  template <class Act>
  void post(Act act) {
    settings_->threads->while_open([this, &act] {
      net::post(stream_.get_executor(),
                [self = this->shared_from_this(),
                 act = std::move(act)]() mutable { act(*self); });
    });
  }

  tcp::socket& socket() {
    if constexpr (std::is_same_v<Stream, tcp::socket>)
      return stream_;
    else
      return stream_.next_layer();
  }

  const server_limits& limits() const noexcept { return settings_->limits; }

  static std::int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
  }

  void close_after(std::chrono::nanoseconds time) {
    deadline_ = now() + time.count();
  }

  // A handler that calls a member and keeps this object.
  template <class... Args>
  auto then(void (any_connection::*member)(Args...)) {
    return [self = this->shared_from_this(), member](Args... given) {
      ((*self).*member)(given...);
    };
  }

  // -- requests ---------------------------------------------------------------

  void greet() {
    if constexpr (std::is_same_v<Stream, tcp::socket>) {
      await_request();
    } else {
      close_after(limits().header_time);
      stream_.async_handshake(
        Stream::server,
        [self = this->shared_from_this()](const error_code& failure) {
          if (self->state_ == state::closed)
            return;
          if (failure)
            self->close_now();
          else
            self->await_request();
        });
    }
  }

  void await_request() {
    state_ = state::idle;
    if (buffer_.size() != 0)
      return read_head();
    if (settings_->threads->is_draining())
      return close_now();
    close_after(limits().idle_time);
    fill();
  }

  // Waits for bytes: the first ones of a request, or the end of the connection
  // while a client waits for its answer. Only called with an empty buffer, so
  // that this read and that of a request never meet.
  void fill() {
    if ((has_half_ && state_ != state::closing)
        || std::exchange(is_filling_, true))
      return;
    stream_.async_read_some(buffer_.prepare(fill_bytes),
                            then(&any_connection::filled));
  }

  void filled(error_code failure, std::size_t count) {
    is_filling_ = false;
    if (state_ == state::closed)
      return;
    if (failure == net::error::eof && awaits_answer())
      return lose_half();
    if (failure)
      return close_now();
    buffer_.commit(count);
    if (state_ == state::idle)
      return read_head();
    if (state_ != state::closing)
      return; // A request that came early: it is read after the answer.
    buffer_.clear();
    fill();
  }

  // A client of TLS that ends its half has closed, since few would read on.
  bool awaits_answer() const noexcept {
    return std::is_same_v<
             Stream,
             tcp::
               socket> && (state_ == state::answering || state_ == state::streaming);
  }

  // The client sends no more. It still gets its answer, unless it has closed:
  // then it refuses the next bytes, and a stream sends a comment at once to see
  // that.
  void lose_half() {
    has_half_ = true;
    keeps_alive_ = false;
    for (const auto& each : gone_)
      each(departure::half);
    if (state_ == state::streaming)
      write(": \n\n", {});
    socket().async_wait(tcp::socket::wait_error,
                        [self = this->shared_from_this()](const error_code&) {
                          if (self->state_ != state::closing)
                            self->close_now();
                        });
  }

  void read_head() {
    state_ = state::receiving;
    is_head_ = false;
    asked_ = {};
    parser_.emplace();
    parser_->header_limit(limits().header_bytes_max);
    parser_->body_limit(limits().body_bytes_max);
    close_after(limits().header_time);
    beast::http::async_read_header(
      stream_, buffer_, *parser_, then(&any_connection::head_read));
  }

  void head_read(error_code failure, std::size_t /*count*/) {
    if (state_ == state::closed)
      return;
    if (failure)
      return refuse(failure);
    if (auto refused = check_head())
      return refuse(std::move(*refused));
    const auto& head = parser_->get();
    if (!parser_->is_done()
        && beast::iequals(head[beast::http::field::expect], "100-continue")) {
      waiting_.push("HTTP/1.1 100 Continue\r\n\r\n");
      write_next();
    }
    body_began_ = now();
    read_body();
  }

  // Decides whether the request gets in. A client that may not send it cannot
  // make the server read its body.
  std::optional<response> check_head() {
    version_ = parser_->get().version();
    keeps_alive_ = version_ >= 11 && parser_->get().keep_alive();
    if (auto refused = read_request(*parser_, peer_, asked_))
      return refused;
    is_head_ = asked_.method == "HEAD";
    asked_.is_encrypted = !std::is_same_v<Stream, tcp::socket>;
    auto decided = settings_->admit(asked_);
    if (auto* refused = std::get_if<response>(&decided))
      return std::move(*refused);
    admitted_ = std::move(std::get<admission>(decided));
    return std::nullopt;
  }

  void read_body() {
    if (parser_->is_done())
      return dispatch();
    constexpr std::size_t mebibyte = std::size_t{1} << 20U;
    const auto parts = 1 + parser_->get().body().size() / mebibyte;
    deadline_ = body_began_
                + std::chrono::nanoseconds(limits().body_time).count()
                    * static_cast<std::int64_t>(parts);
    beast::http::async_read_some(
      stream_, buffer_, *parser_, then(&any_connection::body_read));
  }

  void body_read(error_code failure, std::size_t /*count*/) {
    if (state_ == state::closed)
      return;
    if (failure)
      return refuse(failure);
    read_body();
  }

  void refuse(const error_code& failure) {
    auto answer = refusal_of(failure);
    if (!answer)
      return close_now();
    refuse(std::move(*answer));
  }

  // The bytes of a body that was not read would be taken for a request, so they
  // end the connection.
  void refuse(response answer) {
    answer.closes = answer.closes || !parser_->is_done();
    parser_.reset();
    state_ = state::answering;
    send(std::move(answer));
  }

  void dispatch() {
    deadline_ = 0;
    asked_.body = std::move(parser_->get().body());
    parser_.reset();
    state_ = state::answering;
    ++number_;
    is_counted_ = true;
    settings_->threads->begin_request();
    auto headers = std::move(admitted_.headers);
    settings_->handle(
      std::exchange(asked_, {}),
      std::exchange(admitted_, {}),
      reply(std::make_shared<requester>(this->shared_from_this(), number_),
            std::move(headers)));
  }

  // -- answers ----------------------------------------------------------------

  void send(response answer) {
    if (state_ != state::answering || ends_)
      return;
    keeps_alive_
      = keeps_alive_ && !answer.closes && !settings_->threads->is_draining();
    // A client that asks for the head alone would take a body for the next
    // answer.
    if (is_head_) {
      waiting_.push(
        head_of(answer, body_framing::close, keeps_alive_, std::time(nullptr)));
    } else {
      waiting_.push(head_of(
        answer, body_framing::length, keeps_alive_, std::time(nullptr)));
      waiting_.push(std::move(answer.body));
    }
    ends_ = true;
    write_next();
  }

  void begin(const response& head) {
    if (state_ != state::answering || ends_)
      return;
    state_ = state::streaming;
    is_chunked_ = version_ >= 11;
    keeps_alive_ = keeps_alive_ && is_chunked_ && !head.closes;
    waiting_.push(
      head_of(head,
              is_chunked_ ? body_framing::chunked : body_framing::close,
              keeps_alive_,
              std::time(nullptr)));
    if (buffer_.size() == 0 && !is_filling_)
      buffer_.shrink_to_fit(); // A stream may stay open for hours.
    watch({});
    write_next();
  }

  void write(std::string piece, std::function<void()> ready) {
    if (!piece.empty() && !ends_)
      waiting_.push(is_chunked_
                      ? fmt::format("{:x}\r\n{}\r\n", piece.size(), piece)
                      : std::move(piece));
    if (ready) {
      if (waiting_.bytes() < limits().stream_bytes_max)
        ready();
      else
        ready_.push_back(std::move(ready));
    }
    write_next();
  }

  void end(bool breaks) {
    if (state_ != state::streaming || ends_)
      return;
    if (breaks)
      return close_now();
    if (is_chunked_)
      waiting_.push("0\r\n\r\n");
    keeps_alive_ = keeps_alive_ && !settings_->threads->is_draining();
    ends_ = true;
    write_next();
  }

  void watch(departure_watch gone) {
    if (gone && state_ == state::closed)
      return gone(departure::whole);
    if (gone && has_half_)
      gone(departure::half);
    if (gone)
      gone_.push_back(std::move(gone));
    if (buffer_.size() == 0)
      fill();
  }

  void write_next() {
    if (is_writing_)
      return;
    if (waiting_.empty())
      return pause_writing();
    is_writing_ = true;
    close_after(limits().write_time);
    stream_.async_write_some(waiting_.front(), then(&any_connection::written));
  }

  void pause_writing() {
    if (ends_)
      return finish();
    if (state_ == state::streaming)
      close_after(limits().heartbeat);
  }

  void written(error_code failure, std::size_t count) {
    is_writing_ = false;
    if (state_ == state::closed)
      return;
    if (failure)
      return close_now();
    waiting_.pop(count);
    if (state_ == state::receiving) { // It was `100 Continue`.
      if (!waiting_.empty())
        write_next();
      return;
    }
    if (waiting_.bytes() < limits().stream_bytes_max)
      call_ready();
    write_next();
  }

  void call_ready() {
    for (const auto& each : std::exchange(ready_, {}))
      each();
  }

  // The client has its whole answer.
  void finish() {
    end_request();
    ends_ = false;
    deadline_ = 0;
    if (keeps_alive_)
      await_request();
    else
      close_gently();
  }

  void end_request() {
    ++number_;
    gone_.clear();
    if (std::exchange(is_counted_, false))
      settings_->threads->end_request();
  }

  // -- the end ----------------------------------------------------------------

  // Reads until the client closes, since a socket that is closed with unread
  // bytes may destroy the answer on its way.
  void close_gently() {
    state_ = state::closing;
    buffer_.clear();
    close_after(closing_time);
    if constexpr (std::is_same_v<Stream, tcp::socket>) {
      end_sending();
    } else if (is_filling_) {
      close_now(); // A stream of TLS allows no second read.
    } else {
      stream_.async_shutdown([self = this->shared_from_this()](
                               const error_code&) { self->end_sending(); });
    }
  }

  void end_sending() {
    if (state_ == state::closed)
      return;
    error_code ignored;
    socket().shutdown(tcp::socket::shutdown_send, ignored);
    drop_bytes();
  }

  // Below TLS, whose stream has ended.
  void drop_bytes() {
    if (is_filling_)
      return; // That read goes on in `filled`.
    buffer_.clear();
    socket().async_read_some(buffer_.prepare(fill_bytes),
                             [self = this->shared_from_this()](
                               const error_code& failure, std::size_t) {
                               if (failure)
                                 self->close_now();
                               else if (self->state_ != state::closed)
                                 self->drop_bytes();
                             });
  }

  void close_now() {
    if (std::exchange(state_, state::closed) == state::closed)
      return;
    deadline_ = 0;
    error_code ignored;
    socket().close(ignored);
    settings_->threads->leave(*this);
    waiting_.clear();
    const auto gone = std::exchange(gone_, {});
    end_request();
    for (const auto& each : gone)
      each(departure::whole);
    call_ready();
  }

  void end_late() {
    if (state_ == state::closed || deadline_ == 0 || now() < deadline_)
      return;
    if (state_ == state::streaming && !is_writing_) {
      write(": \n\n", {});
    } else {
      close_now();
    }
  }

  static constexpr std::size_t fill_bytes = 1'024;
  static constexpr std::size_t buffer_bytes_min = std::size_t{32} * 1024;
  static constexpr std::chrono::seconds closing_time{2};

  const std::shared_ptr<const connection_settings> settings_;
  Stream stream_;
  std::string peer_;
  std::atomic<std::int64_t> deadline_{0};

  state state_ = state::idle;
  // Bounded, since Beast bounds neither the extensions of chunks nor trailers.
  beast::flat_buffer buffer_{
    std::max<std::size_t>(buffer_bytes_min, 2 * limits().header_bytes_max)};
  std::optional<request_parser> parser_;
  request asked_;      // From its head until it is handed on,
  admission admitted_; // as is the decision about it.
  std::int64_t body_began_ = 0;
  std::uint64_t number_ = 0; // Of the request, and of the pause behind it.
  unsigned version_ = 11;
  bool keeps_alive_ = true;
  bool is_counted_ = false; // As a request under way.
  bool is_filling_ = false;
  bool has_half_ = false; // The client has ended its half.
  bool is_head_ = false;

  outgoing waiting_;
  bool is_writing_ = false;
  bool is_chunked_ = false;
  bool ends_ = false; // All of the answer is in `waiting_`.
  std::vector<std::function<void()>> ready_;
  std::vector<departure_watch> gone_;
};

} // namespace troupe::serving
