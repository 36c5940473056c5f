#include "troupe/models/http/transfer.hpp"

#include "troupe/core/support/blank.hpp"
#include "troupe/models/http/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <exception>
#include <new>
#include <utility>

namespace troupe {

namespace {

using url_ptr = std::unique_ptr<CURLU, void (*)(CURLU*)>;

// Limit of sends of one request. libcurl alone would send it up to six times if
// each idle connection is dead or each stream is refused.
constexpr int times_sent_max = 2;

constexpr std::size_t head_bytes_max = std::size_t{256} << 10U;

// libcurl's own limit for one line of a head. Above it libcurl fails with "Out
// of memory".
constexpr std::size_t head_line_bytes_max = std::size_t{100} << 10U;

// A larger value would overflow when it is added to a time.
constexpr std::chrono::milliseconds timeout_max = std::chrono::hours{24 * 30};

bool same_name(std::string_view left, std::string_view right) {
  return std::equal(left.begin(),
                    left.end(),
                    right.begin(),
                    right.end(),
                    [](unsigned char one, unsigned char other) {
                      return std::tolower(one) == std::tolower(other);
                    });
}

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK)
    return {};
  std::string copied(text);
  curl_free(text);
  return copied;
}

/// Returns libcurl's error text. libcurl quotes a proxy's URL that it cannot
/// read, which may contain a password; such a text is replaced by a general
/// one.
std::string_view reason_of(CURLcode code, std::string_view reason) {
  const bool may_quote_url
    = reason.find("://") != std::string_view::npos
      || reason.find_first_of("@?") != std::string_view::npos
      || code == CURLE_COULDNT_RESOLVE_PROXY;
  return reason.empty() || may_quote_url ? curl_easy_strerror(code) : reason;
}

/// Returns true for failures that a retry would meet again, above all bad
/// certificates.
bool is_lasting(CURLcode code) {
  switch (code) {
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CACERT_BADFILE:
  case CURLE_SSL_CERTPROBLEM:
  case CURLE_SSL_CIPHER:
  case CURLE_SSL_CLIENTCERT:
  case CURLE_SSL_CRL_BADFILE:
  case CURLE_SSL_INVALIDCERTSTATUS:
  case CURLE_SSL_ISSUER_ERROR:
  case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
  case CURLE_UNSUPPORTED_PROTOCOL:
  case CURLE_URL_MALFORMAT:
    return true;
  default:
    return false;
  }
}

std::string too_large_head(std::size_t bytes_max, std::string_view of) {
  return fmt::format(
    "the response's headers are larger than {} bytes {}", bytes_max, of);
}

// The name of a method that libcurl does not choose itself, or null.
const char* custom_name(http_method method, bool has_body) {
  switch (method) {
  case http_method::post:
    break;
  case http_method::get:
    return has_body ? "GET" : nullptr;
  case http_method::remove:
    return "DELETE";
  case http_method::put:
    return "PUT";
  case http_method::patch:
    return "PATCH";
  }
  return nullptr;
}

void check_set([[maybe_unused]] CURLcode done) {
  assert(done == CURLE_OK);
}

} // namespace

http_transfer::http_transfer(http_request request, http_handler handler)
  : request_(std::move(request)),
    handler_(std::move(handler)),
    started_(std::chrono::steady_clock::now()),
    sent_headers_(nullptr, &curl_slist_free_all) {
  auto& limits = request_.timeouts;
  for (auto* limit :
       {&limits.connect, &limits.first_byte, &limits.between, &limits.total})
    *limit = std::clamp<std::chrono::milliseconds>(
      *limit, std::chrono::milliseconds{1}, timeout_max);
}

