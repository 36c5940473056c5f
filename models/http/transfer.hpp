// One request on its way through libcurl: its options, its time-outs and the
// calls of its handler.
//
// It is created on the caller's thread and then used by one I/O thread at a
// time. Only `cancel` may be called from any thread. Texts that it makes name
// the host and nothing else of the request.

#pragma once

#include "troupe/models/http/client.hpp"
#include "troupe/models/http/connections.hpp"

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

  /// Fails with `errc::invalid_argument` on a URL that is not HTTP, and on a
  /// header with a line break, which could be taken for two headers.
  result<void> check();

  /// Scheme, host and port. Requests with the same origin share a queue. Valid
  /// after `check`.
  const std::string& origin() const noexcept { return origin_; }

  /// The client's lane that it is on; set by the gate.
  std::size_t lane() const noexcept { return lane_; }

  void set_lane(std::size_t lane) noexcept { lane_ = lane; }

  /// Stops all callbacks but `on_end`. Returns false if it was cancelled
  /// before.
  bool cancel() noexcept { return !cancelled_.exchange(true); }

  /// Time at which the total limit ends, even while it waits for a place.
  time_point total_due() const noexcept;

  // -- on the I/O thread ----

  /// Starts the limits for connecting and for the first byte.
  void take_place(time_point now);

  /// Sets the options that differ between requests. The transfer adds itself to
  /// `connected` when its connection is established, and tells `connections`
  /// which one it uses.
  void mount(CURL* easy,
             std::vector<http_transfer*>& connected,
             http_connections& connections);

  /// Ends the use of `easy`, which may then serve another transfer.
  void dismount();

  CURL* easy() const noexcept { return easy_; }

  /// Returns true if it bypasses every proxy.
  bool is_direct() const noexcept { return request_.direct; }

  bool is_connected() const noexcept { return connected_; }

  /// Local port of its connection. Transfers on one HTTP/2 connection share it.
  int local_port() const noexcept { return local_port_; }

  /// Records that its connection, which carried no other request, received more
  /// bytes than a server sends without an answer.
  void note_much_came() noexcept { much_came_ = true; }

  /// Makes libcurl close the connection with the transfer, unless others use
  /// it.
  void take_connection_along();

  /// Returns the time-out that has passed, if any.
  std::optional<http_end> overdue(time_point now) const;

  /// Time of the next call of `overdue`. Never later than the next time-out.
  time_point next_check(time_point now) const;

  /// Combines libcurl's code with the handler's own failures.
  http_end outcome(CURLcode code) const;

  /// Sets the outcome, which replaces libcurl's code.
  void fail(errc code, std::string_view reason, bool may_pass = false);

  error failure(errc code, std::string_view reason) const;

  /// Calls `on_end` and destroys the handler.
  void end(http_end ended);

private:
  static std::size_t
  take_header(char* text, std::size_t, std::size_t size, void* self);
  static std::size_t
  take_data(char* text, std::size_t, std::size_t size, void* self);
  static int prepare_to_send(void* self, char*, char*, int, int local_port);

  template <class Take>
  static std::size_t receive(void* self, std::string_view received, Take take);
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
