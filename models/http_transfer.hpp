// One request on its way through curl: its options, its time-outs, and what its
// handler is told.
//
// Made by the thread that starts it, then used by one I/O thread after another,
// never by two at a time; only `cancel` may come from anywhere. No text that it
// makes has more of the request in it than the host.

#pragma once

#include "troupe/models/http_client.hpp"
#include "troupe/models/http_connections.hpp"

#include <curl/curl.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class http_transfer : public std::enable_shared_from_this<http_transfer> {
public:
  using time_point = std::chrono::steady_clock::time_point;

  http_transfer(http_request request, http_handler handler);

  /// Fails with `errc::invalid_argument` on an URL that is none of HTTP, and on
  /// a header that would end early and so become two.
  result<void> check();

  /// Scheme, host and port: what has a queue of its own. After `check`.
  const std::string& origin() const noexcept { return origin_; }

  /// Which of the client's lanes it is on; the gate's to set.
  std::size_t lane() const noexcept { return lane_; }

  void set_lane(std::size_t lane) noexcept { lane_ = lane; }

  /// Nothing is told any more but the end. False if it was cancelled before.
  bool cancel() noexcept { return !cancelled_.exchange(true); }

  /// When it is over even if it waits for a place until then.
  time_point total_due() const noexcept;

  // -- on an I/O thread ----

  /// From now on, the time to connect and to the first byte counts.
  void take_place(time_point now);

  /// Sets what differs from request to request. `connected` is where it adds
  /// itself when its connection stands, `connections` where it tells which one
  /// it goes out on.
  void mount(CURL* easy,
             std::vector<http_transfer*>& connected,
             http_connections& connections);

  /// Ends the use of `easy`; it may serve another then.
  void dismount();

  CURL* easy() const noexcept { return easy_; }

  /// Whether it goes past every proxy.
  bool is_direct() const noexcept { return request_.direct; }

  bool is_connected() const noexcept { return connected_; }

  /// The port of ours that its connection has; those of HTTP/2 share it.
  int local_port() const noexcept { return local_port_; }

  /// On its connection, which had no other, came more than a server says that
  /// says nothing.
  void note_much_came() noexcept { much_came_ = true; }

  /// Closes its connection with it, unless others are on it.
  void take_connection_along();

  /// The time-out that has passed, if any.
  std::optional<http_end> overdue(time_point now) const;

  /// When to ask `overdue` next; never later than it has something to say.
  time_point next_look(time_point now) const;

  /// What curl's code and the handler's own failures come to.
  http_end outcome(CURLcode code) const;

  /// What it has come to, whatever curl says.
  void fail(errc code, std::string_view reason, bool may_pass = false);

  error failure(errc code, std::string_view reason) const;

  /// Calls `on_end` and drops the handler with all that it holds.
  void end(http_end ended);

private:
  static std::size_t
  take_header(char* text, std::size_t, std::size_t size, void* self);
  static std::size_t
  take_data(char* text, std::size_t, std::size_t size, void* self);
  static int prepare_to_send(void* self, char*, char*, int, int local_port);

  std::size_t break_off();
  http_end no_connection() const;
  bool is_too_long_line(CURLcode code) const;
  bool passes_http2_limit(CURLcode code) const;
  long status() const;
  bool read_header_line(std::string_view line);
  void set_headers();
  template <class Call>
  bool tell(Call&& call);

  http_request request_;
  http_handler handler_;
  std::string origin_;
  std::string host_;
  std::atomic<bool> cancelled_{false};
  std::size_t lane_ = 0;
  time_point started_;
  time_point placed_;

  CURL* easy_ = nullptr;
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> sent_headers_;
  std::vector<http_transfer*>* connected_list_ = nullptr;
  http_connections* connections_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> reason_{};
  bool connected_ = false;
  bool much_came_ = false;
  int times_sent_ = 0;
  int local_port_ = 0;
  std::optional<time_point> last_came_;
  http_headers head_;
  std::size_t head_bytes_ = 0;
  bool head_told_ = false;
  std::optional<http_end> own_failure_;
};

using http_transfer_ptr = std::shared_ptr<http_transfer>;

} // namespace troupe