result<void> http_transfer::check() {
  const url_ptr url(curl_url(), &curl_url_cleanup);
  if (!url)
    throw std::bad_alloc();
  if (const auto parsed
      = curl_url_set(url.get(), CURLUPART_URL, request_.url.c_str(), 0);
      parsed != CURLUE_OK)
    return error(errc::invalid_argument,
                 fmt::format("the URL of a request is not valid: {}",
                             curl_url_strerror(parsed)));
  host_ = part_of(url.get(), CURLUPART_HOST);
  const auto scheme = part_of(url.get(), CURLUPART_SCHEME);
  if (scheme != "https" && scheme != "http")
    return failure(errc::invalid_argument, "its URL is neither HTTP nor HTTPS");
  std::transform(
    host_.begin(), host_.end(), host_.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
  origin_ = fmt::format("{}://{}:{}",
                        scheme,
                        host_,
                        part_of(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
  if (const auto port = part_of(url.get(), CURLUPART_PORT); !port.empty())
    host_ += ":" + port;
  for (const auto& [name, value] : request_.headers)
    if (!is_header_name(name) || !is_header_value(value))
      return failure(errc::invalid_argument,
                     "a header has a name or a text that HTTP does not allow");
  return {};
}

http_transfer::time_point http_transfer::total_due() const noexcept {
  return started_ + request_.timeouts.total;
}

// -- options ----

void http_transfer::take_place(time_point now) {
  placed_ = now;
}

void http_transfer::mount(CURL* easy,
                          std::vector<http_transfer*>& connected,
                          http_connections& connections) {
  assert(easy_ == nullptr);
  easy_ = easy;
  connected_list_ = &connected;
  connections_ = &connections;
  set_headers();
  check_set(curl_easy_setopt(easy, CURLOPT_PRIVATE, this));
  check_set(curl_easy_setopt(easy, CURLOPT_URL, request_.url.c_str()));
  check_set(curl_easy_setopt(easy, CURLOPT_HTTPHEADER, sent_headers_.get()));
  if (!request_.body.empty()
      || (request_.method != http_method::get
          && request_.method != http_method::remove)) {
    check_set(curl_easy_setopt(easy,
                               CURLOPT_POSTFIELDSIZE_LARGE,
                               static_cast<curl_off_t>(request_.body.size())));
    check_set(curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request_.body.data()));
  } else {
    check_set(curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L));
  }
  check_set(
    curl_easy_setopt(easy,
                     CURLOPT_CUSTOMREQUEST,
                     custom_name(request_.method, !request_.body.empty())));
  check_set(curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, reason_.data()));
  check_set(curl_easy_setopt(easy, CURLOPT_HEADERDATA, this));
  check_set(curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &take_header));
  check_set(curl_easy_setopt(easy, CURLOPT_WRITEDATA, this));
  check_set(curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &take_data));
  check_set(curl_easy_setopt(easy, CURLOPT_PREREQDATA, this));
  check_set(curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &prepare_to_send));
  // Our own limit ends first or at the same time. libcurl needs this one to
  // reserve half of the time for the host's second address.
  check_set(
    curl_easy_setopt(easy,
                     CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(request_.timeouts.connect.count())));
}

void http_transfer::set_headers() {
  // "Expect: 100-continue" would cost a round trip or a second.
  auto* list = curl_slist_append(nullptr, "Expect:");
  const auto add = [&list](const std::string& line) {
    if (auto* longer = curl_slist_append(list, line.c_str()))
      list = longer;
  };
  bool has_type = false;
  for (const auto& [name, text] : request_.headers) {
    has_type = has_type || same_name(name, "Content-Type");
    add(text.empty() ? name + ";" : fmt::format("{}: {}", name, text));
  }
  if (!has_type)
    add("Content-Type:");
  sent_headers_.reset(list);
}

void http_transfer::dismount() {
  if (easy_ == nullptr)
    return;
  check_set(curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, nullptr));
  check_set(curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, nullptr));
  check_set(curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, nullptr));
  check_set(curl_easy_setopt(easy_, CURLOPT_FORBID_REUSE, 0L));
  easy_ = nullptr;
}

void http_transfer::take_connection_along() {
  check_set(curl_easy_setopt(easy_, CURLOPT_FORBID_REUSE, 1L));
}

// -- time-outs ----

