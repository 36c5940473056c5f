#include "troupe/telemetry/otlp/post.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cassert>
#include <cstddef>
#include <new>

namespace troupe::telemetry {

namespace {

// Answers are short. The rest of a longer one is not kept.
constexpr std::size_t answer_bytes_max = std::size_t{64} << 10U;

std::size_t
keep_answer(const char* data, std::size_t size, std::size_t count, void* into) {
  auto& kept = *static_cast<std::string*>(into);
  const auto bytes = size * count;
  if (kept.size() + bytes <= answer_bytes_max)
    kept.append(data, bytes);
  return bytes;
}

// A value other than 0 ends the transfer.
int is_given_up(
  void* flag, curl_off_t, curl_off_t, curl_off_t, curl_off_t) noexcept {
  return static_cast<const std::atomic<bool>*>(flag)->load() ? 1 : 0;
}

template <class Value>
void set(CURL* easy, CURLoption which, Value value) {
  [[maybe_unused]] const auto done = curl_easy_setopt(easy, which, value);
  assert(done == CURLE_OK);
}

using header_list = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

void add(header_list& list, const std::string& line) {
  auto* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr)
    throw std::bad_alloc();
  static_cast<void>(list.release());
  list.reset(longer);
}

header_list headers_for(const receiver& to) {
  header_list list(nullptr, &curl_slist_free_all);
  add(list,
      to.form == wire_form::json ? "Content-Type: application/json"
                                 : "Content-Type: application/x-protobuf");
  // Without this, libcurl waits for a permission before it sends a long body.
  add(list, "Expect:");
  for (const auto& [name, value] : to.headers)
    add(list, fmt::format("{}: {}", name, value));
  return list;
}

} // namespace

struct post::connection {
  explicit connection(const std::atomic<bool>& flag)
    : gives_up(flag),
      easy(curl_easy_init(), &curl_easy_cleanup) {
    if (!easy)
      throw std::bad_alloc();
  }

  const std::atomic<bool>& gives_up;
  std::unique_ptr<CURL, void (*)(CURL*)> easy;
};

post::post(const std::atomic<bool>& gives_up)
  : connection_(std::make_unique<connection>(gives_up)) {}

post::~post() = default;

reply post::send(const receiver& to, const std::string& body) {
  auto* easy = connection_->easy.get();
  const auto headers = headers_for(to);
  reply answer;
  // Keeps the connection.
  curl_easy_reset(easy);
  set(easy, CURLOPT_NOSIGNAL, 1L);
  // The end of the program does not wait for a name server.
  set(easy, CURLOPT_QUICK_EXIT, 1L);
  set(easy, CURLOPT_URL, to.url.c_str());
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_HTTPHEADER, headers.get());
  set(easy, CURLOPT_USERAGENT, "troupe/" TROUPE_VERSION);
  set(easy, CURLOPT_POST, 1L);
  set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  set(easy, CURLOPT_POSTFIELDS, body.data());
  set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(to.timeout.count()));
  set(easy, CURLOPT_WRITEFUNCTION, &keep_answer);
  set(easy, CURLOPT_WRITEDATA, &answer.text);
  set(easy, CURLOPT_NOPROGRESS, 0L);
  set(easy, CURLOPT_XFERINFOFUNCTION, &is_given_up);
  set(easy, CURLOPT_XFERINFODATA, &connection_->gives_up);
  if (!to.certificates.empty())
    set(easy, CURLOPT_CAINFO, to.certificates.c_str());
  const auto done = curl_easy_perform(easy);
  if (done != CURLE_OK) {
    answer.text = curl_easy_strerror(done);
    return answer;
  }
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_off_t seconds = 0;
  if (curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK
      && seconds > 0)
    answer.retry_after = std::chrono::seconds(seconds);
  return answer;
}

} // namespace troupe::telemetry
