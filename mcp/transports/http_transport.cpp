#include "troupe/mcp/transports/http_transport.hpp"

#include "troupe/core/support/text_in.hpp"
#include "troupe/models/formats/key_rule.hpp"
#include "troupe/models/http/client.hpp"
#include "troupe/models/http/sse_reader.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::mcp {

namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr milliseconds long_time = std::chrono::hours(24 * 30);
constexpr milliseconds connect_timeout{10'000};
constexpr milliseconds end_timeout{2'000};
// For messages without an answer.
constexpr milliseconds note_timeout{10'000};
constexpr std::size_t notes_max = 64;
// Memory of a message that waits, beside its text.
constexpr std::size_t message_cost = 512;
// Waits before a stream is continued.
constexpr milliseconds continue_after{500};
constexpr milliseconds listen_again_first{1'000};
constexpr milliseconds listen_again_longest{60'000};
constexpr milliseconds shortest_wait{100};
constexpr int continues_max = 3;

// The wait that a stream asked for, within limits.
milliseconds wait_of(const sse_reader& stream, milliseconds otherwise) {
  return std::clamp(
    stream.retry().value_or(otherwise), shortest_wait, listen_again_longest);
}

std::string_view find_header(const http_headers& headers,
                             std::string_view wanted) {
  const auto same = [](char left, char right) {
    const auto lower = [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    return lower(left) == lower(right);
  };
  for (const auto& [name, text] : headers)
    if (std::ranges::equal(name, wanted, same))
      return text;
  return {};
}

// One request over HTTP. The client's thread writes it until the end.
struct exchange {
  std::optional<std::int64_t> id;
  std::string session; // In which it was sent.
  int status = 0;
  http_headers head;
  bool is_stream = false;
  std::string body;
  sse_reader reader;
  // Bytes of messages that the connection's thread has not taken yet.
  std::atomic<std::size_t> waiting_bytes{0};
  std::optional<error> refused;
  // True for the stream of messages that answer nothing.
  bool is_listener = false;
  // Times that the stream was continued without a new event.
  int continued = 0;
  bool was_continued = false;
  std::string continued_from; // Id of an event.
  std::size_t note = 0;       // Number of a message without an id.
  std::function<void()> on_sent;
};

class http_transport final
  : public transport,
    public std::enable_shared_from_this<http_transport> {
public:
  http_transport(std::shared_ptr<io_thread> thread,
                 http_place place,
                 transport_events events)
    : thread_(std::move(thread)),
      place_(std::move(place)),
      events_(std::make_shared<const transport_events>(std::move(events))),
      client_(shared_http_client()) {}

  void send(outgoing sent) override {
    if (!sent.id && notes_.size() >= notes_max)
      return; // A server that asks faster than it reads the answers.
    auto request = make_request(http_method::post);
    request.headers.emplace_back("Content-Type", "application/json");
    request.headers.emplace_back("Accept",
                                 "application/json, text/event-stream");
    for (auto& header : sent.headers)
      request.headers.push_back(std::move(header));
    request.body = wire_text(sent);
    // A call that was sent may have had an effect.
    request.repeats = false;
    if (!sent.id)
      request.timeouts
        = {note_timeout, note_timeout, note_timeout, note_timeout};
    auto made = std::make_shared<exchange>();
    made->id = sent.id;
    made->on_sent = std::move(sent.on_sent);
    if (!sent.id)
      made->note = ++last_note_;
    start(std::move(request), std::move(made));
  }

  void settle(std::int64_t id) override { calls_.erase(id); }

  void forget(std::int64_t id) override {
    const auto found = calls_.find(id);
    if (found == calls_.end())
      return;
    found->second.cancel();
    calls_.erase(found);
  }

  // A server without sessions sees a cancellation as the end of the request.
  bool tells_cancellation(bool is_stateless) const noexcept override {
    return !is_stateless;
  }

  void note_handshake(const std::string& version) override {
    version_ = version;
  }

  void listen() override {
    listening_.cancel();
    auto made = std::make_shared<exchange>();
    made->is_listener = true;
    start(get(last_heard_), made);
  }

  void close(std::function<void()> done) override {
    events_ = nullptr;
    is_closed_ = true;
    timers_.clear();
    for (auto& [id, call] : calls_)
      call.cancel();
    calls_.clear();
    for (auto& [number, note] : notes_)
      note.cancel();
    notes_.clear();
    listening_.cancel();
    on_end_ = std::move(done);
    if (session_.empty())
      return finish();
    auto request = make_request(http_method::remove);
    request.timeouts = {end_timeout, end_timeout, end_timeout, end_timeout};
    start(std::move(request), std::make_shared<exchange>());
  }

private:
  // With the headers and the session of all requests.
  http_request make_request(http_method method) const {
    http_request request;
    request.url = place_.url;
    request.method = method;
    request.headers = place_.headers;
    if (!session_.empty())
      request.headers.emplace_back("Mcp-Session-Id", session_);
    if (!version_.empty())
      request.headers.emplace_back("MCP-Protocol-Version", version_);
    request.timeouts = {connect_timeout, long_time, long_time, long_time};
    // A proxy could read the headers.
    request.direct = !place_.headers.empty() && is_plain_http(place_.url);
    return request;
  }

  void start(http_request request, std::shared_ptr<exchange> made) {
    http_handler handler;
    const auto self = shared_from_this();
    handler.on_head = [self, made](int status, const http_headers& head) {
      made->status = status;
      made->head = head;
      made->is_stream
        = find_header(head, "Content-Type").starts_with("text/event-stream");
      // Before the messages of this answer: the next requests name the session.
      // A late answer of an earlier session does not count.
      if (const auto session = find_header(head, "Mcp-Session-Id");
          status == 200 && !session.empty() && made->session.empty())
        self->thread_->post([self, session = std::string(session)] {
          if (self->session_.empty())
            self->session_ = session;
        });
    };
    handler.on_data
      = [self, made](std::string_view piece) { self->take(piece, made); };
    handler.on_end = [self, made](http_end ended) {
      self->thread_->post([self, made, ended = std::move(ended)] {
        self->note_end(made, ended);
      });
    };
    const auto id = made->id;
    made->session = session_;
    if (++under_way_ == 1)
      guard_.emplace(thread_->context().get_executor());
    auto call = client_->start(std::move(request), std::move(handler));
    if (is_closed_)
      return; // The request that ends the session.
    if (id)
      calls_.insert_or_assign(*id, std::move(call));
    else if (made->is_listener)
      listening_ = std::move(call);
    else if (made->note > 0)
      notes_.insert_or_assign(made->note, std::move(call));
  }

  // On the client's thread. Throwing ends the request.
  void take(std::string_view piece, const std::shared_ptr<exchange>& made) {
    const auto limit = place_.message_bytes_max;
    const auto refuse = [&made](std::string why) {
      made->refused = error(errc::tool_failed, std::move(why));
      throw *made->refused;
    };
    if (!made->is_stream) {
      made->body += piece;
      if (made->body.size() > limit)
        refuse(
          fmt::format("answered with more than {} bytes; ask for less", limit));
      return;
    }
    std::vector<sse_event> events;
    if (auto taken = made->reader.take(piece, events); !taken)
      refuse(taken.error().message());
    for (auto& each : events) {
      if (each.data.empty() || (!each.name.empty() && each.name != "message"))
        continue;
      const auto size = each.data.size() + message_cost;
      if (size > limit + message_cost
          || (made->waiting_bytes += size) > 4 * limit)
        refuse(fmt::format("sent a message of more than {} bytes, or sends "
                           "faster than troupe reads",
                           limit));
      thread_->post(
        [self = shared_from_this(), made, size, text = std::move(each.data)] {
          made->waiting_bytes -= size;
          self->take_message(text);
        });
    }
  }

  void take_message(const std::string& text) {
    auto message = parse_json(text);
    if (const auto events = events_; message && events)
      events->on_message(std::move(*message));
  }

  error failure(std::string_view why) const {
    return {errc::tool_failed,
            fmt::format("the MCP server at {} {}", shown_url(place_.url), why)};
  }

  // The client calls nothing more once each exchange has ended.
  void finish() {
    if (under_way_ > 0)
      return;
    guard_.reset();
    if (on_end_)
      thread_->post(std::exchange(on_end_, nullptr));
  }

  void note_end(const std::shared_ptr<exchange>& made, const http_end& ended) {
    --under_way_;
    finish();
    if (is_closed_)
      return;
    notes_.erase(made->note);
    if (made->is_listener)
      return listen_again(*made);
    if (const auto on_sent = std::exchange(made->on_sent, nullptr))
      on_sent();
    const bool is_known = made->id && calls_.erase(*made->id) > 0;
    if (made->status == 200 && !made->is_stream && !made->body.empty())
      take_message(made->body);
    const auto events = events_;
    if (!is_known || !events)
      return;
    const auto id = *made->id;
    if (made->refused)
      return events->on_failed(id, failure(made->refused->message()));
    if (made->status == 200 && made->is_stream && may_continue(*made))
      return continue_later(made);
    if (!ended.outcome)
      return events->on_failed(
        id,
        failure(
          fmt::format("did not answer: {}", ended.outcome.error().message())));
    if (made->status == 200)
      return events->on_failed(id, failure("has ended without an answer"));
    note_status(*made, id);
  }

  // An error as a JSON-RPC message tells more than the status.
  void note_status(const exchange& made, std::int64_t id) {
    auto said = parse_json(made.body);
    const bool is_error = said && said->is_object() && said->contains("error");
    const bool is_lost
      = !made.session.empty() && (made.status == 404 || made.status == 400)
        && !(is_error && said->value("id", json()) == json(id));
    auto why = fmt::format("answers with HTTP status {}", made.status);
    if (made.status == 401 || made.status == 403)
      why += "; set the token with bearer_env or headers_env (in C++: "
             "bearer_variable, header_variables)";
    if (made.status >= 300 && made.status < 400)
      why += fmt::format(" and points to '{}'; use that address if you trust "
                         "it",
                         shown_url(find_header(made.head, "Location")));
    if (is_error)
      why += ": " + text_in((*said)["error"], "message");
    const auto events = events_;
    if (is_lost) {
      const bool is_current = session_ == made.session;
      if (is_current) {
        session_.clear();
        version_.clear();
        last_heard_.clear();
      }
      return events->on_session_lost(
        {id, failure(why), is_current, !made.was_continued});
    }
    if (is_error && said->value("id", json()) == json(id))
      return events->on_message(std::move(*said));
    events->on_failed(id, failure(why));
  }

  // -- streams that break off ----

  // The id of the last event that came.
  static const std::string& last_id_of(const exchange& made) {
    return made.reader.last_id().empty() ? made.continued_from
                                         : made.reader.last_id();
  }

  static bool may_continue(const exchange& made) {
    return !last_id_of(made).empty() && made.continued < continues_max;
  }

  http_request get(const std::string& last_id) const {
    auto request = make_request(http_method::get);
    request.headers.emplace_back("Accept", "text/event-stream");
    if (!last_id.empty())
      request.headers.emplace_back("Last-Event-ID", last_id);
    return request;
  }

  void continue_later(const std::shared_ptr<exchange>& broken) {
    const auto id = *broken->id;
    calls_.insert_or_assign(id, http_call());
    call_after(wait_of(broken->reader, continue_after),
               [self = shared_from_this(), broken, id] {
                 if (!self->calls_.contains(id))
                   return;
                 auto made = std::make_shared<exchange>();
                 made->id = id;
                 made->was_continued = true;
                 made->continued = broken->reader.last_id().empty()
                                     ? broken->continued + 1
                                     : 1;
                 made->continued_from = last_id_of(*broken);
                 self->start(self->get(made->continued_from), made);
               });
  }

  // -- messages that answer nothing ----

  // A server without such messages refuses the request.
  void listen_again(const exchange& made) {
    const bool is_refused
      = made.status >= 300 && made.status < 500 && made.status != 429;
    const bool had_stream = made.status == 200 && made.is_stream;
    if (is_refused || (made.status == 200 && !had_stream)
        || made.session != session_)
      return;
    if (had_stream) {
      if (!made.reader.last_id().empty())
        last_heard_ = made.reader.last_id();
      listen_again_ = wait_of(made.reader, listen_again_first);
    }
    call_after(listen_again_, [self = shared_from_this()] { self->listen(); });
    listen_again_ = std::min(2 * listen_again_, listen_again_longest);
  }

  void call_after(milliseconds delay, std::function<void()> work) {
    const auto number = ++timer_number_;
    timers_[number] = thread_->call_after(
      delay, [self = shared_from_this(), number, work = std::move(work)] {
        const auto kept = self->timers_.extract(number);
        if (!self->is_closed_)
          work();
      });
  }

  const std::shared_ptr<io_thread> thread_;
  const http_place place_;
  // Null after `close`. A handler may call `close`, so each caller copies the
  // pointer first.
  std::shared_ptr<const transport_events> events_;
  const std::shared_ptr<http_client> client_;
  std::string session_;
  std::string version_;
  std::map<std::int64_t, http_call> calls_; // By the id of the request.
  http_call listening_;
  std::string last_heard_;
  milliseconds listen_again_ = listen_again_first;
  std::map<std::size_t, http_call> notes_; // Messages without an id.
  std::size_t last_note_ = 0;
  std::map<int, std::shared_ptr<void>> timers_;
  int timer_number_ = 0;
  std::size_t under_way_ = 0;
  // Requests are no work of the thread by themselves.
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>>
    guard_;
  std::function<void()> on_end_;
  bool is_closed_ = false;
};

} // namespace

std::string shown_url(std::string_view url) {
  std::string shown;
  for (const char c : url.substr(0, url.find_first_of("?#")))
    shown += c > ' ' && c < 0x7f ? c : '_';
  return shown;
}

std::shared_ptr<transport>
make_http_transport(std::shared_ptr<io_thread> thread,
                    http_place place,
                    transport_events events) {
  return std::make_shared<http_transport>(
    std::move(thread), std::move(place), std::move(events));
}

} // namespace troupe::mcp