std::optional<http_end> http_transfer::overdue(time_point now) const {
  const auto& limits = request_.timeouts;
  const auto passed
    = [&](std::string_view what, std::chrono::milliseconds limit) {
        return http_end{failure(errc::deadline_exceeded,
                                fmt::format("{} {} ms", what, limit.count()))};
      };
  if (now >= total_due())
    return passed(placed_ == time_point() ? "still in the queue after"
                                          : "not finished after",
                  limits.total);
  if (placed_ == time_point())
    return std::nullopt;
  if (last_came_) {
    if (now >= *last_came_ + limits.between)
      return passed("the answer paused for", limits.between);
    return std::nullopt;
  }
  if (!connected_ && now >= placed_ + limits.connect)
    return no_connection();
  if (now >= placed_ + limits.first_byte)
    return passed("no answer after", limits.first_byte);
  return std::nullopt;
}

http_transfer::time_point http_transfer::next_check(time_point now) const {
  const auto& limits = request_.timeouts;
  if (last_came_)
    return std::min(total_due(), *last_came_ + limits.between);
  // The first byte may come at any time, and the limit between pieces starts
  // there. A check after each such period finds a pause without moving the due
  // time at every byte.
  auto due = std::min(
    {total_due(), placed_ + limits.first_byte, now + limits.between});
  return connected_ ? due : std::min(due, placed_ + limits.connect);
}

// -- receiving ----

template <class Call>
bool http_transfer::tell(Call&& call) {
  try {
    call();
    return true;
  } catch (const std::exception& thrown) {
    fail(errc::internal, fmt::format("its handler threw: {}", thrown.what()));
  } catch (...) {
    fail(errc::internal, "its handler threw");
  }
  return false;
}

int http_transfer::prepare_to_send(
  void* self, char*, char*, int, int local_port) {
  auto& transfer = *static_cast<http_transfer*>(self);
  transfer.local_port_ = local_port;
  transfer.much_came_ = false; // It was about the connection before.
  transfer.connections_->note_request(local_port);
  if (!std::exchange(transfer.connected_, true))
    transfer.connected_list_->push_back(&transfer);
  const bool repeats = transfer.request_.repeats;
  if (++transfer.times_sent_ > (repeats ? times_sent_max : 1)) {
    transfer.fail(errc::model_failed,
                  repeats
                    ? "the server closed the connection twice without an answer"
                    : "the server closed the connection without an answer",
                  true);
    return CURL_PREREQFUNC_ABORT;
  }
  return CURL_PREREQFUNC_OK;
}

// Passes received bytes to `take`, which returns false for a failure. After a
// failure or a cancellation libcurl ends the request.
template <class Take>
std::size_t
http_transfer::receive(void* self, std::string_view received, Take take) {
  auto& transfer = *static_cast<http_transfer*>(self);
  if (!transfer.cancelled_ && take(transfer, received))
    return received.size();
  transfer.take_connection_along();
  return CURL_WRITEFUNC_ERROR;
}

std::size_t http_transfer::take_header(char* text,
                                       std::size_t,
                                       std::size_t size,
                                       void* self) {
  return receive(
    self, {text, size}, [](http_transfer& transfer, std::string_view line) {
      // An interim answer (100 to 199) is not the first byte.
      if (transfer.status() >= 200)
        transfer.last_came_ = std::chrono::steady_clock::now();
      // Trailers of a chunked body follow the head; they are ignored.
      return transfer.head_told_ || transfer.read_header_line(line);
    });
}

std::size_t http_transfer::take_data(char* text,
                                     std::size_t,
                                     std::size_t size,
                                     void* self) {
  return receive(
    self, {text, size}, [](http_transfer& transfer, std::string_view data) {
      transfer.last_came_ = std::chrono::steady_clock::now();
      const auto& on_data = transfer.handler_.on_data;
      return !on_data || transfer.tell([&] { on_data(data); });
    });
}

long http_transfer::status() const {
  long said = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &said);
  return said;
}

