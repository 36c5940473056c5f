// Records the calls of an HTTP request's handler; a test waits for them.

#pragma once

#include "troupe/models/http/client.hpp"

#include "../outcome.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::testing {

/// Records the calls of a handler.
class witness {
public:
  http_handler handler() {
    return {.on_head =
              [this](int status, const http_headers& headers) {
                const std::lock_guard guard(mutex_);
                status_ = status;
                headers_ = headers;
                ++heads_;
              },
            .on_data =
              [this](std::string_view piece) {
                if (on_piece)
                  on_piece();
                const std::lock_guard guard(mutex_);
                body_ += piece;
                changed_.notify_all();
              },
            .on_end =
              [this](const http_end& ended) {
                if (on_ended)
                  on_ended();
                const std::lock_guard guard(mutex_);
                ++ends_;
                ended_ = ended.outcome;
                may_pass_ = ended.may_pass;
                changed_.notify_all();
              }};
  }

  /// Waits for the end of the request, and returns it.
  result<void> end() {
    wait([this] { return ended_.has_value(); });
    return *ended_;
  }

  void wait_for_body(std::string_view text) {
    wait([&] { return body_ == text; });
  }

  std::string body() const {
    const std::lock_guard guard(mutex_);
    return body_;
  }

  int status() const {
    const std::lock_guard guard(mutex_);
    return status_;
  }

  int heads() const {
    const std::lock_guard guard(mutex_);
    return heads_;
  }

  int ends() const {
    const std::lock_guard guard(mutex_);
    return ends_;
  }

  bool may_pass() const {
    const std::lock_guard guard(mutex_);
    return may_pass_;
  }

  std::string header(const std::string& name) const {
    const std::lock_guard guard(mutex_);
    for (const auto& [known, text] : headers_)
      if (known == name)
        return text;
    return "absent";
  }

  // Called on the I/O thread.
  std::function<void()> on_piece;
  std::function<void()> on_ended;

private:
  template <class Reached>
  void wait(Reached reached) {
    std::unique_lock guard(mutex_);
    if (!changed_.wait_for(guard, std::chrono::seconds(30), reached))
      throw std::runtime_error("the handler was not called");
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int status_ = 0;
  http_headers headers_;
  std::string body_;
  int heads_ = 0;
  int ends_ = 0;
  std::optional<result<void>> ended_;
  bool may_pass_ = false;
};

inline http_request request_to(std::string url) {
  http_request made;
  made.url = std::move(url);
  return made;
}

/// Returns the end of one request, made by a client of its own.
inline result<void> end_of(http_request request,
                           http_client_options options = {}) {
  witness told;
  http_client client(std::move(options));
  client.start(std::move(request), told.handler());
  return told.end();
}

inline std::string text_of(const result<void>& ended) {
  return code_of(ended) + " " + reason_of(ended);
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

} // namespace troupe::testing