bool http_transfer::read_header_line(std::string_view line) {
  head_bytes_ += line.size();
  if (head_bytes_ > head_bytes_max) {
    fail(errc::model_failed, too_large_head(head_bytes_max, "in all"));
    return false;
  }
  if (line.starts_with("HTTP/")) {
    head_.clear();
    return true;
  }
  const auto text = trimmed(line, wire_white_space);
  if (text.empty()) {
    const auto status = this->status();
    // Interim answers (100 to 199) precede the answer.
    if (status < 200)
      return true;
    head_told_ = true;
    const auto head = std::exchange(head_, {});
    return !handler_.on_head
           || tell([&] { handler_.on_head(static_cast<int>(status), head); });
  }
  if (const bool goes_on = line.front() == ' ' || line.front() == '\t';
      goes_on && !head_.empty()) {
    head_.back().second += ' ';
    head_.back().second += text;
    return true;
  }
  const auto colon = line.find(':');
  if (colon != std::string_view::npos)
    head_.emplace_back(trimmed(line.substr(0, colon), wire_white_space),
                       trimmed(line.substr(colon + 1), wire_white_space));
  return true;
}

// -- the end ----

void http_transfer::fail(errc code, std::string_view reason, bool may_pass) {
  own_failure_ = {failure(code, reason), may_pass};
}

error http_transfer::failure(errc code, std::string_view reason) const {
  return {code, fmt::format("request to {}: {}", host_, reason)};
}

// The text is the same whether libcurl or this object detects the time-out.
http_end http_transfer::no_connection() const {
  constexpr bool may_pass = true;
  return {failure(errc::deadline_exceeded,
                  fmt::format("no connection after {} ms",
                              request_.timeouts.connect.count())),
          may_pass};
}

http_end http_transfer::outcome(CURLcode code) const {
  if (cancelled_)
    return {failure(errc::cancelled, "cancelled")};
  if (own_failure_)
    return *own_failure_;
  // libcurl's own connection time-out may fire a moment before ours.
  if (code == CURLE_OPERATION_TIMEDOUT)
    return no_connection();
  if (is_too_long_line(code))
    return {failure(errc::model_failed,
                    too_large_head(head_line_bytes_max, "in one line"))};
  if (passes_http2_limit(code))
    return {failure(errc::model_failed,
                    "the response's headers are larger than libcurl takes over "
                    "HTTP/2")};
  if (code != CURLE_OK)
    return {failure(errc::model_failed, reason_of(code, reason_.data())),
            !is_lasting(code)};
  // libcurl takes a connection that closes between two headers for the end of
  // an answer.
  if (!head_told_)
    return {failure(errc::model_failed,
                    "the connection was closed inside the answer's headers"),
            true};
  return {};
}

bool http_transfer::is_too_long_line(CURLcode code) const {
  if (times_sent_ == 0 || head_told_)
    return false;
#if LIBCURL_VERSION_NUM >= 0x080600
  if (code == CURLE_TOO_LARGE)
    return true;
#endif
  return code == CURLE_OUT_OF_MEMORY;
}

// Detects limits of HTTP/2, which libcurl's code does not tell apart. The error
// text does: for nghttp2's limit of CONTINUATION frames, and for libcurl's
// limit of bytes, at which its callback fails. For a single large header the
// text does not tell either.
bool http_transfer::passes_http2_limit(CURLcode code) const {
  // nghttp2 closes the connection at a header above its limit, and libcurl
  // reports a server that sent nothing.
  if (code == CURLE_GOT_NOTHING && much_came_)
    return true;
  const std::string_view reason = reason_.data();
  return times_sent_ > 0 && !head_told_
         && (reason.find("CONTINUATION") != std::string_view::npos
             || reason.find("callback function failed")
                  != std::string_view::npos);
}

void http_transfer::end(http_end ended) {
  auto handler = std::exchange(handler_, {});
  // An exception of `on_end` cannot be reported to anyone.
  if (handler.on_end)
    tell([&] { handler.on_end(std::move(ended)); });
}

} // namespace troupe
